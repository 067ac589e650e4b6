"""Working sets: the memories of users who talk, held in this process, so that a request searches them in a millisecond.

A set is loaded beside the requests (`set_loads`). It is never older than the last write that had ended when a request
came: each request asks the ledger for the user's revision, a sequence lock that is odd while somebody writes, and
fetches just the memories that changed. Those are out of the set from the moment that we hear of the change until a read
that no write overlapped: a request that cannot wait for it gets the others, and nobody ever gets half of a write, or
what was forgotten. While the store is down, the set serves on. While the ledger is, nobody can tell what was forgotten
meanwhile, and it does not: the store is searched directly.

It must never keep the loop busy for more than a few milliseconds, however large the set, nor hold more than its bytes:
the set that was asked longest ago goes first, and a user with too many memories never gets one.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self, TypeVar

from memory.adapters.set_loads import SetLoads, TooFarBehind, TooLarge, outcome_of, report
from memory.errors import Unavailable
from memory.heap import settle
from memory.model import MemoryStatus, Record
from memory.ports import MemoryStore, Revision, UserLedger
from memory.recall.corpus import Corpus
from memory.recall.retrieval import Expected
from memory.recall.weights import DEFAULT_RANKING, Neighbours
from memory.settings import WorkingSetSettings

ROWS_ON_LOOP_MAX = 300  # laying out so many takes about 1 ms; more is done in a thread
ROWS_BETWEEN_NAPS = 16  # under a millisecond of work, which is as long as the thread may keep the interpreter
NAP_SECONDS = 0.0005  # a real pause: without one the loop gets the interpreter back only every 5 ms
SETTLED_EACH_MEMORIES = 1_000  # loaded: until then, looking at them all is a matter of milliseconds
THREADS = 3  # of which a large user's set takes one
CATCH_UP_SECONDS_MAX = 5.0  # with a user who is written to without pause; then a later request tries again
PAUSE_SECONDS = 0.005  # between two looks at a user who is being written to: a write takes 10 to 100 ms

_DEFAULTS = WorkingSetSettings()

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class WorkingSetLimits:
    """`memories_max` of one user; `bytes_max` of all sets together; the patience of a chat and of a search, seconds."""

    memories_max: int = _DEFAULTS.user_memories_max
    bytes_max: int = _DEFAULTS.total_mib << 20
    patience: float = _DEFAULTS.patience_ms / 1000
    search_patience: float = _DEFAULTS.search_patience_seconds


@dataclass(slots=True)
class _Set:
    """One user's corpus, complete up to `revision`, and without what changed from then until `heard_of`.

    The corpus is changed, and laid out in a thread, only under the lock `hands`, and only by tasks of ours: a request
    may be cancelled at any await, a thread cannot.
    """

    user_id: str
    corpus: Corpus
    revision: int
    heard_of: int = 0
    news: asyncio.Event = field(default_factory=asyncio.Event)  # `heard_of` moved, or `refresh` ended
    hands: asyncio.Lock = field(default_factory=asyncio.Lock)
    is_laid_out: bool = False
    size_bytes: int = 0
    refresh: asyncio.Task[None] | None = None  # under way

    @property
    def is_steady(self) -> bool:
        """Whether it can be ranked right now, on the loop, before the next await."""
        return self.is_laid_out and not self.hands.locked()


class WorkingSets:
    """`memory.recall.retrieval.Corpora`. `async with` opens it; loads in flight end with it."""

    def __init__(
        self,
        *,
        store: MemoryStore,
        ledger: UserLedger,
        dimension: int,
        limits: WorkingSetLimits | None = None,
        neighbours: Neighbours = DEFAULT_RANKING.neighbours,
    ) -> None:
        """`neighbours`: as the ranking has them; they are part of what is laid out."""
        self._store = store
        self._ledger = ledger
        self._dimension = dimension
        self._neighbours = neighbours
        self._limits = limits or WorkingSetLimits()
        self._sets: OrderedDict[str, _Set] = OrderedDict()
        self._loads = SetLoads(
            store=store,
            ledger=ledger,
            memories_max=self._limits.memories_max,
            keep=self._loaded,
            start=self._start,
        )
        self._bytes = 0
        self._unsettled = 0  # memories loaded that the garbage collector still looks at
        self._running: set[asyncio.Task[None]] = set()
        self._tasks = asyncio.TaskGroup()
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="working-set")

    async def __aenter__(self) -> Self:
        await self._tasks.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._running:
            task.cancel()
        await self._tasks.__aexit__(None, None, None)
        self._threads.shutdown(wait=False, cancel_futures=True)

    @property
    def size_bytes(self) -> int:
        """What all sets hold together, estimated."""
        return self._bytes

    @property
    def is_loading(self) -> bool:
        """Whether the store is being read for sets, so that a search of it would hold them up."""
        return self._loads.is_reading

    def expect(self, user_id: str) -> Expected | None:
        """A request of this user has come: see that their set is there and current. Hand the result to `corpus`.

        None: it will not be there in time, since too many others wait for theirs; a later request will find it.
        """
        if user_id not in self._sets:
            is_in_time = not self._loads.is_crowded or self._loads.is_resting(user_id)  # who will not be loaded now
            self._loads.ask(user_id)
            if not is_in_time:
                return None
        return self._expected(user_id, waits=False)

    async def corpus(
        self, user_id: str, *, waits: bool = False, expected: Expected | None = None, seconds: float = math.inf
    ) -> Corpus | None:
        """All memories of the user as of now, or of `expected`; None while they are not loaded, or might be older.

        `waits`: load them first. A chat waits `seconds` at most. Use the corpus before the next await: after it,
        somebody else may be changing it. Never raises.
        """
        ends_at = asyncio.get_running_loop().time() + seconds
        expected = expected or self._expected(user_id, waits=waits)
        await _waited_for(expected.task, ends_at)
        while (one := self._sets.get(user_id)) is not None and not one.is_steady:
            if not await _waited_for(self._start(self._steady(one)), ends_at):
                return None
        is_current = one is not None and expected.written is not None and one.heard_of >= expected.written
        return one.corpus if one is not None and is_current else None

    def _expected(self, user_id: str, *, waits: bool) -> Expected:
        expected = Expected()
        expected.task = self._start(self._made_current(user_id, expected, waits=waits))
        return expected

    async def _made_current(self, user_id: str, expected: Expected, *, waits: bool) -> None:
        one = await self._present(user_id, waits=waits)
        if one is not None:
            await self._brought_up_to_date(one, expected, waits=waits)
            if not self._holds(one):  # it went too far behind, or had to make room
                await self._present(user_id, waits=waits)

    async def _present(self, user_id: str, *, waits: bool) -> _Set | None:
        """The user's set. If there is none, a load begins, and is waited for while it makes sense."""
        if user_id not in self._sets and (asked := self._loads.ask(user_id)) is not None:
            enough = asked.ended if waits else asked.answered
            with suppress(TimeoutError):
                async with asyncio.timeout(self._patience(waits=waits)):
                    await enough.wait()
        one = self._sets.get(user_id)
        if one is not None:
            self._sets.move_to_end(user_id)
        return one

    async def _brought_up_to_date(self, one: _Set, expected: Expected, *, waits: bool) -> None:
        """Wait for what was written before we were asked, as long as the caller's patience lasts."""
        try:
            revision = await self._ledger.revision(one.user_id)
        except Unavailable:
            return  # nobody knows what was forgotten meanwhile
        expected.written = _settled(revision)
        if expected.written != one.revision and one.refresh is None:
            one.refresh = self._start(self._refresh(one))  # goes on when a request runs out of time
        if one.refresh is not None:
            await asyncio.wait((one.refresh,), timeout=self._patience(waits=waits))
        while one.refresh is not None and one.heard_of < expected.written:  # not even what changed is known yet
            one.news.clear()
            await one.news.wait()

    def _patience(self, *, waits: bool) -> float:
        return self._limits.search_patience if waits else self._limits.patience

    # Loading

    async def _loaded(self, user_id: str, started: Revision, records: Sequence[Record]) -> None:
        """Keep a set of what was read, after reading again what was written meanwhile."""
        corpus = Corpus(dimension=self._dimension, neighbours=self._neighbours)
        one = _Set(user_id, corpus, _settled(started))
        await self._change(one, records=records)
        await self._catch_up(one)
        self._sets[user_id] = one
        self._bytes += one.size_bytes
        self._make_room()
        self._unsettled += len(records)
        if self._unsettled >= SETTLED_EACH_MEMORIES:
            self._unsettled = 0
            settle()

    # Refreshing

    async def _refresh(self, one: _Set) -> None:
        error = await outcome_of(self._catch_up(one))
        if error is not None and not isinstance(error, Unavailable):
            self._drop(one)
            if isinstance(error, TooLarge):
                self._loads.rest(one.user_id, error)
            report("a working set was not refreshed", error)
        one.refresh = None
        one.news.set()

    async def _catch_up(self, one: _Set) -> None:
        loop = asyncio.get_running_loop()
        give_up_at = loop.time() + CATCH_UP_SECONDS_MAX
        while not await self._has_caught_up(one):
            if loop.time() > give_up_at:
                raise Unavailable("turn_log", "the user is being written to all the time")
            await asyncio.sleep(PAUSE_SECONDS)
        if len(one.corpus) > self._limits.memories_max:
            raise TooLarge

    async def _has_caught_up(self, one: _Set) -> bool:
        """Take out what changed, and put it in again as it is now. False while somebody writes."""
        target = await self._ledger.revision(one.user_id)
        if target.number != one.revision:
            changed = await self._ledger.changed_since(one.user_id, one.revision)
            if changed is None:
                raise TooFarBehind
            await self._change(one, gone=changed)
            one.heard_of = _settled(target)
            one.news.set()
            if not target.is_settled:
                return False
            records = await self._store.get(one.user_id, sorted(changed)) if changed else []
            if await self._ledger.revision(one.user_id) != target:
                return False
            await self._change(one, records=[r for r in records if r.memory.status is not MemoryStatus.ARCHIVED])
        await self._lay_out(one)
        one.revision = one.heard_of = target.number
        return True

    # The corpus in hand

    async def _change(self, one: _Set, *, records: Sequence[Record] = (), gone: Collection[str] = ()) -> None:
        gone = [memory_id for memory_id in gone if memory_id in one.corpus]
        if not records and not gone:
            return
        async with one.hands:
            one.is_laid_out = False
            for memory_id in gone:
                one.corpus.remove(memory_id)
            if len(records) > ROWS_BETWEEN_NAPS:
                await self._in_thread(lambda: _add_with_naps(one.corpus, records))
            else:
                for record in records:
                    one.corpus.add(record)

    async def _steady(self, one: _Set) -> None:
        """For a request that goes on without what changed."""
        error = await outcome_of(self._lay_out(one))
        if error is not None:
            self._drop(one)
            report("a working set was not laid out", error)

    async def _lay_out(self, one: _Set) -> None:
        async with one.hands:
            if one.is_laid_out:
                return
            is_quick = len(one.corpus) <= ROWS_ON_LOOP_MAX
            size = _prepared(one.corpus) if is_quick else await self._in_thread(lambda: _prepared(one.corpus))
            one.is_laid_out = True
            if self._holds(one):
                self._bytes += size - one.size_bytes
            one.size_bytes = size
        self._make_room()

    def _holds(self, one: _Set) -> bool:
        return self._sets.get(one.user_id) is one

    def _drop(self, one: _Set) -> None:
        if self._holds(one):
            del self._sets[one.user_id]
            self._bytes -= one.size_bytes

    def _make_room(self) -> None:
        while self._bytes > self._limits.bytes_max and len(self._sets) > 1:
            self._drop(next(iter(self._sets.values())))

    def _start(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = self._tasks.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task

    async def _in_thread(self, work: Callable[[], Result]) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)


async def _waited_for(task: asyncio.Task[None], ends_at: float) -> bool:
    """Whether it ended by then; it goes on in any case."""
    if not task.done():
        timeout = None if math.isinf(ends_at) else max(0.0, ends_at - asyncio.get_running_loop().time())
        await asyncio.wait((task,), timeout=timeout)
    return task.done()


def _settled(revision: Revision) -> int:
    """The last number at which nobody wrote."""
    return revision.number - revision.number % 2


def _add_with_naps(corpus: Corpus, records: Sequence[Record]) -> None:
    for number, record in enumerate(records, start=1):
        corpus.add(record)
        if number % ROWS_BETWEEN_NAPS == 0:
            time.sleep(NAP_SECONDS)


def _prepared(corpus: Corpus) -> int:
    """Lay it out; its size in bytes."""
    corpus.prepare()
    return corpus.size_bytes
