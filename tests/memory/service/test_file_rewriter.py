"""Files after erasures: they are rewritten, all parts or none, and looked through once for all who ask."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import pytest
from prometheus_client import CollectorRegistry
from turn_logs import ManualClock

from memory.adapters.sqlite.database import SqliteDatabase
from memory.adapters.sqlite.erasures import SqliteErasures
from memory.errors import Unavailable
from memory.ports.erasures import ErasureProof, ErasureRequest, PlaceReport, ScanReport
from memory.runtime.metrics import Metrics
from memory.service.erasure import Erasure
from memory.service.erasure_states import LOOK_AGAIN_SECONDS, PARTLY_AGAIN_SECONDS, ErasureState
from memory.service.user_erasures import FileRewriter, UserErasures

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
    """Each look takes a moment, and has this result."""

    def __init__(self, report: PlaceReport | None) -> None:
        self.looks = 0
        self._report = report

    async def scan(self, wanted: Sequence[str]) -> PlaceReport | None:
        assert wanted == [USER]
        self.looks += 1
        await asyncio.sleep(0.01)
        return self._report


CLEAN = PlaceReport("files", "every file", 3, 30)
FOUND = PlaceReport("redis", "every key", 9, 90, found_in=("a key",))
UNREAD = PlaceReport("milvus", "every row", 5, 50, not_searched=("files of the server",))


@asynccontextmanager
async def looked_for(
    folder: Path, clock: ManualClock, *places: PlaceReport | None
) -> AsyncIterator[tuple[UserErasures, SqliteErasures, list[CountedScan]]]:
    """An erasure `e1` of rewritten files, and looks that have these results."""
    async with SqliteDatabase(folder / "turns.sqlite") as database:
        record, scans = SqliteErasures(database), [CountedScan(one) for one in places]
        await record.begun(USER, ErasureRequest("e1", clock(), clock(), {}))
        await record.rewritten(await record.pending(), at=clock())
        proof = ErasureProof(record, tuple(scans))
        yield UserErasures(cast(Erasure, None), proof, clock=clock, new_id=lambda: "e2"), record, scans


@pytest.mark.parametrize(
    ("places", "state"),
    [
        ([CLEAN], ErasureState.PROVEN),
        ([CLEAN, None], ErasureState.PROVEN),
        ([CLEAN, UNREAD], ErasureState.PARTLY_PROVEN),
        ([CLEAN, FOUND, UNREAD], ErasureState.REMAINS),
    ],
    ids=["nothing anywhere", "a place that another covers", "one that cannot be read", "one that holds them"],
)
async def test_an_erasure_is_proven_by_looks_into_all_places(
    tmp_path: Path, places: list[PlaceReport | None], state: ErasureState
) -> None:
    clock = ManualClock()
    async with looked_for(tmp_path, clock, *places) as (erasures, record, _):
        found = await erasures.status(USER, "e1")
        assert found.state == state
        report = ScanReport.of([one for one in places if one is not None], at=clock())
        assert (report.files, report.bytes) == (3, 30)
        assert found.record.scan == report
        assert await record.get(USER, "e1") == found.record


async def test_a_proof_of_files_alone_by_an_earlier_release_is_made_again(tmp_path: Path) -> None:
    clock = ManualClock()
    async with looked_for(tmp_path, clock, CLEAN, UNREAD) as (erasures, record, _):
        await record.scanned("e1", ScanReport(clock(), 3, 30))
        [before] = await erasures.latest(limit=9)
        assert before.state == ErasureState.REWRITTEN
        assert (await erasures.status(USER, "e1")).state == ErasureState.PARTLY_PROVEN


async def test_after_a_partial_proof_there_is_seldom_another_look(tmp_path: Path) -> None:
    clock = ManualClock()
    async with looked_for(tmp_path, clock, UNREAD) as (erasures, _, [scan]):
        for seconds, looks in ((0.0, 1), (PARTLY_AGAIN_SECONDS - 1, 1), (1.0, 2)):
            clock.now += seconds
            await erasures.status(USER, "e1")
            assert scan.looks == looks


async def test_whoever_asks_for_the_proof_at_once_shares_one_look_and_soon_after_there_is_no_other(
    tmp_path: Path,
) -> None:
    clock = ManualClock()
    async with looked_for(tmp_path, clock, FOUND) as (erasures, _, [scan]):
        for seconds, looks in ((0.0, 1), (LOOK_AGAIN_SECONDS - 1, 1), (1.0, 2)):
            clock.now += seconds
            found = await asyncio.gather(*(erasures.status(USER, "e1") for _ in range(5)))
            assert {one.state for one in found} == {ErasureState.REMAINS}
            assert scan.looks == looks
