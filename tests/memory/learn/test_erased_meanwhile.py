"""A user is erased while the worker learns, at every await of it, or opts out: nothing of the user comes back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from absent_stores import memory_bank
from learning_parts import Bench, Faults
from plain_reader import PlainReader
from suspensions import EVERY, crash_points
from token_counts import counted_tokens
from turn_logs import START, Process, sqlite_deployment

from memory.errors import Conflict, Unavailable
from memory.learn.worker import WorkerSettings
from memory.model import Role
from memory.service.requests import Intake
from memory.service.service_parts import ServiceParts
from memory.service.shared_projects import SharedProjects
from memory.service.user_erasures import UserErasures
from memory.service.user_writes import OptOutService

USER = "ann-7f3a"
TRIES_MAX = 20
SETTINGS = WorkerSettings(words_of=frozenset({Role.USER, Role.ASSISTANT}))


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


async def erased(bench: Bench, process: Process) -> None:
    bench.deployment.clock.now += 1
    bank = memory_bank(bench.store, process.ledger, bench.embedder)
    intake = Intake(bench.deployment.clock, lambda: "e1", str, counted_tokens())
    parts = ServiceParts(bank, process.log, process.stores, intake)
    for _ in range(TRIES_MAX):
        with suppress(Conflict, Unavailable):  # whoever calls repeats it
            await UserErasures(parts, SharedProjects(parts)).everything(USER)
            return
    raise AssertionError("the user's lock was never free")


async def learn_and_erase(folder: Path, at: int) -> bool:
    """Whether there is an await with that number."""
    bench = Bench(sqlite_deployment(folder))
    async with bench.deployment.start() as process:
        worker = bench.worker(process, settings=SETTINGS)
        await bench.learn(process, "My cat is called Tom. I like tea.", user=USER, worker=worker)
        await bench.tell(process, "I live in Paris.", user="bob")
        await bench.tell(process, "I live in Rome. My cat is called Felix.", user=USER)
        await bench.tell(process, "Please forget that I like tea.", user=USER, session="s2")
        process.usage_counts.count(USER, [one.id for one in await bench.memories(USER)], at=bench.deployment.clock())
        meanwhile = ErasedAt(at, lambda: erased(bench, process))
        await bench.worker(process, model=PlainReader(), faults=meanwhile, settings=SETTINGS).work_off()
        if meanwhile.started is None:
            return False
        await meanwhile.started
        await worker.work_off()
        assert (await bench.memories(USER), await bench.raw_words(USER)) == ([], []), at
        assert await bench.contents("bob") == ["I live in Paris."], at
    assert bench.deployment.places_with(USER) == [], at
    return True


@pytest.mark.parametrize("every", EVERY)
async def test_whoever_is_erased_while_the_worker_learns_does_not_come_back(tmp_path: Path, every: int) -> None:
    for at in crash_points(every):
        if not await learn_and_erase(tmp_path / str(at), at):
            break
    assert at > 50  # the worker waits often enough for this to say something


async def test_turns_that_waited_are_not_learnt_and_later_ones_are_and_what_is_to_be_forgotten_goes_meanwhile(
    bench: Bench, process: Process
) -> None:
    await bench.learn(process, "I live in Ulm.")
    await bench.tell(process, "I have a cat.")
    await process.opt_outs.set("ann", at=START)
    await bench.learn(process, "I live in Bonn.", user="bob")
    assert (await bench.contents(), await bench.contents("bob")) == (["I live in Ulm."], ["I live in Bonn."])
    await bench.learn(process, "Please forget where I live. I like milk.")
    assert await bench.contents() == []
    await process.opt_outs.clear("ann")
    await bench.learn(process, "I like tea.")
    assert await bench.contents() == ["I like tea."]


class OptsOutMeanwhile(Faults):
    """The user opts out right before the worker takes their lock, or right before it writes under it."""

    def __init__(self, service: OptOutService, before: str) -> None:
        super().__init__()
        self._service = service
        self._before = before
        self.opting: asyncio.Task[float] | None = None

    async def strike(self, name: str, *, is_after: bool) -> None:
        if name == self._before and self.opting is None:
            self.opting = asyncio.get_running_loop().create_task(self._service.opt_out("ann"))
            if name == "lock":
                await self.opting
            await asyncio.sleep(0.02)  # time to return too early
        await super().strike(name, is_after=is_after)


@pytest.mark.parametrize("before", ["lock", "apply"])
async def test_once_an_opt_out_has_returned_nothing_is_written(bench: Bench, process: Process, before: str) -> None:
    """What is being written at that moment is either complete on return, or is never written."""
    service = OptOutService(opt_outs=process.opt_outs, ledger=process.ledger, clock=bench.deployment.clock)
    await bench.tell(process, "I live in Ulm.")
    faults = OptsOutMeanwhile(service, before)
    working = asyncio.get_running_loop().create_task(bench.worker(process, faults=faults).work_off())
    while faults.opting is None:
        await asyncio.sleep(0.001)
    await faults.opting
    at_return = await bench.contents()
    await working
    assert await bench.contents() == at_return
    assert (at_return == []) == (before == "lock")
