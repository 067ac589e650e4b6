"""Proof of erasures: files are rewritten for all of a while at once, and what is left is looked for, seldom."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import cast

import pytest
import structlog
from prometheus_client import CollectorRegistry
from turn_logs import ManualClock
from virtual_time import in_virtual_time, now

from memory.adapters.sql.erasures import SqlErasures
from memory.adapters.sql.sqlite_database import SqliteDatabase
from memory.errors import Unavailable
from memory.ports.erasures import (
    ErasureProof,
    ErasureRequest,
    Erasures,
    FileRewriting,
    PlaceReport,
    ScanReport,
)
from memory.runtime.metrics import Metrics
from memory.service.erasure import Erasure
from memory.service.erasure_states import LOOK_AGAIN_SECONDS, REST_PER_SECOND, ErasureLooks, ErasureState
from memory.service.user_erasures import (
    DAY,
    RETRY_SECONDS,
    SHARED_SECONDS,
    FileRewriter,
    UserErasures,
    pause_after,
)

USER = "ann-7f3a"
HOUR = 3_600.0


class CountedScan:
    """Each look takes `seconds` by the clock, and has this result."""

    def __init__(self, report: PlaceReport | None, clock: ManualClock) -> None:
        self.looks, self.seconds, self.is_failing = 0, 0.0, False
        self.has_begun, self.may_end = asyncio.Event(), asyncio.Event()
        self.may_end.set()
        self._report = report
        self._clock = clock

    async def scan(self, wanted: Sequence[str]) -> PlaceReport | None:
        assert wanted[0].startswith(USER)
        self.looks += 1
        self.has_begun.set()
        await asyncio.sleep(0)
        await self.may_end.wait()
        self._clock.now += self.seconds
        if self.is_failing:
            raise Unavailable("files", "they could not be read")
        return self._report


CLEAN = PlaceReport("files", "every file", 3, 30)
FOUND = PlaceReport("postgres", "every row", 9, 90, found_in=("a row",))
UNREAD = PlaceReport("milvus", "every row", 5, 50, not_searched=("files of the server",))


@asynccontextmanager
async def looked_for(
    folder: Path, clock: ManualClock, *places: PlaceReport | None
) -> AsyncIterator[tuple[UserErasures, SqlErasures, list[CountedScan]]]:
    """An erasure `e1` of rewritten files, and looks that have these results."""
    async with SqliteDatabase(folder / "turns.sqlite") as database:
        record, scans = SqlErasures(database), [CountedScan(one, clock) for one in places]
        await erased(record, "e1", clock)
        proof = ErasureProof(record, tuple(scans))
        looks = ErasureLooks(record, clock=clock)
        yield UserErasures(cast(Erasure, None), proof, looks=looks, clock=clock, new_id=lambda: "e2"), record, scans


async def erased(record: SqlErasures, erasure_id: str, clock: ManualClock, user: str = USER, *, part: str = "") -> None:
    """One more erasure whose files are rewritten."""
    await record.begun(user, ErasureRequest(erasure_id, clock(), clock(), {}), part=part)
    await record.rewritten(await record.pending(), at=clock())


@pytest.mark.parametrize(
    ("places", "state"),
    [
        ([CLEAN], ErasureState.PROVEN),
        ([CLEAN, None], ErasureState.PROVEN),
        ([CLEAN, UNREAD], ErasureState.PARTLY_PROVEN),
        ([CLEAN, FOUND, UNREAD], ErasureState.REMAINS),
    ],
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


async def test_whoever_asks_at_once_shares_one_look_and_what_remains_is_looked_for_again_a_minute_later(
    tmp_path: Path,
) -> None:
    clock = ManualClock()
    async with looked_for(tmp_path, clock, FOUND) as (erasures, _, [scan]):
        for looks in (1, 2, 3):
            found = await asyncio.gather(*(erasures.status(USER, "e1") for _ in range(3)))
            assert [one.state for one in found] == [ErasureState.REMAINS] * 3
            clock.now += LOOK_AGAIN_SECONDS - 1
            await erasures.status(USER, "e1")
            assert scan.looks == looks
            clock.now += 1


@pytest.mark.parametrize("place", [CLEAN, UNREAD], ids=["proven", "partly proven"])
async def test_where_nothing_was_found_nobody_looks_again(tmp_path: Path, place: PlaceReport) -> None:
    clock = ManualClock()
    async with looked_for(tmp_path, clock, place) as (erasures, _, [scan]):
        for _ in range(3):
            await erasures.status(USER, "e1")
            clock.now += HOUR
        assert scan.looks == 1


@pytest.mark.parametrize("is_at_once", [True, False])
async def test_nobody_waits_for_a_look_for_somebody_else(tmp_path: Path, *, is_at_once: bool) -> None:
    """`is_at_once`: both ask at the same moment, and either may be the first; else the other comes during the look."""
    clock = ManualClock()
    async with looked_for(tmp_path, clock, FOUND) as (erasures, record, [scan]):
        scan.may_end.clear()
        for user in (USER, f"{USER}-2"):
            await erased(record, f"of-{user}", clock, user)
        async with asyncio.timeout(60), asyncio.TaskGroup() as group:
            asked = [group.create_task(erasures.status(USER, f"of-{USER}"))]
            if not is_at_once:
                await scan.has_begun.wait()
                asked.append(group.create_task(erasures.status(USER, f"of-{USER}")))
            asked.append(group.create_task(erasures.status(f"{USER}-2", f"of-{USER}-2")))
            done, waiting = await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
            scan.may_end.set()
        assert [one.result().state for one in done] == [ErasureState.REWRITTEN]
        assert {one.result().state for one in waiting} == {ErasureState.REMAINS}
        assert scan.looks == 1


@pytest.mark.parametrize("is_failing", [False, True])
async def test_looks_take_a_fifth_of_the_time_however_many_users_ask(tmp_path: Path, *, is_failing: bool) -> None:
    clock = ManualClock()
    async with looked_for(tmp_path, clock, FOUND) as (erasures, record, [scan]):
        scan.seconds, scan.is_failing = 3.0, is_failing
        users = [f"{USER}-{number}" for number in range(12)]
        for user in users:
            await erased(record, f"of-{user}", clock, user)
        began_at = clock()
        while clock() < began_at + 10 * (1 + REST_PER_SECOND) * scan.seconds:
            calls = (erasures.status(user, f"of-{user}") for user in users)
            await asyncio.gather(*calls, return_exceptions=is_failing)
            clock.now += scan.seconds
        assert 8 <= scan.looks <= 11


# Files


class CountedStore:
    """A store whose rows would all be copied, unless it refuses."""

    def __init__(self, *, refuses: bool = False) -> None:
        self.rewritings: list[float] = []
        self._refuses = refuses

    async def refuse_in_vain(self) -> None: ...

    async def rewrite(self) -> None:
        self.rewritings.append(now())
        if self._refuses:
            raise Unavailable("turn_log", "PostgreSQL refuses VACUUM")


def rewriter_of(erasures: Erasures, *parts: FileRewriting, clock: Callable[[], float]) -> FileRewriter:
    return FileRewriter(erasures, parts, clock=clock, metrics=Metrics(CollectorRegistry()), keep_days=2)


@pytest.mark.parametrize(("bytes_max", "rewritings"), [(1_000, 0), (1 << 30, 1)])
async def test_the_store_is_not_copied_again_and_again_for_a_turn_log_that_is_too_large(
    tmp_path: Path, bytes_max: int, rewritings: int
) -> None:
    store, clock = CountedStore(), ManualClock()
    async with SqliteDatabase(tmp_path / "turns.sqlite", rewrite_bytes_max=bytes_max) as database:
        erasures = SqlErasures(database)
        rewriter = rewriter_of(erasures, store, database, clock=clock)
        assert await rewriter.run_once() is None
        assert store.rewritings == []  # nobody waits
        await erasures.begun(USER, ErasureRequest("e1", clock(), clock(), {}))
        if not rewritings:
            with pytest.raises(Unavailable, match="memproxy compact"):
                await rewriter.run_once()
        else:
            await rewriter.run_once()
        assert len(store.rewritings) == rewritings
        found = await erasures.get(USER, "e1")
        assert found is not None
        assert (found.rewritten_at is not None) == bool(rewritings)


def test_rewriting_takes_a_fifth_of_the_time_at_most() -> None:
    assert pause_after(None) == 1.0
    assert pause_after(0.0) == pause_after(1.0) == SHARED_SECONDS
    assert pause_after(60.0) == 240.0


class Waiting:
    """`Erasures` in a list, as a rewriter needs them. Old records are not deleted while `is_failing`."""

    def __init__(self) -> None:
        self.waiting: list[ErasureRequest] = []
        self.expired: list[float] = []
        self.is_failing = False

    def begin(self) -> None:
        self.waiting.append(ErasureRequest(f"at {now()}", now(), now(), {}))

    async def pending(self) -> list[ErasureRequest]:
        return list(self.waiting)

    async def rewritten(self, requests: Sequence[ErasureRequest], *, at: float) -> None:
        self.waiting = [one for one in self.waiting if one not in requests]

    async def expire(self, *, before: float) -> None:
        if self.is_failing:
            raise Unavailable("turn_log", "the database is locked")
        self.expired.append(before)


@asynccontextmanager
async def rewriting(*parts: FileRewriting) -> AsyncIterator[Waiting]:
    """A rewriter at work, in virtual time."""
    erasures, until = Waiting(), asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(rewriter_of(cast(Erasures, erasures), *parts, clock=now).run(until))
        yield erasures
        until.set()


@in_virtual_time
async def test_erasures_that_happen_close_together_share_a_rewriting() -> None:
    store = CountedStore()
    async with rewriting(store) as erasures:
        for _ in range(40):
            erasures.begin()
            await asyncio.sleep(0.3)
        await asyncio.sleep(SHARED_SECONDS)
        assert erasures.waiting == []
    assert [after - before for before, after in pairwise(store.rewritings)] == [SHARED_SECONDS] * 3


@in_virtual_time
async def test_what_cannot_be_rewritten_is_tried_once_a_minute_and_old_records_go_meanwhile() -> None:
    store = CountedStore()
    async with rewriting(store, CountedStore(refuses=True)) as erasures:
        erasures.begin()
        await asyncio.sleep(30 * RETRY_SECONDS + 1)
    assert [after - before for before, after in pairwise(store.rewritings)] == [RETRY_SECONDS] * 30
    assert erasures.expired == [-2 * DAY], "once an hour"


@in_virtual_time
async def test_records_that_cannot_be_deleted_keep_no_file_from_being_rewritten() -> None:
    with structlog.testing.capture_logs() as logs:
        async with rewriting() as erasures:
            erasures.is_failing = True
            erasures.begin()
            await asyncio.sleep(SHARED_SECONDS)
            assert erasures.waiting == []
            erasures.is_failing = False
            await asyncio.sleep(2 * RETRY_SECONDS)
    assert {one["event"] for one in logs} == {"old records of erasures are not deleted: trying again"}
    assert erasures.expired
