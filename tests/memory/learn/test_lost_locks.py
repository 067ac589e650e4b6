"""Who was frozen until the user's lock went to somebody else: writes nothing more, or mends what came too late."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest
from frozen_parts import Frozen
from learning_parts import Bench
from turn_logs import Process, sqlite_deployment

from memory.adapters.ledger_sqlite import LOCK_SECONDS, WORK_SECONDS_MAX
from memory.adapters.milvus import MilvusTimeouts
from memory.adapters.sqlite_database import CALL_SECONDS_MAX
from memory.errors import Conflict
from memory.model import MemoryStatus

FROZEN_SECONDS = 31.0


@pytest.mark.parametrize(
    ("frozen_in", "meanwhile"),
    [
        ("store", "I moved to Berlin."),
        ("sending", "I moved to Berlin."),
        ("plan", "I moved to Berlin."),
        ("store", ""),
        ("sending", ""),
    ],
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
        store = Frozen(real, "apply", others_learn, is_sending=frozen_in == "sending")
        if frozen_in != "plan":
            bench.store = cast(Any, store)
        else:
            process = Process(
                cast(Any, Frozen(frozen.log, "save_plan", others_learn)),
                frozen.ledger,
                frozen.notes,
                frozen.receipts,
                frozen.uses,
            )
        await bench.worker(process).work_off()
        assert store.has_arrived is (frozen_in == "sending")
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
