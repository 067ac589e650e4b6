"""A copy of all users' queues in this process, from which work is chosen. It follows the index of changes.

What it misses (a process that died between two steps) is found by a rescan. Users without anything to learn leave the
index only long after their last change, by comparison, so that every replica has seen it by then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from itertools import islice

from memory.adapters.redis import log_keys
from memory.adapters.redis.log_client import LogClient
from memory.adapters.redis.log_keys import UserKeys
from memory.adapters.redis.queue_choice import QueueSummary, summary_of
from memory.adapters.redis.queue_store import QueueStore

RESCAN_SECONDS = 30.0
LEAVES_AFTER_SECONDS = 120.0  # without a change: more than any replica goes on without a rescan
USERS_READ_MAX = 500  # queues in one round trip

CHANGED_USERS = """
local number = tonumber(redis.call('GET', KEYS[1]) or '0')
return {number, redis.call('ZRANGEBYSCORE', KEYS[2], '(' .. ARGV[1], '+inf')}
"""
REMOVE_UNCHANGED = """
local removed = 0
for place = 2, #ARGV do
  local number = redis.call('ZSCORE', KEYS[1], ARGV[place])
  if number and tonumber(number) <= tonumber(ARGV[1]) then
    removed = removed + redis.call('ZREM', KEYS[1], ARGV[place])
  end
end
return removed
"""


class QueueReplica:
    """Call `refreshed` before each choice; it costs one round trip where nothing changed."""

    def __init__(self, client: LogClient, store: QueueStore) -> None:
        self._client = client
        self._store = store
        self._summaries: dict[str, QueueSummary] = {}  # by the digests of the users
        self._number = 0  # of the last change that was read
        self._scanned_at = -RESCAN_SECONDS
        self._past_numbers: list[tuple[float, int]] = []  # of earlier rescans, with their times
        self._refreshing = asyncio.Lock()

    async def refreshed(self) -> Collection[QueueSummary]:
        """All queues with turns or windows, with every change that was complete before the call."""
        async with self._refreshing:
            now = asyncio.get_running_loop().time()
            if now - self._scanned_at >= RESCAN_SECONDS:
                await self._rescan(now)
            else:
                number, changed = await self._changed_since(self._number)
                if number < self._number:  # the server lost changes, or is another one
                    await self._rescan(now)
                else:
                    await self._load(changed)
                    self._number = number
            return self._summaries.values()

    async def reload(self, user_id: str) -> None:
        """A choice was made from an outdated queue."""
        await self._load([UserKeys(user_id).digest])

    async def _rescan(self, now: float) -> None:
        number, users = await self._changed_since(0)
        for digest in self._summaries.keys() - set(users):
            del self._summaries[digest]
        await self._load(users)
        self._number, self._scanned_at = number, now
        await self._remove_empty([digest for digest in users if digest not in self._summaries], now)
        self._past_numbers.append((now, number))

    async def _changed_since(self, number: int) -> tuple[int, list[str]]:
        keys = [log_keys.QUEUE_CHANGES, log_keys.QUEUE_USERS]
        newest, users = await self._client.run(CHANGED_USERS, keys, [number])
        return int(newest), [digest.decode() for digest in users]

    async def _load(self, digests: Collection[str]) -> None:
        remaining = iter(digests)
        while batch := list(islice(remaining, USERS_READ_MAX)):
            for digest, queue in zip(batch, await self._store.read_many(batch), strict=True):
                if queue.is_empty:
                    self._summaries.pop(digest, None)
                else:
                    self._summaries[digest] = summary_of(queue)

    async def _remove_empty(self, digests: Collection[str], now: float) -> None:
        """Those whose last change is as old as a rescan of long ago."""
        old = [number for at, number in self._past_numbers if at <= now - LEAVES_AFTER_SECONDS]
        if not old:
            return
        self._past_numbers = [(at, number) for at, number in self._past_numbers if number > old[-1]]
        remaining = iter(digests)
        while batch := list(islice(remaining, USERS_READ_MAX)):
            await self._client.run(REMOVE_UNCHANGED, [log_keys.QUEUE_USERS], [old[-1], *batch])
