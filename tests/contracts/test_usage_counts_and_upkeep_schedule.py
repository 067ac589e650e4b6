"""Uses of memories, and whose turn it is to be looked after: counted once, by whichever process. On every adapter."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from redis_parts import shared_client
from turn_logs import START, ManualClock

from memory.adapters.redis.background import RedisBackground
from memory.adapters.redis.ledger import RedisUserLedger
from memory.adapters.redis.owners import RedisOwners
from memory.adapters.redis.upkeep_schedule import RedisUpkeepSchedule
from memory.adapters.redis.usage_counts import RedisUsageCounts
from memory.adapters.sqlite.database import SqliteDatabase
from memory.adapters.sqlite.ledger import SqliteUserLedger
from memory.adapters.sqlite.upkeep_schedule import SqliteUpkeepSchedule
from memory.adapters.sqlite.usage_counts import SqliteUsageCounts
from memory.adapters.usage_tally import GATHERED_MAX
from memory.ports import UpkeepSchedule, UsageCount, UsageCounts, UserLedger

DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class Process:
    usage_counts: UsageCounts
    upkeep_schedule: UpkeepSchedule
    ledger: UserLedger


Opener = Callable[[Path], AbstractAsyncContextManager[Process]]


@asynccontextmanager
async def sqlite_process(folder: Path) -> AsyncIterator[Process]:
    async with (
        SqliteDatabase(folder / "turns.sqlite") as database,
        SqliteUsageCounts(database, flush_seconds=60.0) as usage_counts,
    ):
        yield Process(usage_counts, SqliteUpkeepSchedule(database), SqliteUserLedger(database, clock=ManualClock()))


@asynccontextmanager
async def redis_process(folder: Path, *, is_cluster: bool = False) -> AsyncIterator[Process]:
    async with (
        shared_client(folder, is_cluster=is_cluster) as client,
        RedisOwners(client) as owners,
        RedisBackground() as background,
        RedisUsageCounts(client, background, flush_seconds=60.0) as usage_counts,
    ):
        ledger = RedisUserLedger(client, owners, clock=ManualClock())
        yield Process(usage_counts, RedisUpkeepSchedule(client), ledger)


KINDS: dict[str, Opener] = {
    "sqlite": sqlite_process,
    "redis": redis_process,
    "redis cluster": partial(redis_process, is_cluster=True),
}


@pytest.fixture(params=KINDS.values(), ids=KINDS)
def start(request: pytest.FixtureRequest) -> Opener:
    opener: Opener = request.param
    return opener


@pytest.fixture
async def process(start: Opener, tmp_path: Path) -> AsyncIterator[Process]:
    async with start(tmp_path) as opened:
        yield opened


async def counted(start: Opener, folder: Path, *memory_ids: str, user: str = "ann", at: float = START) -> None:
    """Another process counts, and ends."""
    async with start(folder) as other:
        other.usage_counts.count(user, memory_ids, at=at)


async def test_uses_of_several_processes_add_up_and_outlive_them(start: Opener, tmp_path: Path) -> None:
    async with start(tmp_path) as one, start(tmp_path) as two:
        one.usage_counts.count("ann", ["a", "b"], at=START)
        two.usage_counts.count("ann", ["a"], at=START + 9)
        one.usage_counts.count("ann", ["a"], at=START + 5)
        one.usage_counts.count("bob", ["a"], at=START)
    async with start(tmp_path) as later:
        found = await later.usage_counts.unstored("ann", limit=10)
    assert found == {"a": UsageCount(3, 0, START + 9), "b": UsageCount(1, 0, START)}


async def test_shared_projects_are_not_users_and_get_no_round(process: Process) -> None:
    for owner in (" project/k1", "ann", " project/k2"):
        async with process.ledger.write(owner) as held:
            held.touch(["m"])
    schedule = process.upkeep_schedule
    assert await schedule.users(after="", limit=9) == ["ann"]
    for day, expected in ((0, None), (2, "ann"), (2, None)):
        now = START + day * DAY
        assert await schedule.next_due(now=now, every=DAY, patience=60.0) == expected
        if expected is not None:
            await schedule.ended(expected, now=now)


async def test_uses_are_written_behind_the_request_many_at_once(tmp_path: Path) -> None:
    async with (
        SqliteDatabase(tmp_path / "turns.sqlite") as database,
        SqliteUsageCounts(database, flush_seconds=0.05) as usage_counts,
    ):
        before = database.commits
        for _ in range(1_000):
            usage_counts.count("ann", ["a", "b"], at=START)
        assert await usage_counts.unstored("ann", limit=10) == {}
        while not await usage_counts.unstored("ann", limit=10):
            pass
        assert await usage_counts.unstored("ann", limit=10) == {
            "a": UsageCount(1_000, 0, START),
            "b": UsageCount(1_000, 0, START),
        }
        await database.write(
            lambda _: None
        )  # rows are seen before their commit is counted; the next one counts after it
        assert database.commits == before + 2


async def test_what_is_gathered_between_two_writes_is_bounded(start: Opener, tmp_path: Path) -> None:
    await counted(start, tmp_path, *(f"m{number}" for number in range(GATHERED_MAX + 50)))
    async with start(tmp_path) as later:
        assert len(await later.usage_counts.unstored("ann", limit=2 * GATHERED_MAX)) == GATHERED_MAX


async def test_counting_never_raises_when_the_part_is_gone(tmp_path: Path) -> None:
    async with SqliteDatabase(tmp_path / "turns.sqlite") as database:
        usage_counts = SqliteUsageCounts(database, flush_seconds=0.0)
    async with usage_counts:
        usage_counts.count("ann", ["a"], at=START)


async def test_a_use_counts_once_though_whoever_stored_it_died_before_saying_so(start: Opener, tmp_path: Path) -> None:
    await counted(start, tmp_path, "a", "a", "a")
    async with start(tmp_path) as first:
        await first.usage_counts.begin_store("ann", {"a": 10})
        assert (await first.usage_counts.unstored("ann", limit=10))["a"].on_top_of(10) == 13
    await counted(start, tmp_path, "a")  # the store has 13 by now, or still has 10
    async with start(tmp_path) as second:
        [waiting] = (await second.usage_counts.unstored("ann", limit=10)).values()
        assert waiting.on_top_of(13) == waiting.on_top_of(10) == 14
        await second.usage_counts.begin_store("ann", {"a": 13})
        [settled] = (await second.usage_counts.unstored("ann", limit=10)).values()
        assert (settled.counted, settled.total) == (0, 14)


async def test_what_was_counted_while_it_was_stored_stays(start: Opener, tmp_path: Path) -> None:
    await counted(start, tmp_path, "a", "b")
    async with start(tmp_path) as here:
        await here.usage_counts.begin_store("ann", {"a": 0, "b": 0})
        await counted(start, tmp_path, "b", at=START + 1)
        await here.usage_counts.end_store("ann", ["a", "b"])
        assert await here.usage_counts.unstored("ann", limit=10) == {"b": UsageCount(1, 0, START + 1)}


async def test_dropped_uses_are_gone_and_nobody_elses(start: Opener, tmp_path: Path) -> None:
    await counted(start, tmp_path, "a", "b", "c")
    await counted(start, tmp_path, "a", user="bob")
    async with start(tmp_path) as here:
        here.usage_counts.count("ann", ["a", 'it\'s "你"'], at=START)  # not written yet
        await here.usage_counts.drop("ann", ["a", 'it\'s "你"'])
    async with start(tmp_path) as here:
        assert set(await here.usage_counts.unstored("ann", limit=10)) == {"b", "c"}
        assert list(await here.usage_counts.unstored("ann", limit=1)) == ["b"]
        await here.usage_counts.drop("ann", [])
        assert await here.usage_counts.unstored("ann", limit=10) == {}
        assert set(await here.usage_counts.unstored("bob", limit=10)) == {"a"}


# Rounds


async def known(process: Process, *users: str) -> None:
    """Somebody wrote a memory of theirs."""
    for user in users:
        async with process.ledger.write(user) as held:
            held.touch([f"a memory of {user}"])


async def due(process: Process, days: float) -> str | None:
    return await process.upkeep_schedule.next_due(now=START + days * DAY, every=DAY, patience=600.0)


async def test_everybody_whose_memories_were_written_to_is_known_in_order_and_by_pages(process: Process) -> None:
    await known(process, "bob", "ann", "周", 'eve"')
    assert await process.upkeep_schedule.users(after="", limit=2) == ["ann", "bob"]
    assert await process.upkeep_schedule.users(after="bob", limit=9) == ['eve"', "周"]
    assert await process.upkeep_schedule.users(after="周", limit=9) == []


async def test_a_new_user_is_due_after_the_time_between_two_rounds(process: Process) -> None:
    assert await due(process, 0) is None
    await known(process, "ann")
    assert await due(process, 1) is None
    assert await due(process, 1.9) is None
    assert await due(process, 2) == "ann"


async def test_one_user_at_a_time_whoever_asks(start: Opener, tmp_path: Path) -> None:
    async with start(tmp_path) as one, start(tmp_path) as two:
        await known(one, "ann", "bob")
        assert await due(one, 0) is None
        assert await due(one, 1) == "ann"
        assert await due(two, 1) is None
        await one.upkeep_schedule.ended("ann", now=START + DAY)
        assert await due(two, 1) == "bob"
        await two.upkeep_schedule.ended("bob", now=START + DAY)
        assert await due(one, 1) is None
        assert await due(one, 2) == "ann"


async def test_a_round_that_nobody_ended_is_taken_over(start: Opener, tmp_path: Path) -> None:
    async with start(tmp_path) as dead:
        await known(dead, "ann")
        assert await due(dead, 0) is None
        assert await due(dead, 1) == "ann"
    async with start(tmp_path) as later:
        assert await due(later, 1 + 599 / DAY) is None
        assert await due(later, 1 + 601 / DAY) == "ann"
