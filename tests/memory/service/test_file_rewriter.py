"""Files after erasures: they are rewritten, all parts or none, and looked through once for all who ask."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import pytest
from prometheus_client import CollectorRegistry
from turn_logs import ManualClock

from memory.adapters.sqlite.database import SqliteDatabase
from memory.adapters.sqlite.erasures import SqliteErasures
from memory.errors import Unavailable
from memory.ports.erasures import ErasureProof, ErasureRequest, ScanReport
from memory.runtime.metrics import Metrics
from memory.service.erasure import Erasure
from memory.service.user_erasures import LOOK_AGAIN_SECONDS, ErasureState, FileRewriter, UserErasures

USER = "ann-7f3a"


class CountedStore:
    """A store whose rows would all be copied."""

    def __init__(self) -> None:
        self.rewritings = 0

    async def refuse_in_vain(self) -> None: ...

    async def rewrite(self) -> None:
        self.rewritings += 1


@pytest.mark.parametrize(("bytes_max", "rewritings"), [(1_000, 0), (1 << 30, 1)])
async def test_the_store_is_not_copied_again_and_again_for_a_turn_log_that_is_too_large(
    tmp_path: Path, bytes_max: int, rewritings: int
) -> None:
    store, clock = CountedStore(), ManualClock()
    async with SqliteDatabase(tmp_path / "turns.sqlite", rewrite_bytes_max=bytes_max) as database:
        erasures = SqliteErasures(database)
        rewriter = FileRewriter(erasures, [store, database], clock=clock, metrics=Metrics(CollectorRegistry()))
        await rewriter.run_once()
        assert store.rewritings == 0  # nobody waits
        await erasures.begun(USER, ErasureRequest("e1", clock(), clock(), {}))
        if not rewritings:
            with pytest.raises(Unavailable, match="memproxy compact"):
                await rewriter.run_once()
        else:
            await rewriter.run_once()
        assert store.rewritings == rewritings
        found = await erasures.get(USER, "e1")
        assert found is not None
        assert (found.rewritten_at is not None) == bool(rewritings)


class CountedScan:
    """Each look takes a moment, and finds the user."""

    def __init__(self, clock: ManualClock) -> None:
        self.looks = 0
        self._clock = clock

    async def scan(self, wanted: Sequence[str]) -> ScanReport:
        self.looks += 1
        await asyncio.sleep(0.01)
        return ScanReport(self._clock(), 1, 1, ("a file",))


async def test_whoever_asks_for_the_proof_at_once_shares_one_look_and_soon_after_there_is_no_other(
    tmp_path: Path,
) -> None:
    clock = ManualClock()
    scan = CountedScan(clock)
    async with SqliteDatabase(tmp_path / "turns.sqlite") as database:
        record = SqliteErasures(database)
        await record.begun(USER, ErasureRequest("e1", clock(), clock(), {}))
        await record.rewritten(["e1"], at=clock())
        proof = ErasureProof(record, scan)
        erasures = UserErasures(cast(Erasure, None), proof, clock=clock, new_id=lambda: "e2")
        for seconds, looks in ((0.0, 1), (LOOK_AGAIN_SECONDS - 1, 1), (1.0, 2)):
            clock.now += seconds
            found = await asyncio.gather(*(erasures.status(USER, "e1") for _ in range(5)))
            assert {one.state for one in found} == {ErasureState.REMAINS}
            assert scan.looks == looks
