"""Snapshots of working sets on Redis, for filters on several machines: one value per user, of limited size together.

An index over all users holds sizes and times of last use. It is written before a snapshot, and the least recently used
are deleted beyond the limit, or where a server is full: that costs the next chat of their user time, nothing else.
Users are digests there.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from functools import partial

from memory.adapters.redis import log_keys
from memory.adapters.redis.background import RedisBackground
from memory.adapters.redis.failure_reasons import is_refused
from memory.adapters.redis.log_client import LogClient
from memory.adapters.redis.log_keys import UserKeys
from memory.errors import Unavailable
from memory.ports import Clock

SNAPSHOT_BYTES_MAX = 128 << 20  # Redis takes 512 MiB in one value; it blocks everybody while it copies a large one
USED_AGAIN_SECONDS = 60.0  # precision of the time of last use: each update is a write
GONE_AT_ONCE = 20  # they may have 30 MB each
LOOKED_AT_ONCE, LOOKED_AT_MAX = 200, 10_000  # for some on the full node of a cluster
NONE_SECONDS = 3.0  # after none was found on a server: until then nobody looks again, as every write would
KEPT_FREE = 0.1  # of a server's `maxmemory`: snapshots leave it to what must not be lost

_MEMORY = "local node_of = KEYS[1]; return redis.call('INFO', 'memory')"
_USED_BYTES, _LIMIT_BYTES = rb"\bused_memory:(\d+)", rb"\bmaxmemory:(\d+)"
# KEYS: users by last use, sizes, their sum. ARGV: user, size, time, limit, how many may go now. Gives who
# has to go: the least recently used, without whom the sum is within the limit. The sum changes when they are gone.
_ENTER = """
local size = tonumber(ARGV[2]) - tonumber(redis.call('HGET', KEYS[2], ARGV[1]) or 0)
redis.call('ZADD', KEYS[1], ARGV[3], ARGV[1])
redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
local total = redis.call('INCRBY', KEYS[3], size)
local gone = {}
for _, user in ipairs(redis.call('ZRANGE', KEYS[1], 0, ARGV[5] - 1)) do
  if total <= tonumber(ARGV[4]) then break end
  if user ~= ARGV[1] then
    total = total - tonumber(redis.call('HGET', KEYS[2], user) or 0)
    gone[#gone + 1] = user
    gone[#gone + 1] = redis.call('ZSCORE', KEYS[1], user)
  end
end
return gone
"""
# ARGV: user and time of last use, ...: who was used meanwhile stays. '' for the time: in any case.
_LEAVE = """
for at = 1, #ARGV, 2 do
  local used = redis.call('ZSCORE', KEYS[1], ARGV[at])
  if used and (ARGV[at + 1] == '' or tonumber(used) == tonumber(ARGV[at + 1])) then
    redis.call('ZREM', KEYS[1], ARGV[at])
    redis.call('DECRBY', KEYS[3], redis.call('HGET', KEYS[2], ARGV[at]) or 0)
    redis.call('HDEL', KEYS[2], ARGV[at])
  end
end
return 1
"""
# After a snapshot was written, and where it is read: the user is in the index, used just now.
_USED = """
local before = redis.call('ZSCORE', KEYS[1], ARGV[1])
if before and tonumber(before) > ARGV[3] - ARGV[4] then return 0 end
if not before then
  redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
  redis.call('INCRBY', KEYS[3], ARGV[2])
end
return redis.call('ZADD', KEYS[1], 'GT', ARGV[3], ARGV[1])
"""


class RedisSnapshots:
    """`memory.ports.snapshots.Snapshots`. `background` must be open."""

    def __init__(self, client: LogClient, background: RedisBackground, *, bytes_max: int, clock: Clock) -> None:
        """`bytes_max`: of all snapshots together, about."""
        self._client = client
        self._background = background
        self._index = list(log_keys.SNAPSHOTS)
        self._bytes_max = bytes_max
        self._clock = clock
        self._none_until: dict[str, float] = {}  # the loop's time, by node

    async def read(self, user_id: str) -> bytes | None:
        keys = UserKeys(user_id)
        found: bytes | None = await self._client.call("GET", keys.snapshot)
        if found is not None:  # a chat waits for this: not for the server's disk as well
            self._background.post(partial(self._note_used, keys, found))
        return found

    async def write(self, user_id: str, snapshot: bytes) -> None:
        keys = UserKeys(user_id)
        is_small = len(snapshot) <= min(self._bytes_max, SNAPSHOT_BYTES_MAX)
        if not is_small or not await self._has_room(keys.snapshot, len(snapshot)):
            await self.erase(user_id)  # otherwise an old one would remain
            return
        arguments = (keys.digest, len(snapshot), repr(self._clock()), self._bytes_max, GONE_AT_ONCE)
        gone = await self._client.run(_ENTER, self._index, arguments)
        await self._delete(gone)
        await self._client.call("SET", keys.snapshot, snapshot)
        await self._note_used(keys, snapshot)

    async def delete_least_used(self, node: str) -> bool:
        """For what must be kept, on a server that is full; of a cluster on that node. False if there was none."""
        clock = asyncio.get_running_loop().time
        if clock() < self._none_until.get(node, 0.0):
            return False
        for first in range(0, LOOKED_AT_MAX, LOOKED_AT_ONCE):
            found = await self._client.call("ZRANGE", self._index[0], first, first + LOOKED_AT_ONCE - 1)
            users = [user for user in found if self._client.node_of(_snapshot_of(user)) == node]
            if users:
                await self._delete([word for user in users[:GONE_AT_ONCE] for word in (user, b"")])
                return True
            if not found:
                break
        self._none_until[node] = clock() + NONE_SECONDS
        return False

    async def _has_room(self, key: str, size: int) -> bool:
        """On the node of this key: what is kept free there is for turns. A hosted server that shows nothing is as large
        as it says it is, until it refuses a write.
        """
        try:
            report = await self._client.run(_MEMORY, [key], [])
        except Unavailable as error:
            if is_refused(error):
                return True
            raise
        used, limit = (
            int(found[1]) if (found := re.search(name, report)) else 0 for name in (_USED_BYTES, _LIMIT_BYTES)
        )
        return not limit or used + size <= limit * (1 - KEPT_FREE)

    async def erase(self, user_id: str) -> None:
        await self._delete([UserKeys(user_id).digest.encode(), b""])

    async def erase_all(self) -> None:
        while users := await self._client.call("ZRANGE", self._index[0], 0, GONE_AT_ONCE - 1):
            await self._delete([word for user in users for word in (user, b"")])

    async def _delete(self, users: Sequence[bytes]) -> None:
        """`users`: with the time of their last use. Their snapshots first, so that none is in no index."""
        await self._client.calls([("UNLINK", _snapshot_of(user)) for user in users[::2]])
        if users:
            await self._client.run(_LEAVE, self._index, users)

    async def _note_used(self, keys: UserKeys, snapshot: bytes) -> None:
        arguments = (keys.digest, len(snapshot), repr(self._clock()), repr(USED_AGAIN_SECONDS))
        await self._client.run(_USED, self._index, arguments)


def _snapshot_of(user: bytes) -> str:
    """Its key."""
    return UserKeys.of_digest(user.decode()).snapshot
