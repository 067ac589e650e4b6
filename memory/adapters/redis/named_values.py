"""Values of the deployment by name, of one kind, with the time of each: the oldest go where there are too many."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from memory.adapters.redis.log_client import LogClient
from memory.errors import Unavailable

TRIES_MAX = 50  # each loss means that somebody else's value was written

# KEYS: values by name, names by time. ARGV: name, what it replaces or '', value, time, how many there may be.
_PUT = """
if (redis.call('HGET', KEYS[1], ARGV[1]) or '') ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
redis.call('ZADD', KEYS[2], ARGV[4], ARGV[1])
for _, name in ipairs(redis.call('ZRANGE', KEYS[2], 0, -1 - ARGV[5])) do
  redis.call('HDEL', KEYS[1], name)
  redis.call('ZREM', KEYS[2], name)
end
return 1
"""

Result = TypeVar("Result")


class NamedValues:
    """`kind`: the hash tag. A name may be any bytes, a value any but none."""

    def __init__(self, client: LogClient, kind: str, *, values_max: int) -> None:
        self._client = client
        self._keys = [f"memproxy:{{{kind}}}:{part}" for part in ("values", "times")]
        self._values_max = values_max

    async def get(self, name: bytes) -> bytes | None:
        value: bytes | None = await self._client.call("HGET", self._keys[0], name)
        return value

    async def change(
        self, name: bytes, rule: Callable[[bytes | None], tuple[Result, bytes | None]], *, at: float
    ) -> Result:
        """The rule gives its result, and the value to write or None. Applied as often as somebody else is faster."""
        for _ in range(TRIES_MAX):
            before = await self.get(name)
            result, after = rule(before)
            words = (name, before or b"", after or b"", repr(at), self._values_max)
            if after is None or await self._client.run(_PUT, self._keys, words):
                return result
        raise Unavailable("turn_log", f"others changed this value {TRIES_MAX} times meanwhile")
