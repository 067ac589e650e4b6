"""What every place for snapshots keeps, gives back and forgets: on every adapter."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from in_memory_copies import InMemorySnapshots
from postgres_server import ROLE, postgres_server

from memory.adapters.snapshot_files import FileSnapshots
from memory.adapters.sql.postgres_database import PostgresDatabase
from memory.adapters.sql.postgres_pool import PostgresAddress
from memory.adapters.sql.snapshots import SqlSnapshots
from memory.adapters.sql.sqlite_database import SqliteDatabase
from memory.ports import Snapshots

ON_SERVER = pytest.mark.full("the same suite runs on files in the first tier")


@pytest.fixture(params=["in memory", "files", "sqlite", pytest.param("postgres", marks=ON_SERVER)])
async def snapshots(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Snapshots]:
    if request.param == "in memory":
        yield InMemorySnapshots()
        return
    if request.param in ("sqlite", "postgres"):
        address = PostgresAddress(postgres_server().url, ROLE) if request.param == "postgres" else None
        async with SqliteDatabase(tmp_path / "log") if address is None else PostgresDatabase(address) as database:
            yield SqlSnapshots(database, bytes_max=1 << 30, clock=lambda: 0.0)
            await SqlSnapshots(database, bytes_max=1 << 30, clock=lambda: 0.0).erase_all()
        return
    async with FileSnapshots(tmp_path / "snapshots", bytes_max=1 << 30, clock=lambda: 0.0) as files:
        yield files


async def test_what_was_written_last_is_read(snapshots: Snapshots) -> None:
    assert await snapshots.read("ann") is None
    await snapshots.write("ann", b"first")
    large = bytes(range(256)) * 40_000
    await snapshots.write("ann", large)
    assert await snapshots.read("ann") == large


async def test_each_user_has_one_whatever_the_id_looks_like(snapshots: Snapshots) -> None:
    users = ["ann", "Ann", "ann ", "../ann", "a/b", "用户", "x" * 256, ".", "ann\udcff"]
    for number, user_id in enumerate(users):
        await snapshots.write(user_id, bytes([number]))
    assert [await snapshots.read(user_id) for user_id in users] == [bytes([n]) for n in range(len(users))]


async def test_an_erased_one_is_gone_and_erasing_nothing_is_no_error(snapshots: Snapshots) -> None:
    await snapshots.erase("ann")
    await snapshots.write("ann", b"text")
    await snapshots.write("bob", b"other")
    await snapshots.erase("ann")
    assert await snapshots.read("ann") is None
    assert await snapshots.read("bob") == b"other"
    await snapshots.erase_all()
    await snapshots.erase_all()  # where there is none
    assert await snapshots.read("bob") is None
    await snapshots.write("ann", b"again")
    assert await snapshots.read("ann") == b"again"


async def test_readers_get_one_or_the_other_whole_while_it_is_being_written(snapshots: Snapshots) -> None:
    versions = [bytes([number]) * 300_000 for number in range(8)]
    await snapshots.write("ann", versions[0])
    is_over = False

    async def write_on() -> None:
        nonlocal is_over
        for version in versions * 3:
            await snapshots.write("ann", version)
        is_over = True

    async def read_on() -> set[bytes]:
        seen = set()
        while not is_over:
            found = await snapshots.read("ann")
            assert found is not None
            seen.add(found)
            await asyncio.sleep(0)
        return seen

    _, *seen = await asyncio.gather(write_on(), read_on(), read_on())
    assert set().union(*seen) <= set(versions)
