"""Opt-outs on Redis, by the digest of the user's id: all in one hash, which outlives the users' other keys."""

from __future__ import annotations

from memory.adapters.redis import log_keys
from memory.adapters.redis.log_client import LogClient
from memory.adapters.redis.log_keys import UserKeys


class RedisOptOuts:
    """`memory.ports.OptOuts`."""

    def __init__(self, client: LogClient) -> None:
        self._client = client

    async def since(self, user_id: str) -> float | None:
        stored = await self._client.call("HGET", log_keys.OPT_OUTS, UserKeys(user_id).digest)
        return None if stored is None else float(stored)

    async def set(self, user_id: str, *, at: float) -> float:
        arguments = [UserKeys(user_id).digest, repr(at)]
        return float(await self._client.run(_FIRST, [log_keys.OPT_OUTS], arguments))

    async def clear(self, user_id: str) -> None:
        await self._client.call("HDEL", log_keys.OPT_OUTS, UserKeys(user_id).digest)

    async def count(self) -> int:
        return int(await self._client.call("HLEN", log_keys.OPT_OUTS))


_FIRST = "redis.call('HSETNX', KEYS[1], ARGV[1], ARGV[2]) return redis.call('HGET', KEYS[1], ARGV[1])"
