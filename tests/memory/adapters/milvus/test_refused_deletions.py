"""A deletion that Milvus refused is repeated or raised, so that nothing that was forgotten stays."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from memory_rows import DIMENSION, memory, put
from milvus_lite_server import MilvusLiteServer
from prometheus_client import CollectorRegistry

from memory.adapters.milvus.connection import MilvusAddress
from memory.adapters.milvus.store import MilvusStore
from memory.ports import MemoryFilter
from memory.runtime.metrics import Metrics


@pytest.fixture
def lite(tmp_path: Path) -> Iterator[MilvusLiteServer]:
    server = MilvusLiteServer(tmp_path / "milvus")
    server.start()
    yield server
    server.kill()


async def test_a_deletion_right_after_a_restart_of_the_server_takes_effect(lite: MilvusLiteServer) -> None:
    address = MilvusAddress(lite.uri, "agentic_memory", DIMENSION)
    async with MilvusStore(address, metrics=Metrics(CollectorRegistry())) as store:
        await put(store, memory("m-1"), memory("m-2"))
        lite.kill()
        lite.start()
        await store.delete("ann", ["m-1"])
        assert await store.ids(MemoryFilter("ann", status=None)) == ["m-2"]


async def test_a_deletion_reaches_the_collection_that_took_the_place_of_the_known_one(lite: MilvusLiteServer) -> None:
    address = MilvusAddress(lite.uri, "agentic_memory", DIMENSION)
    metrics = Metrics(CollectorRegistry())
    async with MilvusStore(address, metrics=metrics) as store, MilvusStore(address, metrics=metrics) as other:
        await put(store, memory("m-1"), memory("m-2"))

        async def replaced(link: object) -> None:
            collections = link.collections  # type: ignore[attr-defined]
            await collections.ensure("agentic_memory__2", dimension=DIMENSION, origin=None)
            await collections.make_live("agentic_memory__2")
            await collections.drop("agentic_memory")

        await other._connection.call("replace", replaced, seconds=10.0)
        async with MilvusStore(address, metrics=metrics) as third:
            await put(third, memory("m-1"), memory("m-3"))
        await store.delete("ann", ["m-1"])  # it knows the old collection only
        assert await store.ids(MemoryFilter("ann", status=None)) == ["m-3"]
