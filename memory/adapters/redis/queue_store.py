"""Loads and commits the queue of one user: read, apply a rule, and write if nobody wrote meanwhile.

What the change means for the user's other keys is written in the same step. Other processes learn of it from an index
of users by their last change, in another hash tag: it is marked before the commit and again after it, so that nobody
who reads the index once more can miss it, and whoever dies between the two leaves a mark.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Generic, TypeVar
from weakref import WeakValueDictionary

from memory.adapters.redis import log_keys, queue_values, session_events
from memory.adapters.redis.log_client import Command, LogClient, Reply, to_its_end
from memory.adapters.redis.log_keys import UserKeys
from memory.adapters.redis.queue_values import QueueChange, UserQueue
from memory.adapters.redis.session_events import WITHDRAWING, SessionEvent
from memory.adapters.redis.turn_records import TurnEnd, end_stored
from memory.adapters.redis.user_index import UserIndex
from memory.errors import Unavailable
from memory.model import TurnStatus

COMMIT_TRIES_MAX = 50  # of one change; each loss means that somebody else's change of the same user was written
PAUSE_SECONDS_MAX = 0.02  # before another try, times a random share

# KEYS[1] is a hash whose field "v" is the version, drawn at random for each commit. ARGV: the version that was read,
# the one to write, then commands, each as the number of its words and the words. 0 if the version is another by now; a
# commit that the library sends again, because the answer was lost, is done already.
COMMIT_IF_UNCHANGED = """
local version = redis.call('HGET', KEYS[1], 'v') or ''
if version == ARGV[2] then return 1 end
if version ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'v', ARGV[2])
local at = 3
while at <= #ARGV do
  local words = tonumber(ARGV[at])
  redis.call(unpack(ARGV, at + 1, at + words))
  at = at + 1 + words
end
return 1
"""
MARK_CHANGED = """
local number = redis.call('INCR', KEYS[1])
redis.call('ZADD', KEYS[2], number, ARGV[1])
return number
"""

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Planned(Generic[Result]):
    """What a rule decided: the change of the queue, or None, commands on other keys of the user, and the result.

    `sessions`: what happens to sessions beside what follows from the change; `removed`: turns whose words left the
    record; `marks`: commands on other hash tags, before the commit and again after it; `after`: only after it.
    """

    result: Result
    change: QueueChange | None = None
    commands: Sequence[Command] = ()
    sessions: Sequence[SessionEvent] = ()
    removed: Collection[str] = ()
    marks: Sequence[Command] = ()
    after: Sequence[Command] = ()

    @property
    def is_empty(self) -> bool:
        return self.change is None and not (self.commands or self.sessions or self.removed)


@dataclass(slots=True, weakref_slot=True)
class _UserOrder:
    """`failures`: of calls, so far."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    failures: int = 0


class QueueStore:
    """The queues of all users."""

    def __init__(self, client: LogClient) -> None:
        self._client = client
        self._indexes = QueueIndexes(client)
        self._orders: WeakValueDictionary[str, _UserOrder] = WeakValueDictionary()

    async def read(self, user_id: str) -> UserQueue:
        _, queue, _ = await self._read(user_id, ())
        return queue

    async def read_many(self, digests: Sequence[str]) -> list[UserQueue]:
        """By the digests of their users; an empty queue does not name its user."""
        replies = await self._client.calls([("HGET", UserKeys.of_digest(digest).queue, "q") for digest in digests])
        return [queue_values.decode(stored, "") for stored in replies]

    async def change(
        self,
        user_id: str,
        rule: Callable[[UserQueue, Sequence[Reply]], Planned[Result]],
        *,
        reading: Sequence[Command] = (),
    ) -> Result:
        """Apply the rule to the queue and to the replies of `reading`, as often as somebody else is faster.

        Durable on return. Runs to its end if the caller is cancelled.
        """

        async def attempt() -> tuple[bytes, UserQueue, Planned[Result]]:
            version, queue, replies = await self._read(user_id, reading)
            return version, queue, rule(queue, replies)

        return await self._until_committed(user_id, attempt)

    async def plan(self, user_id: str, rule: Callable[[UserQueue], Awaitable[Planned[Result]]]) -> Result:
        """The same for a rule that reads as it goes: what it read holds if nobody wrote until the commit."""

        async def attempt() -> tuple[bytes, UserQueue, Planned[Result]]:
            version, queue, _ = await self._read(user_id, ())
            return version, queue, await rule(queue)

        return await self._until_committed(user_id, attempt)

    async def _until_committed(
        self, user_id: str, attempt: Callable[[], Awaitable[tuple[bytes, UserQueue, Planned[Result]]]]
    ) -> Result:
        marks: list[Command] = []
        async with self._in_order(user_id):
            for _ in range(COMMIT_TRIES_MAX):
                version, queue, planned = await attempt()
                if planned.is_empty:
                    return planned.result
                needed = self._marks(user_id, queue, planned)
                if needed != marks:
                    await self._client.calls(needed)
                    marks = needed
                if await to_its_end(self._commit(user_id, version, queue, planned)):
                    return planned.result
                await asyncio.sleep(secrets.randbelow(1000) / 1000 * PAUSE_SECONDS_MAX)
            raise Unavailable("turn_log", f"others changed this user's queue {COMMIT_TRIES_MAX} times meanwhile")

    @asynccontextmanager
    async def _in_order(self, user_id: str) -> AsyncIterator[None]:
        """One after the other, for changes of one user by this process would only lose to each other.

        Whoever waits while another fails has failed too: otherwise each would wait for an outage of its own.
        """
        order = self._orders.get(user_id)
        if order is None:
            order = self._orders[user_id] = _UserOrder()
        failures = order.failures
        async with order.lock:
            if order.failures != failures:
                raise Unavailable("turn_log", "a change before this one failed")
            try:
                yield
            except Unavailable:
                order.failures += 1
                raise

    def inserted(self, user_id: str, at: float) -> list[Command]:
        """Marks for a turn or message that reaches us: it expires some day."""
        return [self._indexes.expiring.marking(UserKeys(user_id).digest, at)]

    async def mark_again(self, user_id: str) -> None:
        """Whoever changed the user died, maybe between the commit and the marks after it."""
        await self._client.calls(self._indexes.all_markings(UserKeys(user_id).digest))

    async def _read(self, user_id: str, reading: Sequence[Command]) -> tuple[bytes, UserQueue, list[Reply]]:
        (version, stored), *replies = await self._client.calls([("HMGET", UserKeys(user_id).queue, "v", "q"), *reading])
        return version or b"", queue_values.decode(stored, user_id), replies

    async def _commit(self, user_id: str, version: bytes, before: UserQueue, planned: Planned[Result]) -> bool:
        keys = UserKeys(user_id)
        commands = [*planned.commands, ("SET", keys.user, user_id)]
        commands += session_events.commands_of(keys, _events(before, planned), _new_token)
        if planned.removed:
            commands += [("SADD", keys.removed_words, *planned.removed)]
        if planned.change is not None:
            commands += [("HSET", keys.queue, "q", queue_values.encode(planned.change.queue))]
            commands += _effects(keys, before, planned.change)
        words: list[str | bytes | int | float] = []
        for command in commands:
            words += [len(command), *command]
        touched = list(dict.fromkeys([keys.queue, *(str(command[1]) for command in commands)]))
        is_done = await self._client.run(COMMIT_IF_UNCHANGED, touched, [version, secrets.token_hex(8), *words])
        if is_done:
            await self._client.calls([*self._marks(user_id, before, planned), *planned.after])
        return bool(is_done)

    def _marks(self, user_id: str, before: UserQueue, planned: Planned[Result]) -> list[Command]:
        """In indexes of other hash tags, for those who look for something to do."""
        indexes, digest = self._indexes, UserKeys(user_id).digest
        events = _events(before, planned)
        marks: list[Command] = [("EVAL", MARK_CHANGED, 2, log_keys.QUEUE_CHANGES, log_keys.QUEUE_USERS, digest)]
        place = session_events.place_of(events, before, planned.change)
        if place is not None:
            marks.append(indexes.due_summaries.marking(digest, place))
        if any(isinstance(event, WITHDRAWING) for event in events):
            marks.append(indexes.withdrawn_summaries.marking(digest))
        if planned.removed:
            marks.append(indexes.removed_words.marking(digest))
        return [*marks, *planned.marks]


class QueueIndexes:
    """Of the users for whom something beside learning may be to do."""

    def __init__(self, client: LogClient) -> None:
        self.due_summaries = UserIndex(client, log_keys.DUE_SUMMARIES)
        self.withdrawn_summaries = UserIndex(client, log_keys.WITHDRAWN_SUMMARIES)
        self.removed_words = UserIndex(client, log_keys.REMOVED_WORDS)
        self.stale_profiles = UserIndex(client, log_keys.STALE_PROFILES)
        self.shifts = UserIndex(client, log_keys.SHIFTS)
        self.expiring = UserIndex(client, log_keys.EXPIRING)

    def all_markings(self, digest: str) -> list[Command]:
        """Somebody has to look at the user, whatever for."""
        unordered = (self.withdrawn_summaries, self.removed_words, self.stale_profiles, self.shifts)
        at_once = [index.marking(digest, session_events.AT_ONCE) for index in (self.due_summaries, self.expiring)]
        return [*at_once, *(index.marking(digest) for index in unordered)]


def _events(before: UserQueue, planned: Planned[Result]) -> list[SessionEvent]:
    following = [] if planned.change is None else session_events.events_of(before, planned.change)
    return [*following, *planned.sessions]


def _new_token() -> int:
    return secrets.randbits(62)


def _effects(keys: UserKeys, before: UserQueue, change: QueueChange) -> list[Command]:
    effects = queue_values.effects_of(before, change)
    unknown = TurnEnd(TurnStatus.UNKNOWN.value, finished_at=effects.unknown_at)
    return [
        *(("HSET", keys.turn(turn_id), "s", stage) for turn_id, stage in effects.stages.items()),
        *(command for turn_id in effects.unknown for command in end_stored(keys, turn_id, unknown)),
        *(("DEL", keys.plan(window_id)) for window_id in effects.plans_to_delete),
    ]
