"""The stores that the contract of memories runs on: the one in memory, and Milvus Lite as a real server process."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from memory_rows import DIMENSION
from milvus_lite_server import MilvusLiteServer
from prometheus_client import CollectorRegistry

from memory.adapters.in_memory import InMemoryStore
from memory.adapters.milvus.connection import MilvusAddress
from memory.adapters.milvus.store import MilvusStore
from memory.ports import MemoryStore
from memory.runtime.metrics import Metrics


@pytest.fixture(params=["in memory", "Milvus Lite"])
async def store(request: pytest.FixtureRequest) -> AsyncIterator[MemoryStore]:
    """An empty store."""
    if request.param == "in memory":
        yield InMemoryStore(dimension=DIMENSION)
        return
    server: MilvusLiteServer = request.getfixturevalue("milvus_lite")
    address = MilvusAddress(server.uri, request.getfixturevalue("collection"), DIMENSION)
    async with MilvusStore(address, metrics=Metrics(CollectorRegistry())) as milvus:
        yield milvus
