"""Which working sets are loaded when: users wait in line, and one query reads the sets of as many as one answer holds.

An embedded store answers one query at a time, and most of the time of a query does not depend on how many users it is
for. So whoever comes while a query is under way waits for the next one, which is for all who wait. How many that may be
is tried: twice as many after each answer, half as many after one that would have been too long. A user who is alone too
much for one answer is read beside the line, one such user at a time.

A load once begun ends, whatever became of the request that it was for. Whatever goes wrong ends that load and nothing
else; the user rests for a while before the next try. It must never put anything in the set of another user, nor keep
more users waiting than its limit.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

import structlog

from memory.errors import Unavailable
from memory.model import Record
from memory.ports import MemoryFilter, MemoryStore, Revision, UserLedger

ROWS_IN_ONE_ANSWER_MAX = 1_000  # of all users of a query: reading more of them would hold up the loop
USERS_IN_ONE_QUERY_MAX = 32  # 130 ms on Milvus Lite with 20 memories each; a chat of the next in line waits that long
WAITING_MAX = 1_024  # users who come while so many are waiting are loaded at a later request
CROWD = 4  # users in line, from which on a chat of one more would hardly get its set in time
SETTLING_SECONDS_MAX = 0.5  # before the next query is asked: somebody may be written to without pause
REST_SECONDS_MIN, REST_SECONDS_MAX = 0.25, 5.0  # after a load that failed, doubling
TOO_LARGE_SECONDS = 600.0  # likewise after a user turned out to have too many: finding out reads them all
RESTS_MAX = 10_000  # users; of those who rested longest ago we know nothing any more

T = TypeVar("T")
Keep: TypeAlias = Callable[[str, Revision, Sequence[Record]], Coroutine[None, None, None]]
"""Makes a set of what was read of a user, at the earliest when they had that revision."""

log = structlog.get_logger(__name__)


class TooLarge(Exception):
    """More memories than a set may hold."""


class TooFarBehind(Exception):
    """The ledger no longer knows what changed since then: load everything."""


@dataclass(slots=True)
class Asked:
    """A load. `answered`: its first query was, so that a small user's set is there; `ended`: no more is to come."""

    answered: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(frozen=True, slots=True)
class _Rest:
    """No load before that time of the loop; `seconds` is how long the rest is."""

    until: float
    seconds: float


class SetLoads:
    """The line of one process. Its tasks are begun with `start`, whose owner ends them."""

    def __init__(
        self,
        *,
        store: MemoryStore,
        ledger: UserLedger,
        memories_max: int,
        keep: Keep,
        start: Callable[[Coroutine[None, None, None]], asyncio.Task[None]],
    ) -> None:
        """`keep` raises `TooLarge`, `TooFarBehind`, `Unavailable`, and what rows that we did not write lead to."""
        self._store = store
        self._ledger = ledger
        self._memories_max = memories_max
        self._keep = keep
        self._start = start
        self._line: OrderedDict[str, None] = OrderedDict()
        self._asked: dict[str, Asked] = {}
        self._at_once = 1
        self._is_running = False
        self._beside_the_line = asyncio.Semaphore(1)
        self._rests: OrderedDict[str, _Rest] = OrderedDict()

    @property
    def is_crowded(self) -> bool:
        """Whether the store has more to load first than a chat could wait for."""
        return len(self._line) >= CROWD

    @property
    def is_reading(self) -> bool:
        """Whether somebody waits for the first answer to their load."""
        return self._is_running

    def ask(self, user_id: str) -> Asked | None:
        """See to it that this user's set is loaded. None: not now, they rest, or the line is too long."""
        asked = self._asked.get(user_id)
        if asked is not None:
            return asked
        if len(self._line) >= WAITING_MAX or self.is_resting(user_id):
            return None
        self._line[user_id] = None
        asked = self._asked[user_id] = Asked()
        if not self._is_running:
            self._is_running = True
            self._start(self._run())
        return asked

    def rest(self, user_id: str, error: Exception) -> None:
        """Do not load this user for a while."""
        before = self._rests.pop(user_id, None)
        if isinstance(error, TooLarge):
            seconds = TOO_LARGE_SECONDS
        else:
            seconds = min(2 * before.seconds, REST_SECONDS_MAX) if before else REST_SECONDS_MIN
        self._rests[user_id] = _Rest(asyncio.get_running_loop().time() + seconds, seconds)
        if len(self._rests) > RESTS_MAX:
            self._rests.popitem(last=False)

    def is_resting(self, user_id: str) -> bool:
        """Whether this user's set is not to be loaded for a while: it is too large, or could not be."""
        rest = self._rests.get(user_id)
        return rest is not None and asyncio.get_running_loop().time() < rest.until

    async def _run(self) -> None:
        while self._line:
            users = [self._line.popitem(last=False)[0] for _ in range(min(self._at_once, len(self._line)))]
            answer = await outcome_of(self._read(users))
            if isinstance(answer, dict):
                self._at_once = min(2 * self._at_once, USERS_IN_ONE_QUERY_MAX)
                settling = [self._start(self._settle(user, *answer[user])) for user in users]
                await asyncio.wait(settling, timeout=SETTLING_SECONDS_MAX)
            elif len(users) == 1:
                self._start(self._go_on_alone(users[0], answer))
            elif isinstance(answer, Unavailable):
                for user in users:
                    self._end(user, answer)
            else:  # too much for one answer, or rows of one of them cannot be read: which one is soon found out
                self._at_once = len(users) // 2
                self._back_in_line(users)
        self._is_running = False

    async def _read(self, users: Sequence[str]) -> dict[str, tuple[Revision, Sequence[Record]]] | None:
        """What each of them has, and the revision from before; None where that is too much for one answer."""
        revisions = await asyncio.gather(*map(self._ledger.revision, users))
        found = await self._store.load_several(users, limit=ROWS_IN_ONE_ANSWER_MAX)
        if found is None:
            return None
        return {user: (revision, found[user]) for user, revision in zip(users, revisions, strict=True)}

    async def _settle(self, user: str, revision: Revision, records: Sequence[Record]) -> None:
        self._end(user, await outcome_of(self._kept(user, revision, records)))

    async def _go_on_alone(self, user: str, error: Exception | None) -> None:
        """The first query of this user failed, or did not hold all of them."""
        self._asked[user].answered.set()
        self._end(user, error or await outcome_of(self._read_at_leisure(user)))

    async def _read_at_leisure(self, user: str) -> None:
        async with self._beside_the_line:
            started = await self._ledger.revision(user)
            most, everything = self._memories_max, MemoryFilter(user, status=None, with_archived=False)
            await self._kept(user, started, await self._store.load(everything, limit=most + 1))

    async def _kept(self, user: str, revision: Revision, records: Sequence[Record]) -> None:
        if len(records) > self._memories_max:
            raise TooLarge
        await self._keep(user, revision, records)

    def _back_in_line(self, users: Sequence[str]) -> None:
        for user in reversed(users):
            self._line[user] = None
            self._line.move_to_end(user, last=False)

    def _end(self, user: str, error: Exception | None) -> None:
        if error is None:
            self._rests.pop(user, None)
        else:
            self.rest(user, error)
            report("a working set was not loaded", error)
        asked = self._asked.pop(user)
        asked.answered.set()
        asked.ended.set()


async def outcome_of(work: Awaitable[T]) -> T | Exception:
    """What it gives, or what it raises: for work that must never end those who look after it."""
    [outcome] = await asyncio.gather(work, return_exceptions=True)
    if isinstance(outcome, BaseException) and not isinstance(outcome, Exception):
        raise outcome
    return outcome


def report(event: str, error: Exception) -> None:
    """A part that is down is told elsewhere, once for each change of state. No word of a row may get into a log."""
    if not isinstance(error, Unavailable | TooFarBehind | TooLarge):
        log.warning(event, error=type(error).__name__)


__all__ = ["Asked", "SetLoads", "TooFarBehind", "TooLarge", "outcome_of", "report"]
