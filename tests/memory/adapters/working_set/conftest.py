"""The stores that working sets are tested on: the one in memory, and a real Milvus Lite server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
from milvus_lite_server import MilvusLiteServer
from working_set_world import DIMENSION, opened

from memory.adapters.in_memory import InMemoryStore
from memory.ports import MemoryStore


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MilvusLiteServer]:
    running = MilvusLiteServer(tmp_path_factory.mktemp("working_set") / "milvus")
    running.start()
    yield running
    running.kill()


@pytest.fixture(params=["in memory", "Milvus Lite"])
async def store(request: pytest.FixtureRequest) -> AsyncIterator[MemoryStore]:
    if request.param == "in memory":
        yield InMemoryStore(dimension=DIMENSION)
        return
    async with opened(request.getfixturevalue("server")) as milvus:
        yield milvus
