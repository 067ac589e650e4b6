"""What tests of the Redis adapters share."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from redis.asyncio import Redis
from redis_server import redis_server


@pytest.fixture
async def connected() -> AsyncIterator[Redis]:
    """A client of the shared server, which is emptied."""
    server = redis_server()
    server.empty()
    async with Redis(port=server.port) as client:
        yield client
