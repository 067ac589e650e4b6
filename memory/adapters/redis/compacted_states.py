"""States of long conversations on Redis, shared by all filters. The limits are those of SQLite.

The state of a conversation is usually found among its newest keys; only otherwise are all of them looked up.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from memory.adapters.redis import log_keys
from memory.adapters.redis.log_client import LogClient
from memory.adapters.redis.shelves import NewValue, Shelf, ShelfLimits
from memory.adapters.retention import (
    STATE_BYTES_MAX,
    STATE_DROP_SECONDS,
    STATE_KEYS_ASKED_MAX,
    STATE_SECONDS_MAX,
    STATES_MAX,
    USER_STATES_MAX,
)
from memory.model import CompactedState

KEYS_AT_A_GLANCE = 20


class RedisCompactedStates:
    """`memory.ports.CompactedStates`."""

    def __init__(self, client: LogClient) -> None:
        kept = ShelfLimits(STATES_MAX, USER_STATES_MAX, seconds_max=STATE_SECONDS_MAX, mark_seconds=STATE_DROP_SECONDS)
        self._shelf = Shelf(client, log_keys.STATES, kept)

    async def find(self, user_id: str, keys: Sequence[str]) -> tuple[str, CompactedState] | None:
        newest, earlier = keys[-KEYS_AT_A_GLANCE:], keys[-STATE_KEYS_ASKED_MAX:-KEYS_AT_A_GLANCE]
        return await self._found(user_id, newest) or await self._found(user_id, earlier)

    async def keep(self, user_id: str, key: str, state: CompactedState, *, made_at: float) -> None:
        encoded = _ENCODER.encode(state)
        if len(encoded) <= STATE_BYTES_MAX:
            await self._shelf.put(user_id, NewValue(key, encoded, made_at), keeps_first=True)

    async def drop(self, user_id: str, *, now: float) -> None:
        await self._shelf.erase(user_id, at=now)

    async def _found(self, user_id: str, keys: Sequence[str]) -> tuple[str, CompactedState] | None:
        stored = await self._shelf.find(user_id, keys)
        for key, state in zip(reversed(keys), reversed(stored), strict=True):
            if state is not None:
                return key, _STATES.decode(state)
        return None


_ENCODER = msgspec.msgpack.Encoder()
_STATES = msgspec.msgpack.Decoder(CompactedState)
