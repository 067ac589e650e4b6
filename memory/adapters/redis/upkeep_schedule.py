"""The upkeep schedule on Redis: the users known to the ledger, and the time of their last rounds.

One script assigns a user to one process, and no other user while that one is in progress. Whoever ends a write marks
its user as new (`ledger_store`); the next who asks adopts it. The index names users by digests: one that was erased has
no id any more, and leaves it when its turn comes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from memory.adapters.redis import log_keys
from memory.adapters.redis.log_client import LogClient
from memory.adapters.redis.log_keys import UserKeys

ADOPTED_AT_ONCE = 1_000
ERASED_AT_ONCE = 1_000  # users that are passed over in one call
USERS_PER_CALL = 1_000

# KEYS: new users, users by the end of their last round, users by the beginning of one in progress. ARGV: now, the
# latest end of a round after which a user is due, the time before which a beginning counts as dead, how many to adopt.
_NEXT = """
for _, user in ipairs(redis.call('SRANDMEMBER', KEYS[1], ARGV[4])) do
  redis.call('ZADD', KEYS[2], 'NX', ARGV[1], user)
  redis.call('SREM', KEYS[1], user)
end
if redis.call('ZCOUNT', KEYS[3], '(' .. ARGV[3], '+inf') > 0 then return false end
local user = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', ARGV[2], 'LIMIT', 0, 1)[1]
if not user then return false end
redis.call('DEL', KEYS[3])
redis.call('ZADD', KEYS[3], ARGV[1], user)
return user
"""
# ARGV: the user and the end of the round, or '' for one that is no more.
_END = """
redis.call('ZREM', KEYS[3], ARGV[1])
if ARGV[2] == '' then return redis.call('ZREM', KEYS[2], ARGV[1]) end
return redis.call('ZADD', KEYS[2], ARGV[2], ARGV[1])
"""
_KNOWN = "return {redis.call('SMEMBERS', KEYS[1]), redis.call('ZRANGE', KEYS[2], 0, -1)}"


class RedisUpkeepSchedule:
    """`memory.ports.UpkeepSchedule`."""

    def __init__(self, client: LogClient) -> None:
        self._client = client
        self._keys = [log_keys.NEW_USERS, *log_keys.ROUNDS]
        self._listed: Sequence[str] = ()  # while somebody reads page after page

    async def users(self, *, after: str, limit: int) -> Sequence[str]:
        """The first page reads the ids of all users, whom Redis does not keep in order."""
        if not after or not self._listed:
            self._listed = await self._all()
        first = bisect_right(self._listed, after)
        page = self._listed[first : first + limit]
        if len(page) < limit:
            self._listed = ()
        return page

    async def next_due(self, *, now: float, every: float, patience: float) -> str | None:
        times = (repr(now), repr(now - every), repr(now - patience), ADOPTED_AT_ONCE)
        for _ in range(ERASED_AT_ONCE):
            digest = await self._client.run(_NEXT, self._keys, times)
            if digest is None:
                return None
            user = await self._client.call("GET", UserKeys.of_digest(digest.decode()).user)
            if user is not None:
                return str(user.decode())
            await self._client.run(_END, self._keys, [digest, ""])
        return None

    async def ended(self, user_id: str, *, now: float) -> None:
        keys = UserKeys(user_id)
        is_known = await self._client.call("EXISTS", keys.user)
        await self._client.run(_END, self._keys, [keys.digest, repr(now) if is_known else ""])

    async def _all(self) -> list[str]:
        new, known = await self._client.run(_KNOWN, self._keys, [])
        keys = [UserKeys.of_digest(digest.decode()).user for digest in {*new, *known}]
        found: list[bytes | None] = []
        for start in range(0, len(keys), USERS_PER_CALL):
            found += await self._client.calls([("GET", key) for key in keys[start : start + USERS_PER_CALL]])
        return sorted(user.decode() for user in found if user is not None)
