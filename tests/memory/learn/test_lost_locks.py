"""Who was frozen until the user's lock went to somebody else: writes nothing more, or mends what came too late."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, cast

import pytest
from learning_parts import Bench
from turn_logs import Process, sqlite_deployment

from memory.adapters.ledger_sqlite import LOCK_SECONDS, WORK_SECONDS_MAX
from memory.adapters.milvus import MilvusTimeouts
from memory.adapters.sqlite_database import CALL_SECONDS_MAX
from memory.errors import Conflict
from memory.model import MemoryStatus

FROZEN_SECONDS = 31.0


class _Frozen:
    """A part whose calls of one name come late: somebody else gets all their work done before they take effect."""

    def __init__(self, part: Any, name: str, meanwhile: Callable[[], Awaitable[None]]) -> None:
        self._part = part
        self._name = name
        self._meanwhile = meanwhile

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._part, name)
        if name != self._name:
            return attribute

        async def late(*arguments: Any, **options: Any) -> Any:
            meanwhile, self._meanwhile = self._meanwhile, _nothing
            await meanwhile()
            return await attribute(*arguments, **options)

        return late


async def _nothing() -> None:
    return


@pytest.mark.parametrize(
    ("frozen_in", "meanwhile"), [("store", "I moved to Berlin."), ("plan", "I moved to Berlin."), ("store", "")]
)
async def test_a_worker_that_was_frozen_leaves_what_everybody_said(
    tmp_path: Path, frozen_in: str, meanwhile: str
) -> None:
    bench = Bench(sqlite_deployment(tmp_path))
    async with bench.deployment.start() as frozen, bench.deployment.start() as other:
        await bench.tell(frozen, "I live in Paris.", session="s0")
        await bench.worker(frozen).work_off()
        await bench.tell(frozen, "I moved to Rome.", session="s1")
        others, real = bench.worker(other), bench.store

        async def others_learn() -> None:
            bench.deployment.clock.now += FROZEN_SECONDS
            bench.store = real
            if meanwhile:
                await bench.tell(other, meanwhile, session="s2")
            await others.work_off()

        process = frozen
        if frozen_in == "store":
            bench.store = cast(Any, _Frozen(real, "apply", others_learn))
        else:
            process = Process(
                cast(Any, _Frozen(frozen.log, "save_plan", others_learn)),
                frozen.ledger,
                frozen.notes,
                frozen.receipts,
                frozen.uses,
            )
        await bench.worker(process).work_off()
        bench.store = real
        bench.deployment.clock.now += FROZEN_SECONDS
        await others.work_off()
        active = [memory.content for memory in await bench.memories(status=MemoryStatus.ACTIVE)]
        assert active == [meanwhile or "I moved to Rome."]
        assert len(await bench.memories()) == (3 if meanwhile else 2)
        assert (await other.ledger.revision("ann")).is_settled
        assert (await other.log.backlog("ann", opened_before=1e12)).pending == 0


async def test_nothing_is_written_or_forgotten_under_a_lock_that_somebody_else_took(tmp_path: Path) -> None:
    deployment = sqlite_deployment(tmp_path)
    async with deployment.start() as slow, deployment.start() as other:
        lock = slow.ledger.write("ann")
        held = await lock.__aenter__()
        deployment.clock.now += FROZEN_SECONDS
        await held.renew()  # nobody was faster
        deployment.clock.now += FROZEN_SECONDS
        async with other.ledger.write("ann") as theirs:
            with pytest.raises(Conflict):
                await held.renew()
            with pytest.raises(Conflict):
                await held.forget(["m"])
            assert await theirs.forgotten(["m"]) == frozenset()
        with pytest.raises(Conflict):
            await lock.__aexit__(None, None, None)


async def test_a_renewed_lock_outlives_its_first_term(tmp_path: Path) -> None:
    deployment = sqlite_deployment(tmp_path)
    async with deployment.start() as slow:
        async with slow.ledger.write("ann") as held:
            for _ in range(3):
                deployment.clock.now += LOCK_SECONDS - 1
                await held.renew()
                await slow.log.recover()
        assert (await slow.ledger.revision("ann")).number == 2


def test_one_write_takes_less_time_than_the_lock_lasts() -> None:
    store = MilvusTimeouts()
    assert CALL_SECONDS_MAX + store.read + store.write <= WORK_SECONDS_MAX < LOCK_SECONDS
