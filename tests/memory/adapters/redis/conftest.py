"""What tests of the Redis adapters share: a process on the shared server, and servers that a test may break."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from redis.asyncio import Redis
from redis_server import RedisServer, own_redis_server, redis_server
from turn_logs import Deployment, Process, redis_deployment

from memory.adapters.redis.log_client import LogClient


@pytest.fixture
def deployment(tmp_path: Path) -> Deployment:
    """On the shared server, which is emptied."""
    return redis_deployment(tmp_path)


@pytest.fixture
async def process(deployment: Deployment) -> AsyncIterator[Process]:
    async with deployment.start() as one:
        yield one


@pytest.fixture
async def connected(deployment: Deployment) -> AsyncIterator[Redis]:
    async with Redis(port=redis_server().port) as client:
        yield client


@pytest.fixture
def client(connected: Redis) -> LogClient:
    return LogClient(connected)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    with own_redis_server(tmp_path) as started:
        yield started


@pytest.fixture
async def own_client(server: RedisServer) -> AsyncIterator[LogClient]:
    async with Redis(port=server.port) as connected:
        yield LogClient(connected)
