"""The stores that working sets are tested on: the one in memory, and a real Milvus Lite server."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from working_set_world import DIMENSION, opened

from memory.adapters.in_memory import InMemoryStore
from memory.ports import MemoryStore


@pytest.fixture(params=["in memory", "Milvus Lite"])
async def store(request: pytest.FixtureRequest) -> AsyncIterator[MemoryStore]:
    if request.param == "in memory":
        yield InMemoryStore(dimension=DIMENSION)
        return
    async with opened(request.getfixturevalue("milvus_lite"), request.getfixturevalue("collection")) as milvus:
        yield milvus
