"""Exchanges that later requests may continue, on Redis, where all filters find them. The limits are those of SQLite.

A client may continue within a millisecond of an answer: until a link is written, this process finds it in memory.
"""

from __future__ import annotations

from collections import OrderedDict

import msgspec

from memory.adapters.redis import log_keys
from memory.adapters.redis.conversation_record import RedisConversationRecord
from memory.adapters.redis.log_client import LogClient
from memory.adapters.redis.queue_store import QueueStore
from memory.adapters.redis.shelves import NewValue, Shelf, ShelfLimits
from memory.adapters.retention import LINK_SECONDS_MAX, LINKS_MAX, USER_LINKS_MAX
from memory.model import ChainLink, Scope, Turn, is_valid_id
from memory.ports import Clock

PENDING_MAX = 1_000  # of this process; usually written within milliseconds
ERASED_SECONDS = 60.0  # longer than a link is on its way


class RedisResponseChains:
    """`memory.ports.ResponseChains`."""

    def __init__(self, client: LogClient, *, clock: Clock) -> None:
        kept = ShelfLimits(LINKS_MAX, USER_LINKS_MAX, seconds_max=LINK_SECONDS_MAX, mark_seconds=ERASED_SECONDS)
        self._shelf = Shelf(client, log_keys.CHAINS, kept)
        self._record = RedisConversationRecord(client, QueueStore(client))
        self._clock = clock
        self._pending: OrderedDict[tuple[str, str], ChainLink] = OrderedDict()

    async def find(self, user_id: str, name: str) -> ChainLink | None:
        if not is_valid_id(name):
            return None
        pending = self._pending.get((user_id, name))
        if pending is not None:
            return pending
        (stored,) = await self._shelf.find(user_id, [name])
        return None if stored is None else _LINKS.decode(stored)

    async def keep(self, user_id: str, names: tuple[str, ...], link: ChainLink, *, at: float) -> None:
        names = tuple(filter(is_valid_id, names))
        for name in names:
            self._pending[user_id, name] = link
            self._pending.move_to_end((user_id, name))
        while len(self._pending) > PENDING_MAX:
            self._pending.popitem(last=False)
        try:
            for name in names:
                await self._shelf.put(user_id, NewValue(name, _ENCODER.encode(link), at))
        finally:
            for name in names:
                if self._pending.get((user_id, name)) is link:
                    del self._pending[user_id, name]

    async def said_before(self, scope: Scope, name: str, *, limit: int) -> list[Turn]:
        link = await self.find(scope.user_id, name)
        return [] if link is None else await self._record.said_up_to(scope, link, limit=limit)

    async def erase(self, user_id: str) -> None:
        for key in [key for key in self._pending if key[0] == user_id]:
            del self._pending[key]
        await self._shelf.erase(user_id, at=self._clock())


_ENCODER = msgspec.msgpack.Encoder()
_LINKS = msgspec.msgpack.Decoder(ChainLink)
