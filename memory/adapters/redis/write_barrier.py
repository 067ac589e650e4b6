"""Keeps writers of memories out, in all processes that share the turn log's server.

Barriers and users' locks have different hash tags. So whoever takes a lock looks at the barriers after it, and gives
the lock back if they are closed; and whoever closes them looks at the locks after it. One of the two sees the other.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from memory.adapters.redis import log_keys
from memory.adapters.redis.ledger_store import LedgerStore
from memory.adapters.redis.log_client import Command, LogClient, to_its_end
from memory.adapters.redis.owners import RedisOwners
from memory.errors import Conflict, Unavailable
from memory.ports import Clock

RELEASED_SECONDS_MAX = 5.0  # within which the locks that are held are released
PAUSE_SECONDS = 0.01
LEFT_SECONDS = 60.0  # after its end the server deletes what a dead process left

# KEYS: the barrier (hash: token, owner, until), the users noted behind it. ARGV: token, owner, now, until,
# milliseconds.
_RAISE = """
local standing = redis.call('HMGET', KEYS[1], 'token', 'until')
if standing[1] == ARGV[1] then return 1 end
if standing[2] and tonumber(standing[2]) > tonumber(ARGV[3]) then return 0 end
redis.call('DEL', KEYS[2])
redis.call('HSET', KEYS[1], 'token', ARGV[1], 'owner', ARGV[2], 'until', ARGV[4])
return redis.call('PEXPIRE', KEYS[1], ARGV[5])
"""
_LOWER = """
if redis.call('HGET', KEYS[1], 'token') ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1], KEYS[2])
"""
# KEYS: the barrier, the users noted behind it. ARGV: users.
_NOTE = """
local left = redis.call('PTTL', KEYS[1])
if left > 0 then
  redis.call('SADD', KEYS[2], unpack(ARGV))
  redis.call('PEXPIRE', KEYS[2], left)
end
return left
"""

BARRIER_END: Command = ("HGET", log_keys.BARRIER_WRITERS, "until")


class RedisWriteBarrier:
    """`memory.ports.WriteBarrier`. `owners`: this process, as the turn log knows it."""

    def __init__(self, client: LogClient, owners: RedisOwners, *, clock: Clock) -> None:
        self._client = client
        self._owners = owners
        self._ledger = LedgerStore(client)
        self._clock = clock

    @asynccontextmanager
    async def alone(self, *, seconds: float) -> AsyncIterator[None]:
        async with self._raised(log_keys.BARRIER_ALONE, seconds):
            writing = [user_id for user_id, _ in await self._ledger.held_locks()]
            if writing:
                await self._client.run(_NOTE, [log_keys.BARRIER_ALONE, log_keys.NOTED_WRITERS], writing)
            yield

    def closed(self, *, seconds: float) -> AbstractAsyncContextManager[None]:
        return self._closed(seconds)

    async def writers(self) -> Sequence[str]:
        return sorted(user.decode() for user in await self._client.call("SMEMBERS", log_keys.NOTED_WRITERS))

    @asynccontextmanager
    async def _closed(self, seconds: float) -> AsyncIterator[None]:
        async with self._raised(log_keys.BARRIER_WRITERS, seconds):
            give_up_at = asyncio.get_running_loop().time() + RELEASED_SECONDS_MAX
            while any(until > self._clock() for _, until in await self._ledger.held_locks()):
                if asyncio.get_running_loop().time() > give_up_at:
                    raise Unavailable("turn_log", "users' locks are held for long")
                await asyncio.sleep(PAUSE_SECONDS)
            yield

    @asynccontextmanager
    async def _raised(self, barrier: str, seconds: float) -> AsyncIterator[None]:
        now, token = self._clock(), secrets.token_hex(16)
        standing, owner = await self._client.call("HMGET", barrier, "token", "owner")
        if standing is not None and await self._owners.is_dead(owner.decode()):
            await self._lower(barrier, standing.decode())
        milliseconds = int((seconds + LEFT_SECONDS) * 1000)
        words: list[str | bytes | int | float] = [
            token,
            self._owners.name,
            repr(now),
            repr(now + seconds),
            milliseconds,
        ]
        try:
            if not await to_its_end(self._client.run(_RAISE, [barrier, _behind(barrier)], words)):
                raise Conflict("another process is at it")
            yield
        finally:
            await to_its_end(self._lower(barrier, token))

    async def _lower(self, barrier: str, token: str) -> None:
        await self._client.run(_LOWER, [barrier, _behind(barrier)], [token])


class BarrierLook:
    """What the barriers tell whoever takes a user's lock."""

    def __init__(self, client: LogClient) -> None:
        self._client = client

    async def note_writer(self, user_id: str) -> bytes | None:
        """After a lock was taken, and before it is released, for whoever is alone may have begun meanwhile.

        The reply to `BARRIER_END`.
        """
        noting = ("EVAL", _NOTE, 2, log_keys.BARRIER_ALONE, log_keys.NOTED_WRITERS, user_id)
        _, until = await self._client.calls([noting, BARRIER_END])
        return None if until is None else bytes(until)


def is_closed(until: bytes | None, *, now: float) -> bool:
    """Whether nobody may take a user's lock now: the reply to `BARRIER_END`."""
    return until is not None and float(until) > now


def _behind(barrier: str) -> str:
    """The users who are noted while it stands; for the other one nobody is."""
    return log_keys.NOTED_WRITERS if barrier == log_keys.BARRIER_ALONE else f"{barrier}:noted"
