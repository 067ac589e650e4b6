"""What tests of the Redis adapters share."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from redis.asyncio import Redis
from redis_server import redis_server


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.full("what the adapter of Redis alone has; its contracts run there, too"))


@pytest.fixture
async def connected() -> AsyncIterator[Redis]:
    """A client of the shared server, which is emptied."""
    server = redis_server()
    server.empty()
    async with Redis(port=server.port) as client:
        yield client
