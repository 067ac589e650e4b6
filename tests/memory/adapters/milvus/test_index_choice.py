"""The vector index follows the number of rows: chosen when a collection is made, and again by `memproxy migrate`."""

from __future__ import annotations

import numpy as np
import pymilvus
import pytest
from memory_rows import DIMENSION, memory, put
from milvus_kinds import PATIENT, prepared
from milvus_standalone import MilvusServer
from prometheus_client import CollectorRegistry

from memory.adapters import row_codec
from memory.adapters.milvus import schema
from memory.adapters.milvus.capabilities import LITE, Capabilities, capabilities_of
from memory.adapters.milvus.reembedding import MilvusReembedding
from memory.adapters.milvus.store import MilvusStore
from memory.model import Vector, VectorOrigin
from memory.ports import MemoryFilter
from memory.runtime.metrics import Metrics
from memory.service.migration import Migrate, Migrated

ORIGIN = VectorOrigin("the same", DIMENSION)
SERVER = capabilities_of("v2.3.5")
LIMIT = schema.EXACT_ROWS_MAX
PATCHED_LIMIT = 100
USERS, ROWS_OF_EACH = 4, 30  # more rows than the patched limit
HITS = 10


@pytest.mark.parametrize(
    ("can", "rows", "kind"),
    [(SERVER, 0, "FLAT"), (SERVER, LIMIT, "FLAT"), (SERVER, LIMIT + 1, "HNSW"), (LITE, LIMIT + 1, "FLAT")],
)
def test_only_a_server_with_more_rows_than_the_limit_gets_a_graph(can: Capabilities, rows: int, kind: str) -> None:
    [made] = [one for one in schema.index(pymilvus, can=can, rows=rows) if one.field_name == row_codec.VECTOR_FIELD]
    assert made.index_type == kind
    assert schema.index_fits(kind, can=can, rows=rows)


def test_only_an_exact_index_of_too_many_rows_on_a_server_does_not_fit() -> None:
    assert not schema.index_fits("FLAT", can=SERVER, rows=LIMIT + 1)
    assert schema.index_fits("HNSW", can=SERVER, rows=LIMIT)
    assert schema.index_fits("AUTOINDEX", can=SERVER, rows=LIMIT + 1)
    assert schema.index_fits("", can=SERVER, rows=LIMIT + 1)
    assert schema.index_fits("FLAT", can=LITE, rows=LIMIT + 1)


def vectors(seed: int) -> list[Vector]:
    made = np.random.default_rng(seed).normal(size=(USERS * ROWS_OF_EACH, DIMENSION)).astype(np.float32)
    return list(made / np.linalg.norm(made, axis=1, keepdims=True))


def opened(server: MilvusServer, collection: str) -> MilvusStore:
    address = server.address(collection, DIMENSION, ORIGIN)
    return MilvusStore(address, metrics=Metrics(CollectorRegistry()), timeouts=PATIENT)


async def found(store: MilvusStore) -> list[list[str]]:
    """What each user's searches return, also those of one project."""
    filters = [MemoryFilter(f"user-{n}", project_id=project) for n in range(USERS) for project in ("", "boats")]
    return [
        [one.memory.id for one in await store.search(where, vector, limit=HITS)]
        for where in filters
        for vector in vectors(seed=2)[:HITS]
    ]


async def migrated(server: MilvusServer, collection: str) -> Migrated:
    async def nobody_else() -> None:
        return

    address = server.address(collection, DIMENSION, ORIGIN)
    async with MilvusReembedding(address, wanted=ORIGIN, metrics=Metrics(CollectorRegistry())) as run:
        return await Migrate(run, wanted=ORIGIN).run(advance=lambda *_: None, check_alone=nobody_else)


def index_kind(server: MilvusServer, collection: str) -> str:
    client = server.client()
    try:
        return str(client.describe_index(collection, row_codec.VECTOR_FIELD)["index_type"])
    finally:
        client.close()


@pytest.mark.slow("makes two collections on a server")
async def test_a_collection_that_outgrew_its_index_is_migrated_once_and_loses_nothing(
    milvus_server: MilvusServer, collection: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [
        memory(f"m{n}", user_id=f"user-{n % USERS}", project_id="boats" if n % 3 else "cars")
        for n in range(USERS * ROWS_OF_EACH)
    ]
    async with opened(milvus_server, collection) as store:
        await put(await prepared(store), *rows, vectors=vectors(seed=1))
        before = await found(store)
    assert all(len(hits) == HITS for hits in before)
    assert (await migrated(milvus_server, collection)).copied == 0
    assert index_kind(milvus_server, collection) == "FLAT"

    monkeypatch.setattr(schema, "EXACT_ROWS_MAX", PATCHED_LIMIT)
    async with opened(milvus_server, collection) as store:
        await prepared(store)  # parts still start
    assert (await migrated(milvus_server, collection)).copied == len(rows)
    assert index_kind(milvus_server, f"{collection}__2") == "HNSW"
    async with opened(milvus_server, collection) as store:
        assert await found(await prepared(store)) == before

    again = await migrated(milvus_server, collection)
    assert (again.status.outdated, again.copied) == (None, 0)
    assert index_kind(milvus_server, f"{collection}__2") == "HNSW"
