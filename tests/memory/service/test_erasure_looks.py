"""Looks for what is left of erasures: what they prove, that all who ask share them, and how seldom they are made."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import cast

import pytest
from turn_logs import ManualClock

from memory.adapters.sqlite.database import SqliteDatabase
from memory.adapters.sqlite.erasures import SqliteErasures
from memory.errors import Unavailable
from memory.ports.erasures import (
    ERASURES_PER_USER_MAX,
    ErasureProof,
    ErasureRecord,
    ErasureRequest,
    PlaceReport,
    ScanReport,
)
from memory.service import erasure_states
from memory.service.erasure import Erasure
from memory.service.erasure_states import (
    FIRST_LOOK_SECONDS,
    LOOK_AGAIN_SECONDS,
    LOOK_AGAIN_SECONDS_MAX,
    LOOKS_COUNT_SECONDS,
    PARTLY_AGAIN_SECONDS,
    PLACE_SECONDS,
    REST_PER_SECOND,
    ErasureLooks,
    ErasureState,
)
from memory.service.user_erasures import UserErasures

USER = "ann-7f3a"
HOUR = 3_600.0


class CountedScan:
    """Each look takes a moment, by the clock `seconds`, and has this result."""

    def __init__(self, report: PlaceReport | None, clock: ManualClock) -> None:
        self.looks, self.seconds, self.is_failing = 0, 0.0, False
        self.may_end = asyncio.Event()
        self.may_end.set()
        self._report = report
        self._clock = clock

    async def scan(self, wanted: Sequence[str]) -> PlaceReport | None:
        assert wanted[0].startswith(USER)
        self.looks += 1
        await asyncio.sleep(0.01)
        await self.may_end.wait()
        self._clock.now += self.seconds
        if self.is_failing:
            raise Unavailable("files", "they could not be read")
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
        record, scans = SqliteErasures(database), [CountedScan(one, clock) for one in places]
        await record.begun(USER, ErasureRequest("e1", clock(), clock(), {}))
        await record.rewritten(await record.pending(), at=clock())
        proof = ErasureProof(record, tuple(scans))
        looks = ErasureLooks(record, clock=clock)
        yield UserErasures(cast(Erasure, None), proof, looks=looks, clock=clock, new_id=lambda: "e2"), record, scans


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


async def erased(
    record: SqliteErasures, erasure_id: str, clock: ManualClock, user: str = USER, *, part: str = ""
) -> None:
    """One more erasure whose files are rewritten."""
    await record.begun(user, ErasureRequest(erasure_id, clock(), clock(), {}), part=part)
    await record.rewritten(await record.pending(), at=clock())


async def test_while_something_remains_each_look_is_twice_as_long_after_the_last_up_to_an_hour(tmp_path: Path) -> None:
    clock = ManualClock()
    async with looked_for(tmp_path, clock, FOUND) as (erasures, _, [scan]):
        began_at, times = clock(), list[float]()
        while clock() < began_at + 5 * HOUR:
            before = scan.looks
            await erasures.status(USER, "e1")
            times += [clock()] * (scan.looks - before)
            clock.now += LOOK_AGAIN_SECONDS
        gaps = [after - before for before, after in pairwise(times)]
        assert gaps[:5] == [LOOK_AGAIN_SECONDS * factor for factor in (1, 2, 4, 8, 16)]
        assert max(gaps) == gaps[-1] == LOOK_AGAIN_SECONDS_MAX


@pytest.mark.parametrize("places", [[FOUND], [CLEAN], [UNREAD]], ids=["remains", "proven", "partly proven"])
async def test_being_erased_again_does_not_make_looks_more_frequent(tmp_path: Path, places: list[PlaceReport]) -> None:
    clock = ManualClock()
    async with looked_for(tmp_path, clock, *places) as (erasures, record, [scan]):
        for number in range(2 * ERASURES_PER_USER_MAX):
            await erased(record, f"again-{number}", clock)
            await erasures.status(USER, f"again-{number}")
            clock.now += HOUR / 100
        assert scan.looks <= 10  # after 10 s, 20 s, … 2,560 s: within two hours


async def test_so_many_erasures_that_the_first_is_forgotten_do_not_either(tmp_path: Path) -> None:
    clock = ManualClock()
    async with looked_for(tmp_path, clock, FOUND) as (erasures, record, [scan]):
        for _ in range(9):
            await erasures.status(USER, "e1")
            clock.now += LOOK_AGAIN_SECONDS_MAX
        assert scan.looks == 9
        await erasures.status(USER, "e1")
        for number in range(ERASURES_PER_USER_MAX + 1):
            await erased(record, f"again-{number}", clock)
        clock.now += LOOK_AGAIN_SECONDS_MAX - 1
        await erasures.status(USER, f"again-{ERASURES_PER_USER_MAX}")
        assert scan.looks == 10


async def test_a_day_after_the_last_look_the_next_is_the_first_again(tmp_path: Path) -> None:
    clock = ManualClock()
    async with looked_for(tmp_path, clock, FOUND) as (erasures, _, [scan]):
        for pause in (LOOK_AGAIN_SECONDS, 2 * LOOK_AGAIN_SECONDS, LOOKS_COUNT_SECONDS, LOOK_AGAIN_SECONDS, 0.0):
            await erasures.status(USER, "e1")
            clock.now += pause
        assert scan.looks == 5


async def test_nobody_waits_for_a_look_for_somebody_else(tmp_path: Path) -> None:
    clock = ManualClock()
    async with looked_for(tmp_path, clock, FOUND) as (erasures, record, [scan]):
        scan.may_end.clear()
        for user in (USER, f"{USER}-2"):
            await erased(record, f"of-{user}", clock, user)
        async with asyncio.TaskGroup() as group:
            same = [group.create_task(erasures.status(USER, f"of-{USER}")) for _ in range(2)]
            while not scan.looks:
                await asyncio.sleep(0.001)
            other = await erasures.status(f"{USER}-2", f"of-{USER}-2")
            assert not any(one.done() for one in same)
            scan.may_end.set()
        assert other.state == ErasureState.REWRITTEN
        assert [one.result().state for one in same] == [ErasureState.REMAINS] * 2
        assert scan.looks == 1


async def test_of_two_who_ask_at_the_same_moment_the_second_does_not_wait_for_the_look_of_the_first(
    tmp_path: Path,
) -> None:
    clock = ManualClock()
    async with looked_for(tmp_path, clock, FOUND) as (erasures, record, [scan]):
        scan.may_end.clear()
        for user in (USER, f"{USER}-2"):
            await erased(record, f"of-{user}", clock, user)
        async with asyncio.TaskGroup() as group:
            both = [group.create_task(erasures.status(user, f"of-{user}")) for user in (USER, f"{USER}-2")]
            async with asyncio.timeout(60):
                done, _ = await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            scan.may_end.set()
        assert [one.result().state for one in done] == [ErasureState.REWRITTEN]
        assert scan.looks == 1


async def test_erasing_ever_more_projects_does_not_make_looks_frequent_and_the_first_for_each_comes_within_a_minute(
    tmp_path: Path,
) -> None:
    """Names of projects are free."""
    clock, looked = ManualClock(), list[tuple[str, float]]()

    async def look(found: ErasureRecord) -> list[PlaceReport]:
        looked.append((found.request.id, clock()))
        return [FOUND]

    async with SqliteDatabase(tmp_path / "turns.sqlite") as database:
        record = SqliteErasures(database)
        looks, began_at = ErasureLooks(record, clock=clock), clock()
        names = [f"project-{number}" for number in range(8)]
        for name in names:
            await erased(record, name, clock, part=name)
        while clock() < began_at + HOUR:
            for name in names:
                await looks.status(USER, name, look, part=name)
            clock.now += LOOK_AGAIN_SECONDS
        times = [at for _, at in looked]
        assert [after - before for before, after in pairwise(times)][:3] == [10.0, 20.0, 40.0]
        assert {name for name, at in looked if at <= began_at + FIRST_LOOK_SECONDS * (len(names) + 1)} == set(names)
        assert len(looked) <= len(names) + 3, "after the first for each they are as rare as hourly"


async def test_whoever_was_turned_away_first_is_the_next_to_look_and_not_whoever_asks_most_often(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(erasure_states, "PLACES_MAX", 2)
    clock = ManualClock()
    async with looked_for(tmp_path, clock, FOUND) as (erasures, record, [scan]):
        scan.seconds = 2.0
        users = [f"{USER}-{number}" for number in range(5)]
        for user in users:
            await erased(record, f"of-{user}", clock, user)

        async def has_looked(number: int) -> bool:
            found = await erasures.status(users[number], f"of-{users[number]}")
            return found.state == ErasureState.REMAINS

        assert await has_looked(0)
        assert [await has_looked(number) for number in (2, 1, 2, 3, 4)] == [False] * 5  # it rests; 3 and 4 get no place
        clock.now += REST_PER_SECOND * scan.seconds
        assert [await has_looked(number) for number in (1, 3, 4, 1, 2)] == [False] * 4 + [True]
        assert not await has_looked(4)  # now one is free
        clock.now += REST_PER_SECOND * scan.seconds
        assert [await has_looked(number) for number in (3, 4, 1)] == [False, False, True]


async def test_who_does_not_come_back_keeps_nobody_waiting_for_longer_than_a_minute(tmp_path: Path) -> None:
    clock = ManualClock()
    async with looked_for(tmp_path, clock, FOUND) as (erasures, record, [scan]):
        scan.seconds = 1.0
        await erased(record, "other", clock, f"{USER}-2")
        await erased(record, "late", clock, f"{USER}-3")
        for user, erasure_id in ((USER, "e1"), (f"{USER}-2", "other")):  # the second is turned away, and gives up
            await erasures.status(user, erasure_id)
        for seconds, state in ((PLACE_SECONDS - 1, ErasureState.REWRITTEN), (1.0, ErasureState.REMAINS)):
            clock.now += seconds
            assert (await erasures.status(f"{USER}-3", "late")).state == state


@pytest.mark.parametrize("is_failing", [False, True])
async def test_looks_take_a_fifth_of_the_time_however_many_users_ask(tmp_path: Path, *, is_failing: bool) -> None:
    clock = ManualClock()
    async with looked_for(tmp_path, clock, FOUND) as (erasures, record, [scan]):
        scan.seconds, scan.is_failing = 3.0, is_failing
        users = [f"{USER}-{number}" for number in range(40)]
        for user in users:
            await erased(record, f"of-{user}", clock, user)
        began_at = clock()
        while clock() < began_at + 10 * (1 + REST_PER_SECOND) * scan.seconds:
            calls = (erasures.status(user, f"of-{user}") for user in users)
            await asyncio.gather(*calls, return_exceptions=is_failing)
            clock.now += 1.0
        assert 8 <= scan.looks <= 11
