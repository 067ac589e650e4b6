"""What the contract suites run on: stores in memory and on Milvus Lite, a real server process; turn logs on SQLite."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from memory_rows import DIMENSION
from milvus_lite_server import MilvusLiteServer
from prometheus_client import CollectorRegistry
from turn_logs import DEPLOYMENTS, Deployment

from memory.adapters.in_memory import InMemoryStore
from memory.adapters.milvus.connection import MilvusAddress
from memory.adapters.milvus.store import MilvusStore
from memory.ports import MemoryStore, TurnLog
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


@pytest.fixture(params=sorted(DEPLOYMENTS))
def deployment(request: pytest.FixtureRequest, tmp_path: Path) -> Deployment:
    """Every adapter of the turn log."""
    return DEPLOYMENTS[request.param](tmp_path)


@pytest.fixture
async def log(deployment: Deployment) -> AsyncIterator[TurnLog]:
    async with deployment.start() as process:
        yield process.log
