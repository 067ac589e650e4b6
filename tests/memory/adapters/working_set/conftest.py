"""The stores that working sets are tested on: the one in memory, and a real Milvus of either kind."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from milvus_kinds import MILVUS_KINDS, prepared, real_milvus
from working_set_world import DIMENSION, opened

from memory.adapters.in_memory import InMemoryStore
from memory.ports import MemoryStore


@pytest.fixture(params=["in memory", *MILVUS_KINDS])
async def store(request: pytest.FixtureRequest) -> AsyncIterator[MemoryStore]:
    if request.param == "in memory":
        yield InMemoryStore(dimension=DIMENSION)
        return
    async with opened(real_milvus(request, request.param), request.getfixturevalue("collection")) as milvus:
        yield await prepared(milvus)
