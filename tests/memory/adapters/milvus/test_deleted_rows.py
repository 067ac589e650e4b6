"""Deleted rows leave no bytes behind in the files of Milvus Lite, and nobody who reads or writes meanwhile notices."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from memory_rows import DIMENSION, direction, memory, put
from milvus_lite_server import MilvusLiteServer
from prometheus_client import CollectorRegistry
from pymilvus import AsyncMilvusClient
from turn_logs import ManualClock

from memory.adapters.milvus.connection import MilvusAddress
from memory.adapters.milvus.deleted_rows import MilvusDeletedRows
from memory.adapters.milvus.store import MilvusStore
from memory.adapters.sqlite.database import SqliteDatabase
from memory.adapters.sqlite.ledger import SqliteUserLedger
from memory.adapters.sqlite.write_barrier import SqliteWriteBarrier
from memory.errors import Conflict, Unavailable
from memory.model import Change, ChangeKind, MemoryStatus, VectorOrigin
from memory.ports import MemoryFilter
from memory.runtime.metrics import Metrics
from memory.service.locked_writes import write_rows

MARKER = "Quetzalbimxford"
WRITES = 60


@pytest.fixture
def lite(tmp_path: Path) -> Iterator[MilvusLiteServer]:
    server = MilvusLiteServer(tmp_path / "milvus")
    server.start()
    yield server
    server.kill()


@dataclass(frozen=True)
class World:
    folder: Path
    address: MilvusAddress
    reader: MilvusStore
    writer: MilvusStore
    ledger: SqliteUserLedger
    deleted: MilvusDeletedRows
    barrier: SqliteWriteBarrier

    def files_with(self, word: str) -> list[str]:
        found = [path for path in self.folder.rglob("*") if path.is_file() and word.encode() in path.read_bytes()]
        return [str(path.relative_to(self.folder)) for path in found]

    async def ids(self, user: str) -> set[str]:
        return set(await self.reader.ids(MemoryFilter(user, status=None, with_raw=True)))


@pytest.fixture
async def world(lite: MilvusLiteServer, tmp_path: Path) -> AsyncIterator[World]:
    metrics = Metrics(CollectorRegistry())
    address = MilvusAddress(lite.uri, "agentic_memory", DIMENSION, origin=VectorOrigin("a model", DIMENSION))
    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(SqliteDatabase(tmp_path / "turns.sqlite"))
        clock = ManualClock()
        barrier = SqliteWriteBarrier(database, clock=clock)
        reader = await stack.enter_async_context(MilvusStore(address, metrics=metrics))
        writer = await stack.enter_async_context(MilvusStore(address, metrics=metrics))
        deleted = await stack.enter_async_context(MilvusDeletedRows(address, barrier=barrier, metrics=metrics))
        ledger = SqliteUserLedger(database, clock=clock)
        yield World(tmp_path / "milvus", address, reader, writer, ledger, deleted, barrier)


async def test_the_bytes_of_deleted_rows_go_and_all_others_stay_as_they_are(world: World) -> None:
    gone = [memory(f"gone-{number}", content=f"{MARKER} {number}") for number in range(20)]
    kept = [memory(f"kept-{number}", user_id="bob") for number in range(20)]
    raw = memory("raw", user_id="bob", status=MemoryStatus.RAW)
    await put(world.writer, *gone, *kept, raw)
    before = await world.reader.get("bob", [one.id for one in kept])
    await world.writer.delete("ann", [one.id for one in gone])
    assert world.files_with(MARKER)  # else this test shows nothing

    await world.deleted.rewrite()
    assert world.files_with(MARKER) == []
    assert await world.ids("ann") == set()
    assert await world.ids("bob") == {"raw", *(one.id for one in kept)}
    after = await world.reader.get("bob", [one.id for one in kept])
    assert [one.memory for one in after] == [one.memory for one in before]
    assert all((one.vector == other.vector).all() for one, other in zip(after, before, strict=True))
    assert len(await world.reader.search(MemoryFilter("bob"), direction(1.0), limit=50)) == 20


async def test_who_asks_milvus_for_the_collection_of_the_settings_still_finds_it(
    world: World, lite: MilvusLiteServer
) -> None:
    await put(world.writer, memory("m-1"), memory("m-2"))
    for left in ({"m-1", "m-2"}, {"m-2"}):
        await world.writer.delete("ann", {"m-1", "m-2"} - left)
        await world.deleted.rewrite()
        async with AsyncMilvusClient(uri=lite.uri) as client:
            rows = await client.query("agentic_memory", filter='user_id == "ann"', output_fields=["id"])
        assert {row["id"] for row in rows} == left
        async with MilvusStore(world.address, metrics=Metrics(CollectorRegistry())) as fresh:
            assert set(await fresh.ids(MemoryFilter("ann", status=None))) == left


async def test_it_may_be_repeated_and_an_empty_store_has_nothing_to_remove(world: World) -> None:
    await world.deleted.rewrite()
    await put(world.writer, memory("m-1"))
    await world.deleted.rewrite()
    await world.deleted.rewrite()
    assert await world.ids("ann") == {"m-1"}


@pytest.mark.full("rewrites a collection while others write")
async def test_what_is_written_meanwhile_is_neither_lost_nor_brought_back(world: World) -> None:
    await put(world.writer, *(memory(f"old-{number}", user_id="bob") for number in range(50)))
    under_way = asyncio.Event()

    async def write() -> None:
        for number in range(WRITES):
            user = f"user-{number % 5}"
            one = memory(f"new-{number}", user_id=user, status=MemoryStatus.RAW if number % 3 else MemoryStatus.ACTIVE)
            async with world.ledger.write(user) as held:
                await write_rows(world.writer, held, user, [Change(ChangeKind.CREATE, one)], direction(1.0)[None])
            if number % 10 == 0:
                async with world.ledger.write("bob") as held:
                    await held.forget([f"old-{number // 10}"])
                    await world.writer.delete("bob", [f"old-{number // 10}"])
            if number == 5:
                under_way.set()

    async with asyncio.TaskGroup() as group:
        writing = group.create_task(write())
        await under_way.wait()
        runs = 0
        while not writing.done():
            await world.deleted.rewrite()
            runs += 1
    assert runs >= 1
    found = set[str]().union(*[await world.ids(f"user-{number}") for number in range(5)])
    assert found == {f"new-{number}" for number in range(WRITES)}
    assert await world.ids("bob") == {f"old-{number}" for number in range(50) if number >= WRITES / 10}


async def rewritten(world: World) -> bool:
    """As the worker does it, which tries again: the server may still be busy with what the killed run had asked for."""
    try:
        await world.deleted.rewrite()
    except Unavailable:
        return False
    return True


async def test_a_deletion_reaches_the_collection_that_took_the_place_of_the_known_one(world: World) -> None:
    await put(world.writer, memory("m-1"), memory("m-2"))
    await world.deleted.rewrite()
    await world.writer.delete("ann", ["m-1"])  # the writer knows the old generation only
    assert await world.ids("ann") == {"m-2"}


async def test_only_one_process_is_at_it(world: World) -> None:
    await put(world.writer, memory("m-1"))
    async with world.barrier.alone(seconds=10):
        with pytest.raises(Conflict):
            await world.deleted.rewrite()
    await world.deleted.rewrite()


async def test_what_a_killed_run_left_behind_is_begun_again(world: World, lite: MilvusLiteServer) -> None:
    await put(world.writer, *(memory(f"m-{number}") for number in range(30)))
    removing = asyncio.ensure_future(world.deleted.rewrite())  # noqa: TID251  # the task is what gets cancelled
    await asyncio.sleep(0.02)
    removing.cancel()
    await asyncio.gather(removing, return_exceptions=True)
    async with asyncio.timeout(10):
        while not await rewritten(world):
            await asyncio.sleep(0.1)
    assert await world.ids("ann") == {f"m-{number}" for number in range(30)}
