"""A user is erased while the worker learns, at every await of it: nothing of the user comes back."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Coroutine
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from learning_parts import Bench, Faults
from plain_reader import PlainReader
from suspensions import EVERY, crash_points
from turn_logs import Process, sqlite_deployment

from memory.errors import Conflict, Unavailable
from memory.learn.worker import WorkerSettings
from memory.ports import MemoryBank
from memory.ports.erasures import ErasureProof
from memory.service.erasure import Erasure
from memory.service.erasure_states import ErasureLooks
from memory.service.user_erasures import UserErasures

USER = "ann-7f3a"
TRIES_MAX = 20
SETTINGS = WorkerSettings(keeps_raw_words=True)


class ErasedAt(Faults):
    """Starts `work` beside the worker at its n-th suspension, of those before and after each call of a port."""

    def __init__(self, at: int, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        super().__init__(is_slow=True)
        self._at = at
        self._work = work
        self._strikes = 0
        self.started: asyncio.Task[None] | None = None

    async def strike(self, name: str, *, is_after: bool) -> None:
        self._strikes += 1
        if self._strikes == self._at:
            self.started = asyncio.get_running_loop().create_task(self._work())
        await super().strike(name, is_after=is_after)


def erasures(bench: Bench, process: Process) -> UserErasures:
    bank = MemoryBank(bench.store, process.ledger, bench.embedder)
    clock = bench.deployment.clock
    erasure = Erasure(memories=bank, turn_log=process.log, traces=process.traces, clock=clock)  # type: ignore[arg-type]
    proof = ErasureProof()
    looks = ErasureLooks(proof.record, clock=clock)
    return UserErasures(erasure, proof, looks=looks, clock=clock, new_id=lambda: "e1")


async def erased(bench: Bench, process: Process) -> None:
    bench.deployment.clock.now += 1
    for _ in range(TRIES_MAX):
        try:
            await erasures(bench, process).everything(USER)
        except (Conflict, Unavailable):  # whoever calls repeats it
            continue
        return
    raise AssertionError("the user's lock was never free")


def tables_with(database: Path, text: str) -> list[str]:
    with closing(sqlite3.connect(database)) as connection:
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return [name for name in names if text in repr(connection.execute(f'SELECT * FROM "{name}"').fetchall())]


async def learn_and_erase(folder: Path, at: int) -> bool:
    """Whether there is an await with that number."""
    folder.mkdir()
    bench = Bench(sqlite_deployment(folder))
    async with bench.deployment.start() as process:
        await bench.tell(process, "My cat is called Tom. I like tea.", user=USER)
        await bench.worker(process, settings=SETTINGS).work_off()
        await bench.tell(process, "I live in Paris.", user="bob")
        await bench.tell(process, "I live in Rome. My cat is called Felix.", user=USER)
        await bench.tell(process, "Please forget that I like tea.", user=USER, session="s2")
        process.usage_counts.count(USER, [one.id for one in await bench.memories(USER)], at=bench.deployment.clock())
        meanwhile = ErasedAt(at, lambda: erased(bench, process))
        await bench.worker(process, model=PlainReader(), faults=meanwhile, settings=SETTINGS).work_off()
        if meanwhile.started is None:
            return False
        await meanwhile.started
        await bench.worker(process, settings=SETTINGS).work_off()
        assert await bench.memories(USER) == [], at
        assert await bench.raw_words(USER) == [], at
        assert await bench.contents("bob") == ["I live in Paris."], at
    assert tables_with(folder / "turns.sqlite", USER) == [], at
    return True


@pytest.mark.parametrize("every", EVERY)
async def test_whoever_is_erased_while_the_worker_learns_does_not_come_back(tmp_path: Path, every: int) -> None:
    for at in crash_points(every):
        if not await learn_and_erase(tmp_path / str(at), at):
            break
    assert at > 50  # the worker waits often enough for this to say something
