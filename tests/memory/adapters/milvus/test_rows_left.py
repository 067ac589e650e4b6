"""What is left of a user: no bytes of deleted rows, and nothing that no look finds. What counts is never dropped."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from memory_rows import DIMENSION, direction, memory, put
from milvus_kinds import PATIENT, RealMilvus, prepared
from milvus_lite_server import MilvusLiteServer
from milvus_standalone import MilvusServer
from prometheus_client import CollectorRegistry
from pymilvus import AsyncMilvusClient, DataType, MilvusClient
from turn_logs import ManualClock
from words_left import files_with

from memory.adapters.file_scan import files_scanned
from memory.adapters.milvus import deleted_rows, ordered_rows
from memory.adapters.milvus.collections import LIVE
from memory.adapters.milvus.connection import Link, MilvusAddress
from memory.adapters.milvus.deleted_rows import MilvusDeletedRows, MilvusRowScan
from memory.adapters.milvus.reembedding import MilvusReembedding
from memory.adapters.milvus.store import MilvusStore
from memory.adapters.sql.erasures import SqlWriteBarrier
from memory.adapters.sql.ledger import SqlUserLedger
from memory.adapters.sql.sqlite_database import SqliteDatabase
from memory.adapters.whole_ids import WholeId
from memory.errors import Conflict, Unavailable
from memory.model import Change, ChangeKind, MemoryStatus, VectorOrigin
from memory.model.erasures import PlaceReport
from memory.ports import MemoryFilter
from memory.runtime.metrics import Metrics
from memory.service.locked_writes import write_rows

ORIGIN = VectorOrigin("a model", DIMENSION)
OLD, NEW = VectorOrigin("old", 8), VectorOrigin("new", 16)
METRICS = Metrics(CollectorRegistry())
MARKER = "Quetzalbimxford"
WRITES = 60


@pytest.fixture(scope="module")
def lite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MilvusLiteServer]:
    """A server whose files are looked into."""
    server = MilvusLiteServer(tmp_path_factory.mktemp("rows") / "milvus")
    server.start()
    yield server
    server.kill()


@dataclass(frozen=True)
class World:
    folder: Path
    address: MilvusAddress
    reader: MilvusStore
    writer: MilvusStore
    ledger: SqlUserLedger
    deleted: MilvusDeletedRows
    barrier: SqlWriteBarrier

    async def ids(self, user: str) -> set[str]:
        return set(await self.reader.ids(MemoryFilter(user, status=None, with_raw=True)))


@pytest.fixture
async def world(lite: MilvusLiteServer, collection: str, tmp_path: Path) -> AsyncIterator[World]:
    address = lite.address(collection, DIMENSION, ORIGIN)
    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(SqliteDatabase(tmp_path / "turns.sqlite"))
        clock = ManualClock()
        barrier = SqlWriteBarrier(database, clock=clock)
        reader = await stack.enter_async_context(MilvusStore(address, metrics=METRICS, timeouts=PATIENT))
        writer = await stack.enter_async_context(MilvusStore(address, metrics=METRICS, timeouts=PATIENT))
        deleted = await stack.enter_async_context(MilvusDeletedRows(address, barrier=barrier, metrics=METRICS))
        ledger = SqlUserLedger(database, clock=clock)
        yield World(lite._data_dir, address, reader, writer, ledger, deleted, barrier)


async def test_the_bytes_of_deleted_rows_go_and_all_others_stay_as_they_are(world: World) -> None:
    gone = [memory(f"gone-{number}", content=f"{MARKER} {number}") for number in range(20)]
    kept = [memory(f"kept-{number}", user_id="bob") for number in range(20)]
    raw = memory("raw", user_id="bob", status=MemoryStatus.RAW)
    await put(world.writer, *gone, *kept, raw)
    before = await world.reader.get("bob", [one.id for one in kept])
    await world.writer.delete("ann", [one.id for one in gone])
    assert files_with([world.folder], [MARKER])  # else this test shows nothing

    await world.deleted.rewrite()
    assert files_with([world.folder], [MARKER]) == []
    assert await world.ids("ann") == set()
    assert await world.ids("bob") == {"raw", *(one.id for one in kept)}
    after = await world.reader.get("bob", [one.id for one in kept])
    assert [one.memory for one in after] == [one.memory for one in before]
    assert all((one.vector == other.vector).all() for one, other in zip(after, before, strict=True))
    assert len(await world.reader.search(MemoryFilter("bob"), direction(1.0), limit=50)) == 20


async def test_who_asks_milvus_for_the_collection_of_the_settings_still_finds_it(world: World) -> None:
    await world.deleted.rewrite()  # an empty store has nothing to remove
    await put(world.writer, memory("m-1"), memory("m-2"))
    for left in ({"m-1", "m-2"}, {"m-2"}):
        await world.writer.delete("ann", {"m-1", "m-2"} - left)
        await world.deleted.rewrite()
        async with AsyncMilvusClient(uri=world.address.uri) as client:
            rows = await client.query(world.address.collection, filter='user_id == "ann"', output_fields=["id"])
        assert {row["id"] for row in rows} == left
        async with MilvusStore(world.address, metrics=METRICS) as fresh:
            assert set(await fresh.ids(MemoryFilter("ann", status=None))) == left


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


async def test_what_a_killed_run_left_behind_is_begun_again(world: World) -> None:
    await put(world.writer, *(memory(f"m-{number}") for number in range(30)))
    removing = asyncio.ensure_future(world.deleted.rewrite())  # noqa: TID251  # the task is what gets cancelled
    await asyncio.sleep(0.02)
    removing.cancel()
    await asyncio.gather(removing, return_exceptions=True)
    async with asyncio.timeout(60):  # the server may still be busy with what the killed run had asked for
        while True:
            with suppress(Unavailable):
                await world.deleted.rewrite()
                break
            await asyncio.sleep(0.1)
    assert await world.ids("ann") == {f"m-{number}" for number in range(30)}


async def test_users_of_milvus_lite_are_told_apart_in_its_files(world: World) -> None:
    def found(*users: str) -> list[bool]:
        return [bool(files_scanned([world.folder], WholeId(user)).found_in) for user in users]

    await put(world.writer, memory("m-1", user_id="1426"), memory("m-2", user_id="adam", content="ada said metadata"))
    assert found("42", "ada", "1426", "adam") == [False, False, True, True]
    await put(world.writer, memory("m-3", user_id="42"), memory("m-4", user_id="cem", metadata={"of": "ada"}))
    assert found("42", "ada") == [True, True]
    await world.writer.delete("42", ["m-3"])
    await world.writer.delete("cem", ["m-4"])
    assert found("42", "ada") == [True, True], "in the files"
    await world.deleted.rewrite()
    assert found("42", "ada", "1426", "adam") == [False, False, True, True]


@pytest.fixture
def marker() -> str:
    """The server is shared, and all that it holds is read."""
    return f"quetzal{uuid.uuid4().hex}"


@pytest.fixture
async def store(milvus: RealMilvus, collection: str) -> AsyncIterator[MilvusStore]:
    async with MilvusStore(milvus.address(collection, DIMENSION, ORIGIN), metrics=METRICS, timeouts=PATIENT) as opened:
        yield await prepared(opened)


async def look(milvus: RealMilvus, collection: str, wanted: str) -> PlaceReport:
    async with MilvusRowScan(milvus.address(collection, DIMENSION, ORIGIN), metrics=METRICS) as scan:
        return await scan.scan(WholeId(wanted))


async def test_a_user_is_found_in_every_field_of_the_memories(
    milvus: RealMilvus, store: MilvusStore, collection: str, marker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ordered_rows, "ROWS_IN_A_PAGE", 10)
    others = [f"{marker}{number}" for number in range(25)]
    await put(store, *(memory(f"m-{one}", user_id=one, content=f"about {marker}") for one in others))
    before = await look(milvus, collection, marker)
    assert (before.found_in, before.items >= 25) == ((), True)
    holding = [
        memory("m-12a", user_id=marker),
        memory("m-12a", content=marker),
        memory("m-12a", metadata={"of": marker}, status=MemoryStatus.SUPERSEDED),
        memory("m-12a", session_id=marker, status=MemoryStatus.RAW),
    ]
    for one in holding:
        await put(store, one)
        found = await look(milvus, collection, marker)
        assert found.found_in == (f"rows of {collection}",)
        await store.delete(one.user_id, [one.id])
    assert (await look(milvus, collection, marker)).found_in == ()


async def test_collections_of_others_in_the_same_database_are_read_as_well(
    milvus: RealMilvus, store: MilvusStore, collection: str, marker: str
) -> None:
    """With numbers as keys, and fields that its schema does not name."""
    client, other = milvus.client(), f"{collection}_other"
    schema = MilvusClient.create_schema(enable_dynamic_field=True)
    schema.add_field("number", DataType.INT64, is_primary=True)
    schema.add_field("vector", DataType.FLOAT_VECTOR, dim=2)
    index = client.prepare_index_params()
    index.add_index("vector", index_type="FLAT", metric_type="L2")
    client.create_collection(other, schema=schema, index_params=index)
    client.insert(other, [{"number": n - 5, "vector": [0.0, 1.0], "note": "tea" if n else marker} for n in range(9)])
    found = await look(milvus, collection, marker)
    assert found.found_in == (f"rows of {other}",)
    client.release_collection(other)
    found = await look(milvus, collection, marker)
    assert found.found_in == ()
    assert f"collection {other}: not loaded" in found.not_searched
    client.drop_collection(other)
    client.close()


async def test_of_a_server_the_files_and_what_is_not_loaded_are_named(
    milvus_server: MilvusServer, collection: str, marker: str
) -> None:
    address, client = milvus_server.address(collection, DIMENSION, ORIGIN), milvus_server.client()
    async with MilvusStore(address, metrics=METRICS, timeouts=PATIENT) as store:
        await put(await prepared(store), memory("m-1", user_id=marker))
        client.release_collection(collection)
        found = await look(milvus_server, collection, marker)
        assert (found.not_searched[0], found.found_in) == (deleted_rows.FILES_OF_A_SERVER, ())
        assert f"collection {collection}: not loaded" in found.not_searched
        client.load_collection(collection)
        assert (await look(milvus_server, collection, marker)).found_in == (f"rows of {collection}",)
    client.drop_collection(collection)
    client.close()


@asynccontextmanager
async def deleting(
    server: MilvusServer, collection: str, folder: Path, **limits: float
) -> AsyncIterator[MilvusDeletedRows]:
    address = server.address(collection, DIMENSION, ORIGIN)
    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(SqliteDatabase(folder / "turns.sqlite"))
        barrier = SqlWriteBarrier(database, clock=ManualClock())
        yield await stack.enter_async_context(MilvusDeletedRows(address, barrier=barrier, metrics=METRICS, **limits))


async def test_no_segment_that_a_server_serves_holds_deleted_rows_after_a_rewriting(
    milvus_server: MilvusServer, collection: str, tmp_path: Path
) -> None:
    address, client = milvus_server.address(collection, DIMENSION, ORIGIN), milvus_server.client()
    async with (
        MilvusStore(address, metrics=METRICS, timeouts=PATIENT) as store,
        deleting(milvus_server, collection, tmp_path) as deleted,
    ):
        await put(await prepared(store), *(memory(f"m-{number}") for number in range(60)))
        await store.delete("ann", [f"m-{number}" for number in range(59)])
        await deleted.rewrite()
        segments = client.list_persistent_segments(collection)
        assert sum(one.num_rows for one in segments) == 1
        async with deleting(milvus_server, collection, tmp_path, compaction_seconds=0.0) as hurried:
            with pytest.raises(Unavailable, match="compaction"):
                await hurried.rewrite()
    client.drop_collection(collection)
    client.close()


async def test_a_generation_whose_alias_was_lost_is_not_dropped(milvus: RealMilvus, collection: str) -> None:
    async with MilvusStore(milvus.address(collection, 8, OLD), metrics=METRICS, timeouts=PATIENT) as store:
        await store.apply("ann", [Change(ChangeKind.CREATE, memory("m"))], np.eye(1, 8, dtype=np.float32))
    address = milvus.address(collection, 16, NEW)
    async with MilvusReembedding(address, wanted=NEW, metrics=METRICS) as again:
        await again.begin()
        async for texts in again.remaining():
            await again.put(texts, np.eye(len(texts), 16, dtype=np.float32))
        assert await again.remove_deleted()
        await again.switch()
        await again.clear()

        async def lose(link: Link) -> None:
            await link.client.drop_alias(collection + LIVE, timeout=10)

        await again._patiently("lose", lose)
        with pytest.raises(Unavailable, match="it is kept"):
            await again.clear()

        async def find(link: Link) -> None:
            await link.collections.make_live(f"{collection}__2")

        await again._patiently("find", find)
    async with MilvusStore(address, metrics=METRICS, timeouts=PATIENT) as store:
        assert len(await store.load(MemoryFilter("ann"), limit=9)) == 1
