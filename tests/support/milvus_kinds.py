"""The two kinds of Milvus that a test runs on, by the parameter of a fixture: Milvus Lite and a server of 2.3."""

from __future__ import annotations

import asyncio

import pytest
from milvus_lite_server import RealMilvus
from milvus_standalone import MILVUS_SERVER, SERVER_IN_SOAK, MilvusServer

from memory.adapters.milvus.connection import MilvusAddress
from memory.adapters.milvus.store import MilvusStore, MilvusTimeouts
from memory.errors import Unavailable

MILVUS_LITE = "Milvus Lite"
PREPARE_SECONDS_MAX = 60.0
PATIENT = MilvusTimeouts(search=30.0, read=50.0, write=50.0)  # a busy server takes seconds to make a collection
MILVUS_KINDS = (MILVUS_LITE, pytest.param(MILVUS_SERVER, marks=pytest.mark.soak(SERVER_IN_SOAK)))


def empty_address(server: RealMilvus, collection: str, dimension: int) -> MilvusAddress:
    """Of a collection without rows. On a server, which takes 4 s to make one, it is the same for all tests.

    Not for tests that leave writes under way.
    """
    if not isinstance(server, MilvusServer):
        return server.address(collection, dimension)
    shared = f"shared_{dimension}"
    client = server.client()
    try:
        if client.has_collection(shared):
            client.load_collection(shared)
            client.delete(shared, filter='id > ""')
            [row] = client.query(shared, filter="", output_fields=["count(*)"], consistency_level="Strong")
            assert not row["count(*)"], "rows of an earlier test are left"
    finally:
        client.close()
    return server.address(shared, dimension)


async def prepared(store: MilvusStore) -> MilvusStore:
    """With its collection, which a busy server takes longer to make than the first call of a test may take."""
    async with asyncio.timeout(PREPARE_SECONDS_MAX):
        while True:
            try:
                await store.prepare()
            except Unavailable:
                await asyncio.sleep(0.1)
            else:
                return store


def real_milvus(request: pytest.FixtureRequest, kind: str) -> RealMilvus:
    """The shared server of that kind, started if needed."""
    return request.getfixturevalue("milvus_server" if kind == MILVUS_SERVER else "milvus_lite")
