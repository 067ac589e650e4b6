"""Which working sets are read from the store when: one user after the other, and only while no chat searches there.

An embedded store answers one query at a time, so that a load in the wrong moment costs a chat its note. A user is read
here only where there is no snapshot, and the chat that noticed that is answered by a search of the store: the load
begins when that is over, and when nobody else has searched for a moment. A user with more memories than fit into one
answer is read beside the line, one such user at a time.

A load once begun ends, whatever became of the request that it was for. Whatever goes wrong ends that load and nothing
else; the user rests for a while before the next try. It must never keep more users waiting than its limit.
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

ROWS_IN_ONE_ANSWER_MAX = 1_000  # reading more of them at once would hold up the loop
WAITING_MAX = 1_024  # users who come while so many are waiting are loaded at a later request
QUIET_SECONDS = 0.02  # since the last search: the answer that it was for has left
QUIET_WAITS_MAX = 50  # of that length: who is never loaded would search the store for ever
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
        self._ended: dict[str, asyncio.Event] = {}
        self._is_running = False
        self._beside_the_line = asyncio.Semaphore(1)
        self._rests: OrderedDict[str, _Rest] = OrderedDict()
        self._searches = 0
        self._searched_at = float("-inf")

    def ask(self, user_id: str) -> asyncio.Event | None:
        """See to it that this user's set is loaded: the event is set when that has ended.

        None: they rest, or the line is too long.
        """
        ended = self._ended.get(user_id)
        if ended is not None:
            return ended
        if len(self._line) >= WAITING_MAX or self.is_resting(user_id):
            return None
        self._line[user_id] = None
        ended = self._ended[user_id] = asyncio.Event()
        if not self._is_running:
            self._is_running = True
            self._start(self._run())
        return ended

    @contextmanager
    def searching(self) -> Iterator[None]:
        """A chat searches the store: no load begins meanwhile."""
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
        if len(self._rests) > RESTS_MAX:
            self._rests.popitem(last=False)

    def is_waiting(self, user_id: str) -> bool:
        """Whether this user's set is in the line, or being loaded."""
        return user_id in self._ended

    def is_resting(self, user_id: str) -> bool:
        """Whether this user's set is not to be loaded for a while: it is too large, or could not be."""
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
        """Return when no chat has searched the store for a moment, or after a second of searches without pause."""
        for _ in range(QUIET_WAITS_MAX):
            since = asyncio.get_running_loop().time() - self._searched_at
            if not self._searches and since >= QUIET_SECONDS:
                return
            await asyncio.sleep(QUIET_SECONDS)

    async def _load(self, user: str) -> bool:
        """Whether one answer held all of it, or else nothing was done."""
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
    """What it gives, or what it raises: for work that must never end those who look after it."""
    [outcome] = await asyncio.gather(work, return_exceptions=True)
    if isinstance(outcome, BaseException) and not isinstance(outcome, Exception):
        raise outcome
    return outcome


def report(event: str, error: Exception) -> None:
    """A part that is down is told elsewhere, once for each change of state. No word of a row may get into a log."""
    if not isinstance(error, Unavailable | TooFarBehind | TooLarge):
        log.warning(event, error=type(error).__name__)


__all__ = ["SetLoads", "TooFarBehind", "TooLarge", "outcome_of", "report"]
