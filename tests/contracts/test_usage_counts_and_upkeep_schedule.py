"""Uses of memories, and whose turn it is to be looked after: counted once, by whichever process. On every adapter."""

from __future__ import annotations

import asyncio
from pathlib import Path

from turn_logs import START, Deployment, Process

from memory.adapters.sql.job_writer import BATCH_JOBS_MAX
from memory.adapters.sql.sqlite_database import SqliteDatabase
from memory.adapters.sql.upkeep import SqlUsageCounts
from memory.ports import UsageCount

DAY = 86_400.0


async def counted(deployment: Deployment, *memory_ids: str, user: str = "ann", at: float = START) -> None:
    """Another process counts, and ends."""
    async with deployment.start() as other:
        other.usage_counts.count(user, memory_ids, at=at)


async def test_uses_add_up_and_are_taken_once(deployment: Deployment, process: Process, other: Process) -> None:
    await counted(deployment, "a", "b", "c")
    for at in (START + 9, START + 5):
        await counted(deployment, "a", at=at)
    await counted(deployment, "a", user="bob")
    taken = await process.usage_counts.take("ann", ["a", "b", "unknown"])
    assert taken == {"a": UsageCount(3, START + 9), "b": UsageCount(1, START)}
    assert await other.usage_counts.take("ann", ["a", "b"]) == {}
    await counted(deployment, "b", at=START + 1)
    left = await other.usage_counts.unstored("ann", limit=10)
    assert left == {"b": UsageCount(1, START + 1), "c": UsageCount(1, START)}
    assert set(await other.usage_counts.unstored("bob", limit=10)) == {"a"}


async def test_dropped_uses_are_gone_and_nobody_elses(deployment: Deployment) -> None:
    await counted(deployment, "a", "b", "c")
    await counted(deployment, "a", user="bob")
    async with deployment.start() as here:
        here.usage_counts.count("ann", ["a", 'it\'s "你"'], at=START)  # not written yet
        await here.usage_counts.drop("ann", ["a", 'it\'s "你"'])
    async with deployment.start() as here:
        assert set(await here.usage_counts.unstored("ann", limit=10)) == {"b", "c"}
        assert list(await here.usage_counts.unstored("ann", limit=1)) == ["b"]
        await here.usage_counts.drop("ann", [])
        assert await here.usage_counts.unstored("ann", limit=10) == {}
        assert set(await here.usage_counts.unstored("bob", limit=10)) == {"a"}


async def test_uses_are_written_behind_the_request_many_at_once_and_never_raise(tmp_path: Path) -> None:
    async with SqliteDatabase(tmp_path / "turns.sqlite") as database:
        usage_counts, before = SqlUsageCounts(database), database.commits
        for _ in range(BATCH_JOBS_MAX):
            usage_counts.count("ann", ["a"], at=START)
        async with asyncio.timeout(60):
            while not (found := await usage_counts.unstored("ann", limit=10)):
                await asyncio.sleep(0.01)
        assert found == {"a": UsageCount(BATCH_JOBS_MAX, START)}
        await database.write(lambda _: None)  # rows are seen before their commit is counted; this counts after it
        assert database.commits == before + 2
    usage_counts.count("ann", ["a"], at=START)  # its database is closed


async def known(process: Process, *users: str) -> None:
    """Somebody wrote a memory of theirs."""
    for user in users:
        async with process.ledger.write(user) as held:
            held.touch([f"a memory of {user}"])


async def due(process: Process, days: float) -> str | None:
    return await process.upkeep.next_due(now=START + days * DAY, every=DAY, patience=600.0)


async def test_everybody_whose_memories_were_written_to_is_known_in_order_and_by_pages(process: Process) -> None:
    await known(process, "bob", "ann", "周", 'eve"', " project/k1")
    assert await process.upkeep.users(after="", limit=2) == ["ann", "bob"]
    assert await process.upkeep.users(after="bob", limit=9) == ['eve"', "周"]
    assert await process.upkeep.users(after="周", limit=9) == []


async def test_one_user_at_a_time_whoever_asks(process: Process, other: Process) -> None:
    await known(process, "ann", " project/k2", "bob")  # a project is no user
    for days in (0, 0.9):
        assert await due(process, days) is None  # a new user is due after the time between two rounds
    assert await due(process, 1) == "ann"
    assert await due(other, 1) is None
    await process.upkeep.ended("ann", now=START + DAY)
    assert await due(other, 1) == "bob"
    assert await due(process, 1 + 599 / DAY) is None
    assert await due(process, 1 + 601 / DAY) == "bob"  # a round that nobody ended is taken over
    await process.upkeep.ended("bob", now=START + DAY)
    assert await due(process, 1) is None
    assert await due(process, 2) == "ann"
