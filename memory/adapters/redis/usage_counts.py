"""Access counts on Redis: gathered in memory, written in batches, added up for the store.

A count holds what is not in the store yet, and, once somebody set out to bring it there, the sum that the store has to
show: so a repeat after a crash writes the same sum. It must never make a request wait, nor a reader fail.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import Self

from memory.adapters.redis.background import RedisBackground
from memory.adapters.redis.log_client import LogClient
from memory.adapters.redis.log_keys import UserKeys
from memory.adapters.usage_tally import UsageTally
from memory.ports import UsageCount

FLUSH_SECONDS = 5.0  # between two writes of one process, which is what a crash may lose
WORDS_PER_SCRIPT = 3_000  # Lua takes about 8,000; divisible by three

# KEYS of all: uses that are not in the store, sums on their way there, times of the last use.
# KEYS[4] is the user's erasure. ARGV: memory, count, time of the last use, ...
_ADD = """
local erased = redis.call('GET', KEYS[4])
local erased_at = erased and cmsgpack.unpack(erased)['erased_at'] or -1
for at = 1, #ARGV, 3 do
  if tonumber(ARGV[at + 2]) > erased_at then
    redis.call('HINCRBY', KEYS[1], ARGV[at], ARGV[at + 1])
    redis.call('ZADD', KEYS[3], 'GT', ARGV[at + 2], ARGV[at])
  end
end
return 1
"""
_WAITING = """
local last = redis.call('ZRANGE', KEYS[3], 0, -1, 'WITHSCORES')
return {redis.call('HGETALL', KEYS[1]), redis.call('HGETALL', KEYS[2]), last}
"""
# ARGV: memory, count in the store, ...
_BEGIN = """
for at = 1, #ARGV, 2 do
  local counted = redis.call('HGET', KEYS[1], ARGV[at])
  if counted then
    local total = redis.call('HGET', KEYS[2], ARGV[at]) or 0
    redis.call('HSET', KEYS[2], ARGV[at], math.max(tonumber(ARGV[at + 1]), tonumber(total)) + tonumber(counted))
    redis.call('HSET', KEYS[1], ARGV[at], 0)
  end
end
return 1
"""
_END = """
for _, memory in ipairs(ARGV) do
  redis.call('HDEL', KEYS[2], memory)
  if redis.call('HGET', KEYS[1], memory) == '0' then
    redis.call('HDEL', KEYS[1], memory)
    redis.call('ZREM', KEYS[3], memory)
  end
end
return 1
"""
_DROP = """
for _, memory in ipairs(ARGV) do
  redis.call('HDEL', KEYS[1], memory)
  redis.call('HDEL', KEYS[2], memory)
  redis.call('ZREM', KEYS[3], memory)
end
return 1
"""


class RedisUsageCounts:
    """`memory.ports.UsageCounts`. Open with `async with`, within `background`: on exit, pending counts are posted."""

    def __init__(self, client: LogClient, background: RedisBackground, *, flush_seconds: float = FLUSH_SECONDS) -> None:
        self._client = client
        self._background = background
        self._flush_seconds = flush_seconds
        self._tally = UsageTally()
        self._timer: asyncio.TimerHandle | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._flush()

    def count(self, user_id: str, memory_ids: Collection[str], *, at: float) -> None:
        self._tally.count(user_id, memory_ids, at=at)
        if not self._tally.is_empty and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._flush_seconds, self._flush)

    async def unstored(self, user_id: str, *, limit: int) -> dict[str, UsageCount]:
        counted, totals, used_at = map(_pairs, await self._client.run(_WAITING, UserKeys(user_id).uses, []))
        found = {
            memory.decode("utf-8", "surrogatepass"): UsageCount(
                int(count), int(totals.get(memory, 0)), float(used_at[memory])
            )
            for memory, count in counted.items()
        }
        return dict(sorted(found.items())[:limit])

    async def begin_store(self, user_id: str, stored: Mapping[str, int]) -> None:
        await self._run(
            _BEGIN, user_id, [word for memory, count in stored.items() for word in (_bytes_of(memory), count)]
        )

    async def end_store(self, user_id: str, memory_ids: Collection[str]) -> None:
        await self._run(_END, user_id, [_bytes_of(memory) for memory in memory_ids])

    async def drop(self, user_id: str, memory_ids: Collection[str]) -> None:
        self._tally.drop(user_id, memory_ids)
        await self._background.written()  # what was posted before
        if memory_ids:
            await self._run(_DROP, user_id, [_bytes_of(memory) for memory in memory_ids])
        else:
            await self._client.call("DEL", *UserKeys(user_id).uses)

    def _flush(self) -> None:
        self._timer = None
        for user_id, counts in self._tally.taken().items():
            words = [word for memory, count, at in counts for word in (_bytes_of(memory), count, repr(at))]
            self._background.post(partial(self._run, _ADD, user_id, words))

    async def _run(self, script: str, user_id: str, words: Sequence[str | bytes | int]) -> None:
        keys = UserKeys(user_id)
        for start in range(0, len(words), WORDS_PER_SCRIPT):
            await self._client.run(script, [*keys.uses, keys.erased], words[start : start + WORDS_PER_SCRIPT])


def _pairs(words: Sequence[bytes]) -> dict[bytes, bytes]:
    return dict(zip(words[::2], words[1::2], strict=True))


def _bytes_of(memory_id: str) -> bytes:
    return memory_id.encode("utf-8", "surrogatepass")
