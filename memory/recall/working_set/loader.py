"""Loads working sets from the store: one user after another, and only while no chat searches the store.

An embedded store answers one query at a time, so that a load at the wrong moment costs a chat its note. A user is
loaded only if there is no snapshot; the chat that noticed that searches the store, and the load starts when that search
is over and no other has started for a moment. Users with more memories than one answer holds are loaded one at a time.

A started load is completed, whatever happens to the request that caused it. An error ends only that load; the user
pauses before the next attempt. The queue is bounded.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import structlog

from memory.errors import Unavailable
from memory.model import Record
from memory.ports import MemoryFilter, MemoryStore, Revision, UserLedger
from memory.runtime.recent import Recent

ROWS_IN_ONE_ANSWER_MAX = 1_000  # decoding more of them at once would block the loop
WAITING_MAX = 1_024  # users in the queue; further ones are loaded at a later request
QUIET_SECONDS = 0.02  # since the last search: its answer has been sent
QUIET_WAITS_MAX = 50  # pauses of that length; afterwards loading starts anyway, or the store would be searched forever
REST_SECONDS_MIN, REST_SECONDS_MAX = 0.25, 5.0  # pause after a failed load, doubling
TOO_LARGE_SECONDS = 600.0  # the same after finding that a user has too many memories, which requires reading them all
RESTS_MAX = 10_000  # users whose pauses are remembered; the oldest are dropped

T = TypeVar("T")
Keep: TypeAlias = Callable[[str, Revision, Sequence[Record]], Coroutine[None, None, None]]
"""Creates a set from the loaded records, which are at least as new as that revision."""
Start: TypeAlias = Callable[[Coroutine[None, None, None]], asyncio.Task[None]]

log = structlog.get_logger(__name__)


class TooLarge(Exception):
    """More memories than a working set may hold."""


class TooFarBehind(Exception):
    """The ledger does not know the changes since then any more: load everything."""


@dataclass(frozen=True, slots=True)
class _Rest:
    """No load before `until` (the loop's time); `seconds`: length of the pause."""

    until: float
    seconds: float


class LoadQueue:
    """One per process. Tasks are started with `start`, whose owner ends them."""

    def __init__(self, *, store: MemoryStore, ledger: UserLedger, memories_max: int, keep: Keep, start: Start) -> None:
        """`keep` raises `TooLarge`, `TooFarBehind`, `Unavailable`, and the errors of rows that others wrote."""
        self._store = store
        self._ledger = ledger
        self._memories_max = memories_max
        self._keep = keep
        self._start = start
        self._line: OrderedDict[str, None] = OrderedDict()
        self._ended: dict[str, asyncio.Event] = {}
        self._is_running = False
        self._beside_the_line = asyncio.Semaphore(1)
        self._rests: Recent[str, _Rest] = Recent(RESTS_MAX)
        self._searches = 0
        self._searched_at = float("-inf")

    def ask(self, user_id: str, *, is_awaited: bool) -> asyncio.Event | None:
        """Queue this user's set; the event is set when its load has ended. None: the user pauses, or the queue is full.

        `is_awaited`: the caller waits for the set. A chat does not: it searches the store soon, first of all.
        """
        ended = self._ended.get(user_id)
        if ended is not None:
            return ended
        if len(self._line) >= WAITING_MAX or self.is_resting(user_id):
            return None
        self._line[user_id] = None
        ended = self._ended[user_id] = asyncio.Event()
        if not is_awaited and not self._is_running:
            self._searched_at = asyncio.get_running_loop().time()
        if not self._is_running:
            self._is_running = True
            self._start(self._run())
        return ended

    @contextmanager
    def searching(self) -> Iterator[None]:
        """A chat searches the store: no load starts meanwhile."""
        self._searches += 1
        try:
            yield
        finally:
            self._searches -= 1
            self._searched_at = asyncio.get_running_loop().time()

    def rest(self, user_id: str, error: Exception) -> None:
        """Do not load this user for a while."""
        before = self._rests.pop(user_id, None)
        if isinstance(error, TooLarge):
            seconds = TOO_LARGE_SECONDS
        else:
            seconds = min(2 * before.seconds, REST_SECONDS_MAX) if before else REST_SECONDS_MIN
        self._rests[user_id] = _Rest(asyncio.get_running_loop().time() + seconds, seconds)

    def is_waiting(self, user_id: str) -> bool:
        """In the line, or being loaded."""
        return user_id in self._ended

    def is_resting(self, user_id: str) -> bool:
        """The set is too large, or loading failed."""
        rest = self._rests.get(user_id)
        return rest is not None and asyncio.get_running_loop().time() < rest.until

    async def _run(self) -> None:
        while self._line:
            await self._quiet()
            user = self._line.popitem(last=False)[0]
            outcome = await outcome_of(self._load(user))
            if outcome is False:
                self._start(self._go_on_alone(user))
            else:
                self._end(user, outcome)
        self._is_running = False

    async def _quiet(self) -> None:
        """Until no chat has searched the store for a moment, or for a second, which the users in line share: while many
        are cold, most searches come too late, and it is the loads that end this.
        """
        for _ in range(max(1, QUIET_WAITS_MAX // len(self._line))):
            since = asyncio.get_running_loop().time() - self._searched_at
            if not self._searches and since >= QUIET_SECONDS:
                return
            await asyncio.sleep(QUIET_SECONDS)

    async def _load(self, user: str) -> bool:
        """Load the set if one answer holds all of it; False if not, and then nothing was done."""
        revision = await self._ledger.revision(user)
        found = await self._store.load_few(_everything(user), most=min(ROWS_IN_ONE_ANSWER_MAX, self._memories_max))
        if found is not None:
            await self._keep(user, revision, found)
        elif self._memories_max <= ROWS_IN_ONE_ANSWER_MAX:
            raise TooLarge
        return found is not None

    async def _go_on_alone(self, user: str) -> None:
        async with self._beside_the_line:
            self._end(user, await outcome_of(self._load_at_leisure(user)))

    async def _load_at_leisure(self, user: str) -> None:
        revision = await self._ledger.revision(user)
        found = await self._store.load(_everything(user), limit=self._memories_max + 1)
        if len(found) > self._memories_max:
            raise TooLarge
        await self._keep(user, revision, found)

    def _end(self, user: str, outcome: object) -> None:
        if isinstance(outcome, Exception):
            self.rest(user, outcome)
            report("a working set was not loaded", outcome)
        else:
            self._rests.pop(user, None)
        self._ended.pop(user).set()


def _everything(user: str) -> MemoryFilter:
    return MemoryFilter(user, status=None, with_archived=False)


async def outcome_of(work: Awaitable[T]) -> T | Exception:
    """The result of `work`, or its exception: for work that must not end the caller."""
    [outcome] = await asyncio.gather(work, return_exceptions=True)
    if isinstance(outcome, BaseException) and not isinstance(outcome, Exception):
        raise outcome
    return outcome


def report(event: str, error: Exception) -> None:
    """Log an error other than `Unavailable`, which is logged at changes of state. Never logs content of rows."""
    if not isinstance(error, Unavailable | TooFarBehind | TooLarge):
        log.warning(event, error=type(error).__name__)
