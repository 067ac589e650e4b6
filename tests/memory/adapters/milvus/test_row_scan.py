"""What rows of Milvus hold of a user is found in every collection, and what cannot be read is said."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from memory_rows import DIMENSION, memory, put
from milvus_kinds import PATIENT, RealMilvus, prepared
from milvus_standalone import MilvusServer
from prometheus_client import CollectorRegistry
from pymilvus import DataType, MilvusClient
from turn_logs import ManualClock

from memory.adapters.milvus import row_scan
from memory.adapters.milvus.deleted_rows import MilvusDeletedRows
from memory.adapters.milvus.row_scan import MilvusRowScan
from memory.adapters.milvus.store import MilvusStore
from memory.adapters.sqlite.database import SqliteDatabase
from memory.adapters.sqlite.write_barrier import SqliteWriteBarrier
from memory.errors import Unavailable
from memory.model import MemoryStatus, VectorOrigin
from memory.ports.erasures import PlaceReport
from memory.runtime.metrics import Metrics

ORIGIN = VectorOrigin("a model", DIMENSION)
METRICS = Metrics(CollectorRegistry())


@pytest.fixture
def marker() -> str:
    """The server is shared, and all that it holds is read."""
    return f"quetzal{uuid.uuid4().hex}"


@pytest.fixture
async def store(milvus: RealMilvus, collection: str) -> AsyncIterator[MilvusStore]:
    async with MilvusStore(milvus.address(collection, DIMENSION, ORIGIN), metrics=METRICS, timeouts=PATIENT) as opened:
        yield await prepared(opened)


async def look(milvus: RealMilvus, collection: str, wanted: str, *, seconds: float = 100.0) -> PlaceReport:
    address = milvus.address(collection, DIMENSION, ORIGIN)
    async with MilvusRowScan(address, lite_files_are_read=False, metrics=METRICS, seconds_max=seconds) as scan:
        found = await scan.scan([wanted])
    assert found is not None
    return found


async def test_a_user_is_found_in_every_field_of_the_memories(
    milvus: RealMilvus, store: MilvusStore, collection: str, marker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_scan, "ROWS_IN_A_PAGE", 10)
    await put(store, *(memory(f"m-{number:02}", user_id="bob") for number in range(25)))
    before = await look(milvus, collection, marker)
    assert (before.found_in, before.items >= 25) == ((), True)
    holding = [
        memory("m-12a", user_id=marker),
        memory("m-12a", content=f"about {marker}"),
        memory("m-12a", metadata={"of": marker}, status=MemoryStatus.SUPERSEDED),
        memory("m-12a", content=f"said {marker}", status=MemoryStatus.RAW),
    ]
    for one in holding:
        await put(store, one)
        found = await look(milvus, collection, marker)
        assert found.found_in == (f"rows of {collection}",)
        await store.delete(one.user_id, [one.id])
    assert (await look(milvus, collection, marker)).found_in == ()


async def test_collections_of_others_in_the_same_database_are_read_as_well_and_counted_without_their_names(
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
    assert found.found_in == ("rows of collections that are not memproxy's (1)",)
    client.release_collection(other)
    found = await look(milvus, collection, marker)
    assert found.found_in == ()
    assert any("not memproxy's" in one and "not loaded" in one for one in found.not_searched)
    assert other not in repr(found)
    client.drop_collection(other)
    client.close()


async def test_what_was_not_read_in_time_is_named(
    milvus: RealMilvus, store: MilvusStore, collection: str, marker: str
) -> None:
    found = await look(milvus, collection, marker, seconds=0.0)
    assert "read within 0 s" in found.not_searched[-1]


async def test_files_of_milvus_lite_on_this_machine_are_read_instead_of_its_rows(
    milvus_lite: RealMilvus, collection: str
) -> None:
    address = milvus_lite.address(collection, DIMENSION, ORIGIN)
    async with MilvusRowScan(address, lite_files_are_read=True, metrics=METRICS) as scan:
        assert await scan.scan(["ann"]) is None


async def test_of_a_server_the_files_and_what_is_not_loaded_are_named(
    milvus_server: MilvusServer, collection: str, marker: str
) -> None:
    address, client = milvus_server.address(collection, DIMENSION, ORIGIN), milvus_server.client()
    async with MilvusStore(address, metrics=METRICS, timeouts=PATIENT) as store:
        await put(await prepared(store), memory("m-1", user_id=marker))
        client.release_collection(collection)
        found = await look(milvus_server, collection, marker)
        assert (found.not_searched[0], found.found_in) == (row_scan.FILES_OF_A_SERVER, ())
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
        barrier = SqliteWriteBarrier(database, clock=ManualClock())
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
