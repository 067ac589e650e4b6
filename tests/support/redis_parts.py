"""Clients of a real Redis server for tests: shared ones, one that dies after so many calls, one that is interrupted."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from redis.asyncio import Redis
from redis.asyncio.cluster import RedisCluster
from redis_nodes import redis_nodes
from redis_server import redis_server

from memory.adapters.redis.log_client import Command, LogClient, Reply
from memory.errors import Unavailable

REDIS_KINDS = {"redis": False, "redis cluster": True}  # whether it is a cluster


class RepeatingClient(LogClient):
    """Has each batch executed twice, as where one of its commands was refused: on a server that was full, or by a node
    that failed. A single command, or a script, that was refused was not executed.
    """

    async def calls(self, commands: Sequence[Command]) -> list[Reply]:
        if len(commands) > 1:
            await super().calls(commands)
        return await super().calls(commands)


@asynccontextmanager
async def shared_client(
    folder: Path, *, is_cluster: bool = False, client_of: type[LogClient] = LogClient
) -> AsyncIterator[LogClient]:
    """What one more process has. The server is emptied by the first process of a test, whose folder is this one."""
    server = redis_nodes() if is_cluster else redis_server()
    begun = folder / "redis-begun"
    if not begun.exists():
        begun.touch()
        server.empty()
    connecting = RedisCluster("127.0.0.1", server.port) if is_cluster else Redis(port=server.port)
    async with connecting as connected, client_of(connected) as client:
        yield client


class MortalClient(LogClient):
    """Dies after so many calls."""

    def __init__(self, client: Redis, calls: int) -> None:
        super().__init__(client)
        self._left = calls

    async def calls(self, commands: Sequence[Command]) -> list[Reply]:
        self._left -= 1
        if self._left < 0:
            raise Unavailable("turn_log", "dead")
        return await super().calls(commands)


class InterruptedClient(LogClient):
    """Does something else right before a call with that key: the first, or a later one."""

    def __init__(
        self, client: Redis, key: str, interruption: Callable[[], Awaitable[object]], *, number: int = 1
    ) -> None:
        super().__init__(client)
        self._key = key
        self._interruption = interruption
        self._countdown = number

    async def calls(self, commands: Sequence[Command]) -> list[Reply]:
        self._countdown -= any(self._key in command for command in commands)
        if self._countdown == 0:
            self._countdown = -1
            await self._interruption()
        return await super().calls(commands)
