"""Values of users by name, of one kind, limited per user, over all users and in age: the oldest go first.

A user's values are under the user's hash tag. An index of all users, under a tag of its own, has a place for each:
places grow by the weight of each value, so that values beyond the limit are at the lowest places. A value gets its
place before it is written, and again after that, in case it lost it meanwhile; it loses its place after it was deleted,
by comparison. So no value is without a place; a place without a value, which is what a death between two steps leaves,
goes when its turn comes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from memory.adapters.redis import shelf_scripts
from memory.adapters.redis.log_client import Command, LogClient
from memory.adapters.redis.log_keys import UserKeys

GONE_AT_ONCE = 100  # deleted with one write, so that no writer waits for a backlog
WORDS_PER_SCRIPT = 2_000  # pairs are not torn; Lua takes about 8,000 words
UNLIMITED = 1 << 53  # what Lua can count
EVERYTHING = ""  # the mark that forbids every older value
MARKS_KEPT_TIMES = 10  # of their seconds, by the server's own clock: only to make room

Word = TypeVar("Word")
Members: TypeAlias = Sequence[tuple[bytes, bytes | int]]  # of the index, with their places


@dataclass(frozen=True, slots=True)
class ShelfLimits:
    """`weight_max` of all values, what a value weighs being up to its kind; `mark_seconds`: a mark's effect."""

    weight_max: int = UNLIMITED
    user_values_max: int = UNLIMITED
    user_bytes_max: int = UNLIMITED
    seconds_max: float = math.inf
    mark_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class NewValue:
    """`weight`: its share of `weight_max`. It is refused if one of its marks was set since it was made."""

    name: str
    value: bytes
    made_at: float
    weight: int = 1
    marks: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Shelved:
    """A value and where it is. `name` is UTF-8 with lone surrogates."""

    name: bytes
    place: int
    value: bytes


class Shelf:
    """The values of one kind. `kind`: the hash tag of the index, and part of each user's keys."""

    def __init__(self, client: LogClient, kind: str, limits: ShelfLimits) -> None:
        self._client = client
        self._kind = kind
        self._limits = limits
        self._index = [f"memproxy:{{{kind}}}:{part}" for part in ("places", "times")]

    async def find(self, user_id: str, names: Sequence[str]) -> list[bytes | None]:
        """In that order."""
        if not names:
            return []
        found: list[bytes | None] = await self._client.call(
            "HMGET", UserKeys(user_id).shelf(self._kind)[0], *(_bytes_of(name) for name in names)
        )
        return found

    async def put(self, user_id: str, new: NewValue, *, keeps_first: bool = False) -> None:
        """In place of an earlier value, or with `keeps_first` only where there is none.

        Ignored if the user, or one of its marks, or everything was marked since it was made.
        """
        keys, name, made_at = UserKeys(user_id), _bytes_of(new.name), repr(new.made_at)
        member = _member(keys, name)
        oldest = repr(new.made_at - self._limits.seconds_max)
        arguments = (member, new.weight, made_at, self._limits.weight_max, oldest, GONE_AT_ONCE)
        place, surplus = await self._client.run(shelf_scripts.ENTER, self._index, arguments)
        limits = (self._limits.user_values_max, self._limits.user_bytes_max, int(keeps_first))
        words = [name, new.value, place, made_at, *limits, EVERYTHING, *map(_bytes_of, new.marks)]
        is_there, gone = await self._client.run(shelf_scripts.PUT, self._user_keys(keys), words)
        leaving = [(_member(keys, other), at) for other, at in _pairs(gone)]
        again: list[Command] = [
            ("ZADD", self._index[0], "NX", place, member),
            ("ZADD", self._index[1], "NX", made_at, member),
        ]
        if not is_there:
            leaving, again = [*leaving, (member, place)], []
        await self._client.calls([*again, *self._leaving(leaving)])
        await self._take_off(_pairs(surplus))

    async def replace(self, user_id: str, name: str, before: bytes, after: bytes) -> bool:
        """False if it is not that value any more."""
        words = [_bytes_of(name), before, after]
        return bool(await self._client.run(shelf_scripts.REPLACE, self._user_keys(UserKeys(user_id)), words))

    async def newest(self, user_id: str, *, below: int, limit: int) -> tuple[list[Shelved], int]:
        """At places below that one, the newest first; and the place to go on below, or 0 at the end."""
        keys = UserKeys(user_id)
        names = _pairs(await self._client.call(*_newest(keys.shelf(self._kind)[1], below, limit)))
        return await self._shelved([(keys, name, place) for name, place in names], limit)

    async def newest_of_all(self, *, below: int, limit: int) -> tuple[list[Shelved], int]:
        """Likewise of all users."""
        members = _pairs(await self._client.call(*_newest(self._index[0], below, limit)))
        return await self._shelved([(*_user_and_name(member), place) for member, place in members], limit)

    async def all(self, user_id: str) -> list[Shelved]:
        shelved, _ = await self.newest(user_id, below=UNLIMITED, limit=-1)
        return shelved

    async def named(self, user_id: str, names: Sequence[str]) -> list[Shelved]:
        """Those that there are."""
        if not names:
            return []
        keys, asked = UserKeys(user_id), [_bytes_of(name) for name in names]
        places = await self._client.call("ZMSCORE", keys.shelf(self._kind)[1], *asked)
        placed = [(keys, name, place) for name, place in zip(asked, places, strict=True) if place is not None]
        shelved, _ = await self._shelved(placed, UNLIMITED)
        return shelved

    async def remove(self, user_id: str, shelved: Sequence[Shelved]) -> None:
        """Unless there are newer ones in their place."""
        keys = UserKeys(user_id)
        await self._take_off([(_member(keys, one.name), one.place) for one in shelved])

    async def drop_expired(self, now: float) -> None:
        """Some of those that have expired, the oldest first."""
        expired = (repr(now - self._limits.seconds_max), GONE_AT_ONCE)
        await self._take_off(_pairs(await self._client.run(shelf_scripts.EXPIRED, self._index, expired)))

    async def mark(self, user_id: str, marks: Sequence[str], *, at: float) -> None:
        """From now on, values with one of these marks that were made until then are not put there."""
        keys = self._user_keys(UserKeys(user_id))
        seconds = self._limits.mark_seconds
        times = (repr(at), repr(at - seconds), math.ceil(seconds * MARKS_KEPT_TIMES))
        await self._client.calls(
            [("EVAL", shelf_scripts.MARK, len(keys), *keys, *times, *map(_bytes_of, part)) for part in _parts(marks)]
        )

    async def erase(self, user_id: str, *, at: float | None = None) -> None:
        """All values of the user; with `at`, those that were made until then are not put there any more."""
        if at is not None:
            await self.mark(user_id, [EVERYTHING], at=at)
        keys = UserKeys(user_id)
        gone = await self._client.run(shelf_scripts.ERASE, self._user_keys(keys), [])
        await self._client.calls(self._leaving([(_member(keys, name), place) for name, place in _pairs(gone)]))

    async def _take_off(self, members: Members) -> None:
        """The values go first: whoever dies before their places are gone too leaves them to the next."""
        of_users: dict[UserKeys, list[bytes | int]] = {}
        known: dict[str, UserKeys] = {}
        for member, place in members:
            keys, name = _user_and_name(member)
            of_users.setdefault(known.setdefault(keys.digest, keys), []).extend((name, place))
        commands: list[Command] = []
        for keys, words in of_users.items():
            user_keys = self._user_keys(keys)
            commands += [("EVAL", shelf_scripts.TAKE_OFF, len(user_keys), *user_keys, *part) for part in _parts(words)]
        await self._client.calls(commands)
        await self._client.calls(self._leaving(members))

    def _leaving(self, members: Members) -> list[Command]:
        words = [word for pair in members for word in pair]
        return [("EVAL", shelf_scripts.LEAVE, len(self._index), *self._index, *part) for part in _parts(words)]

    async def _shelved(self, placed: Sequence[tuple[UserKeys, bytes, bytes]], limit: int) -> tuple[list[Shelved], int]:
        """Some may be gone meanwhile."""
        values = await self._client.calls([("HGET", keys.shelf(self._kind)[0], name) for keys, name, _ in placed])
        shelved = [
            Shelved(name, int(float(place)), value)
            for (_, name, place), value in zip(placed, values, strict=True)
            if value is not None
        ]
        return shelved, int(float(placed[-1][2])) if len(placed) == limit else 0

    def _user_keys(self, keys: UserKeys) -> list[str]:
        return [*keys.shelf(self._kind), keys.erased]


def _pairs(words: Sequence[bytes]) -> list[tuple[bytes, bytes]]:
    return list(zip(words[::2], words[1::2], strict=True))


def _parts(words: Sequence[Word]) -> list[Sequence[Word]]:
    return [words[start : start + WORDS_PER_SCRIPT] for start in range(0, len(words), WORDS_PER_SCRIPT)]


def _newest(key: str, below: int, limit: int) -> Command:
    return ("EVAL", shelf_scripts.NEWEST, 1, key, f"({below}", limit)


def _member(keys: UserKeys, name: bytes) -> bytes:
    return keys.digest.encode() + b":" + name


def _user_and_name(member: bytes) -> tuple[UserKeys, bytes]:
    digest, _, name = member.partition(b":")
    return UserKeys.of_digest(digest.decode()), name


def _bytes_of(name: str) -> bytes:
    return name.encode("utf-8", "surrogatepass")
