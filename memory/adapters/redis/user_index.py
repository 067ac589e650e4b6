"""Users for whom something may be to do, over all hash tags: members of a sorted set, each at its place.

Whoever changes a user so that there may be something to do marks the member before the change and again after it.
Whoever looks and finds nothing removes it, or moves it, unless it was marked meanwhile. Members are digests: what is
left of an erased user names nobody.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from memory.adapters.redis.log_client import Command, LogClient

SPARE_MEMBERS = 10  # looked at beyond the limit: some have nothing to do
PAGE_MEMBERS_MAX = 200
PAGES_MAX = 500  # of one search; the rest is found by the next

# KEYS: members by place, members by the number of their last mark, that number. A place only moves towards the
# beginning; without one the number is the place.
_MARK = """
local number = redis.call('INCR', KEYS[3])
redis.call('ZADD', KEYS[2], number, ARGV[1])
redis.call('ZADD', KEYS[1], 'LT', ARGV[2] ~= '' and ARGV[2] or number, ARGV[1])
return number
"""
_PAGE = """
local page = {}
local found = redis.call('ZRANGEBYSCORE', KEYS[1], ARGV[1], ARGV[2], 'WITHSCORES', 'LIMIT', ARGV[3], ARGV[4])
for place = 1, #found, 2 do
  page[#page + 1] = {found[place], found[place + 1], redis.call('ZSCORE', KEYS[2], found[place])}
end
return page
"""
# ARGV: member, number of the mark that was read, and the new place or ''.
_SETTLE = """
for at = 1, #ARGV, 3 do
  if redis.call('ZSCORE', KEYS[2], ARGV[at]) == ARGV[at + 1] then
    if ARGV[at + 2] == '' then
      redis.call('ZREM', KEYS[1], ARGV[at])
      redis.call('ZREM', KEYS[2], ARGV[at])
    else
      redis.call('ZADD', KEYS[1], ARGV[at + 2], ARGV[at])
    end
  end
end
return 1
"""

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Marked:
    """`number`: of the last mark, as the server writes it."""

    member: str
    place: float
    number: bytes


@dataclass(frozen=True, slots=True)
class Look(Generic[Result]):
    """What is to do for a member, or None; and the place where it belongs: None if it leaves the index."""

    result: Result | None
    place: float | None


class UserIndex:
    """`name`: its hash tag."""

    def __init__(self, client: LogClient, name: str) -> None:
        self._client = client
        self._keys = [f"memproxy:{{{name}}}:{part}" for part in ("members", "marks", "number")]

    def marking(self, member: str, place: float | None = None) -> Command:
        """Without a place: behind all others, or where it is already."""
        return ("EVAL", _MARK, 3, *self._keys, member, "" if place is None else repr(place))

    async def search(
        self,
        look: Callable[[Sequence[Marked]], Awaitable[Sequence[Look[Result]]]],
        *,
        since: float = -math.inf,
        until: float = math.inf,
        limit: int,
    ) -> list[Result]:
        """The first results between the two places, in order. One round trip where the index is empty."""
        found: list[Result] = []
        passed, members = 0, min(limit + SPARE_MEMBERS, PAGE_MEMBERS_MAX)
        for _ in range(PAGES_MAX):
            page = await self._page(since, until, passed, members)
            looks = await look(page) if page else []
            moved = [(marked, one) for marked, one in zip(page, looks, strict=True) if one.place != marked.place]
            await self._settle(moved)
            passed += len(page) - len(moved)
            kept = (one for marked, one in zip(page, looks, strict=True) if one.place == marked.place)
            found += [one.result for one in kept if one.result is not None]
            comes_again = any(one.place is not None and since <= one.place <= until for _, one in moved)
            if len(found) >= limit or (len(page) < members and not comes_again):
                break
        return found[:limit]

    async def _page(self, since: float, until: float, passed: int, members: int) -> list[Marked]:
        page = await self._client.run(_PAGE, self._keys, [_place(since), _place(until), passed, members])
        return [Marked(member.decode(), float(place), number) for member, place, number in page]

    async def _settle(self, moved: Sequence[tuple[Marked, Look[Result]]]) -> None:
        words: list[str | bytes] = []
        for marked, one in moved:
            words += [marked.member, marked.number, "" if one.place is None else repr(one.place)]
        if words:
            await self._client.run(_SETTLE, self._keys, words)


def _place(at: float) -> str:
    return repr(at) if math.isfinite(at) else f"{'+' if at > 0 else '-'}inf"
