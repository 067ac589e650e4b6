"""Idempotency keys on Redis. A value holds a hash of the call and the ids that it returned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import msgspec

from memory.adapters.redis import log_keys
from memory.adapters.redis.log_client import LogClient
from memory.adapters.redis.shelves import NewValue, Shelf, ShelfLimits
from memory.adapters.retention import CALL_SECONDS, USER_CALLS_MAX
from memory.errors import Unavailable
from memory.ports.idempotency import KeyClaim

TRIES_MAX = 50


class RedisIdempotencyKeys:
    """`memory.ports.IdempotencyKeys`."""

    def __init__(self, client: LogClient) -> None:
        kept = ShelfLimits(user_values_max=USER_CALLS_MAX, seconds_max=CALL_SECONDS)
        self._shelf = Shelf(client, log_keys.CALLS, kept)

    async def claim(self, user_id: str, key: str, *, fingerprint: bytes, now: float) -> KeyClaim:
        mine = NewValue(key, _ENCODER.encode(KeyClaim(fingerprint, now)), now)
        for _ in range(TRIES_MAX):
            (stored,) = await self._shelf.find(user_id, [key])
            if stored is None:
                await self._shelf.put(user_id, mine, keeps_first=True)
                continue
            claim = _CLAIMS.decode(stored)
            if claim.claimed_at >= now - CALL_SECONDS:
                return claim
            await self._shelf.drop_expired(now)
        raise Unavailable("turn_log", "the key was not kept: its user was erased meanwhile, or many keys expire")

    async def answered(self, user_id: str, key: str, answer: Sequence[str]) -> None:
        for _ in range(TRIES_MAX):
            (stored,) = await self._shelf.find(user_id, [key])
            if stored is None:
                return
            after = _ENCODER.encode(replace(_CLAIMS.decode(stored), answer=tuple(answer)))
            if await self._shelf.replace(user_id, key, stored, after):
                return
        raise Unavailable("turn_log", f"others changed this key {TRIES_MAX} times meanwhile")

    async def erase(self, user_id: str) -> None:
        await self._shelf.erase(user_id)


_ENCODER = msgspec.msgpack.Encoder()
_CLAIMS = msgspec.msgpack.Decoder(KeyClaim)
