"""What every place for snapshots keeps, gives back and forgets: on every adapter."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from in_memory_copies import InMemorySnapshots
from postgres_server import ROLE, postgres_server
from turn_logs import ManualClock

from memory.adapters.snapshot_files import FileSnapshots
from memory.adapters.sql.database import SqlDatabase
from memory.adapters.sql.postgres_database import PostgresDatabase
from memory.adapters.sql.postgres_pool import PostgresAddress
from memory.adapters.sql.snapshots import USED_AGAIN_SECONDS, SqlSnapshots
from memory.adapters.sql.sqlite_database import SqliteDatabase
from memory.ports import Snapshots

ON_SERVER = pytest.mark.full("the same suite runs on files in the first tier")


@pytest.fixture(params=["in memory", "files", "sqlite", pytest.param("postgres", marks=ON_SERVER)])
async def snapshots(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Snapshots]:
    if request.param == "in memory":
        yield InMemorySnapshots()
    elif request.param == "files":
        async with FileSnapshots(tmp_path / "snapshots", bytes_max=1 << 30, clock=lambda: 0.0) as files:
            yield files
    else:
        async with a_database(request.param, tmp_path) as database:
            yield SqlSnapshots(database, bytes_max=1 << 30, clock=lambda: 0.0)


@asynccontextmanager
async def a_database(engine: str, folder: Path) -> AsyncIterator[SqlDatabase]:
    """Without snapshots afterwards."""
    lite = engine == "sqlite"
    made = SqliteDatabase(folder / "log") if lite else PostgresDatabase(PostgresAddress(postgres_server().url, ROLE))
    async with made as database:
        yield database
        await SqlSnapshots(database, bytes_max=0, clock=lambda: 0.0).erase_all()


async def test_each_user_has_one_whatever_the_id_looks_like(snapshots: Snapshots) -> None:
    users = ["ann", "Ann", "ann ", "../ann", "a/b", "用户", "x" * 256, ".", "ann\udcff"]
    for number, user_id in enumerate(users):
        await snapshots.write(user_id, bytes([number]))
    assert [await snapshots.read(user_id) for user_id in users] == [bytes([n]) for n in range(len(users))]


async def test_what_was_written_last_is_read_until_it_is_erased(snapshots: Snapshots) -> None:
    assert await snapshots.read("ann") is None
    await snapshots.erase("ann")  # where there is none
    for user_id, content in (("ann", b"first"), ("ann", bytes(range(256)) * 40_000), ("bob", b"other")):
        await snapshots.write(user_id, content)
        assert await snapshots.read(user_id) == content
    await snapshots.erase("ann")
    assert (await snapshots.read("ann"), await snapshots.read("bob")) == (None, b"other")
    for _ in range(2):
        await snapshots.erase_all()
    assert await snapshots.read("bob") is None
    await snapshots.write("ann", b"again")
    assert await snapshots.read("ann") == b"again"


@pytest.mark.parametrize("engine", ["sqlite", pytest.param("postgres", marks=ON_SERVER)])
async def test_the_least_recently_used_are_evicted_first(engine: str, tmp_path: Path) -> None:
    clock = ManualClock()
    async with a_database(engine, tmp_path) as database:
        snapshots = SqlSnapshots(database, bytes_max=100, clock=clock)
        for user_id in ("ann", "bob"):
            await snapshots.write(user_id, bytes(40))
            clock.now += 2 * USED_AGAIN_SECONDS
        assert await snapshots.read("ann")
        await snapshots.write("cy", bytes(40))
        assert [bool(await snapshots.read(user_id)) for user_id in ("ann", "bob", "cy")] == [True, False, True]
        clock.now += 1.0
        await snapshots.write("dan", bytes(100))
        assert [bool(await snapshots.read(user_id)) for user_id in ("ann", "cy", "dan")] == [False, False, True]
        await snapshots.write("dan", bytes(101))
        assert await snapshots.read("dan") is None, "larger than all may be together: an older one would be wrong"


async def test_readers_get_one_or_the_other_whole_while_it_is_being_written(snapshots: Snapshots) -> None:
    versions = [bytes([number]) * 300_000 for number in range(8)]
    await snapshots.write("ann", versions[0])

    async def write_on() -> None:
        for version in versions * 3:
            await snapshots.write("ann", version)

    async def read_on() -> None:
        while not writing.done():
            assert await snapshots.read("ann") in versions
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        writing = group.create_task(write_on())
        for _ in range(2):
            group.create_task(read_on())
