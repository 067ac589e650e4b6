"""Clients of a real Redis server for tests: one that dies after so many calls, and one that is interrupted."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from redis.asyncio import Redis

from memory.adapters.redis.log_client import Command, LogClient, Reply
from memory.errors import Unavailable


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
