"""Working sets: the memories of users who talk, held in this process, so that a request searches them in a millisecond.

A set comes from the user's snapshot (`snapshot_shelf`), in milliseconds, or where there is none from the store, after
the chat that missed it (`loader`). It is never older than the last write that had ended when a request came: each
request asks the ledger for the user's revision, a sequence lock that is odd while somebody writes, and fetches just the
memories that changed. Those are out of the set from the moment that we hear of the change until a read that no write
overlapped: a request that cannot wait for it gets the others, and nobody ever gets half of a write, or what was
forgotten. While the store is down, the set serves on. While the ledger is, nobody can tell what was forgotten
meanwhile, and it does not: the store is searched directly.

It must never keep the loop busy for more than a few milliseconds, however large the set, nor hold more than its bytes:
the set that was asked longest ago goes first, and a user with too many memories never gets one. `states` has the table
of what a set goes through.
"""

from __future__ import annotations

import asyncio
import math
from collections import OrderedDict
from collections.abc import Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from memory.adapters.working_set.held_memories import HeldMemories
from memory.adapters.working_set.held_set import HeldSet, Sources, settled
from memory.adapters.working_set.loader import SetLoads, TooFarBehind, TooLarge, outcome_of, report
from memory.adapters.working_set.snapshot_shelf import SnapshotShelf
from memory.adapters.working_set.states import SetState
from memory.errors import Unavailable
from memory.model import Record
from memory.ports import MemoryStore, Revision, Tokens, UserLedger
from memory.recall.ranking.corpus import Corpus
from memory.recall.ranking.weights import DEFAULT_RANKING, Neighbours
from memory.recall.retrieval import Expected
from memory.runtime.gc_freeze import have_spare, retain, settle
from memory.settings import WorkingSetSettings

SETTLED_EACH_MEMORIES = 1_000  # loaded: until then, looking at them all is a matter of milliseconds
UNSAVED_MAX = 50  # changes that a snapshot lacks: to fetch more of them, a chat of tomorrow would wait too long
SAVES_MAX = 3  # tries of one snapshot, where each time a memory in it changed meanwhile
SPARE_AFTER_SECONDS = 0.03  # when the answer to the chat that took some has left
THREADS = 3  # of which a large user's set takes one
AT_HAND_SECONDS = 1.0  # learning waits so long for a set to be read; it will want it again at its next window

_DEFAULTS = WorkingSetSettings()


@dataclass(frozen=True, slots=True)
class WorkingSetLimits:
    """`memories_max` of one user; `bytes_max` of all sets together; the patience of a chat and of a search, seconds."""

    memories_max: int = _DEFAULTS.user_memories_max
    bytes_max: int = _DEFAULTS.total_mib << 20
    patience: float = _DEFAULTS.patience_ms / 1000
    search_patience: float = _DEFAULTS.search_patience_seconds
    keeps_spare: bool = False  # chats wait for this process, so memory for the next set is at hand


@dataclass(frozen=True, slots=True)
class CorpusShape:
    """What corpora are laid out with: the `dimension` of vectors, and, as the ranking has it, how much the turns around
    a memory count. `tokens` counts a memory's line once for all notes.
    """

    dimension: int
    neighbours: Neighbours = DEFAULT_RANKING.neighbours
    tokens: Tokens | None = None


class WorkingSets:
    """`memory.recall.retrieval.Corpora`. `async with` opens it; loads in flight end with it."""

    def __init__(
        self,
        *,
        store: MemoryStore,
        ledger: UserLedger,
        shape: CorpusShape,
        limits: WorkingSetLimits | None = None,
        shelf: SnapshotShelf | None = None,
    ) -> None:
        """Without a `shelf`, no snapshots."""
        self._ledger = ledger
        self._shape = shape
        self._limits = limits or WorkingSetLimits()
        self._shelf = shelf
        self._sets: OrderedDict[str, HeldSet] = OrderedDict()
        self._loads = SetLoads(
            store=store,
            ledger=ledger,
            memories_max=self._limits.memories_max,
            keep=self._loaded,
            start=self._start,
        )
        self._sparing: asyncio.Task[None] | None = None  # until it has begun
        self._opening: dict[str, asyncio.Task[None]] = {}
        self._bytes = 0
        self._unsettled = 0  # memories loaded that the garbage collector still looks at
        self._running: set[asyncio.Task[None]] = set()
        self._tasks = asyncio.TaskGroup()
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="working-set")
        self._sources = Sources(store, ledger, self._threads)

    async def __aenter__(self) -> Self:
        await self._tasks.__aenter__()
        if self._limits.keeps_spare:
            retain()
            self._have_spare_soon()
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

    def state_of(self, user_id: str) -> SetState:
        """Where the user's set stands."""
        one = self._sets.get(user_id)
        if one is not None:
            return SetState.HELD if one.revision == one.heard_of else SetState.BEHIND
        if self._loads.is_resting(user_id):
            return SetState.RESTING
        if self._loads.is_waiting(user_id):
            return SetState.WAITING
        return SetState.OPENING if user_id in self._opening else SetState.ABSENT

    def searching(self) -> AbstractContextManager[None]:
        """A chat searches the store, since it got no corpus here: nothing is loaded meanwhile."""
        return self._loads.searching()

    def expect(self, user_id: str) -> Expected:
        """A request of this user has come: see that their set is there and current. Hand the result to `corpus`."""
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
        while (one := self._sets.get(user_id)) is not None and not one.is_steady:  # it goes on without what changed
            if not await _waited_for(self._start(self._steady(one)), ends_at):
                return None
        is_current = one is not None and expected.written is not None and one.heard_of >= expected.written
        return one.corpus if one is not None and is_current else None

    async def as_of(self, user_id: str, revision: int | None = None) -> HeldMemories | None:
        """As `memory.ports.UserMemories` says. A set that is not here is loaded, and waited for a little."""
        if self._shelf is None and user_id not in self._sets:
            return None  # reading all that a user has costs more than what is asked for
        corpus = await self.corpus(user_id, waits=True, seconds=AT_HAND_SECONDS)
        if corpus is None or self.state_of(user_id) is not SetState.HELD:
            return None
        if revision is not None and self._sets[user_id].revision != revision:
            return None
        return HeldMemories(user_id, corpus)

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

    async def _present(self, user_id: str, *, waits: bool) -> HeldSet | None:
        """The user's set: the one that is here, else out of the snapshot; else a load begins, for later requests."""
        if self.state_of(user_id) in (SetState.ABSENT, SetState.OPENING, SetState.WAITING):
            await asyncio.wait((self._opened(user_id),), timeout=self._patience(waits=waits))
        if user_id not in self._sets and (ended := self._loads.ask(user_id)) is not None and waits:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._limits.search_patience):
                    await ended.wait()
        one = self._sets.get(user_id)
        if one is not None:
            self._sets.move_to_end(user_id)
        return one

    async def _brought_up_to_date(self, one: HeldSet, expected: Expected, *, waits: bool) -> None:
        """Wait for what was written before we were asked, as long as the caller's patience lasts."""
        try:
            revision = await self._ledger.revision(one.user_id)
        except Unavailable:
            return  # nobody knows what was forgotten meanwhile
        expected.written = settled(revision)
        if expected.written != one.revision or one.refresh is not None:
            await asyncio.wait((self._refreshed(one),), timeout=self._patience(waits=waits))
        while one.refresh is not None and one.heard_of < expected.written:  # not even what changed is known yet
            one.news.clear()
            await one.news.wait()

    def _patience(self, *, waits: bool) -> float:
        return self._limits.search_patience if waits else self._limits.patience

    # Snapshots

    def _opened(self, user_id: str) -> asyncio.Task[None]:
        """One at a time for each user."""
        task = self._opening.get(user_id)
        if task is None:
            task = self._opening[user_id] = self._start(self._open(user_id))
            task.add_done_callback(lambda _: self._opening.pop(user_id))
        return task

    async def _open(self, user_id: str) -> None:
        found = await self._shelf.read(user_id, self._threads) if self._shelf is not None else None
        if found is not None and user_id not in self._sets:
            one = self._made(user_id, found.corpus, found.revision)
            one.heard_of = one.saved = found.revision
            one.size_bytes = found.corpus.size_bytes
            one.is_laid_out = True
            self._hold(one)
            self._have_spare_soon()

    def _have_spare_soon(self) -> None:
        if self._limits.keeps_spare and self._sparing is None:
            self._sparing = self._start(self._have_spare())

    async def _have_spare(self) -> None:
        await asyncio.sleep(SPARE_AFTER_SECONDS)
        self._sparing = None  # whoever comes from here on wants some again
        await asyncio.get_running_loop().run_in_executor(self._threads, have_spare)

    async def hold(self, user_id: str) -> None:
        """Have the user's set here, if there is a snapshot of it. Never raises."""
        if user_id not in self._sets:
            await asyncio.wait((self._opened(user_id),))

    async def save(self, user_id: str) -> None:
        """Bring the user's set up to date, loading it where need be, and write its snapshot. Never raises."""
        await self.corpus(user_id, waits=True)
        one = self._sets.get(user_id)
        if one is not None and one.saved != one.revision:
            await asyncio.wait((self._saved(one),))
        elif self._shelf is not None and self.state_of(user_id) is SetState.RESTING:
            await self._shelf.discard(user_id)  # the user has too many memories by now

    def _saved(self, one: HeldSet) -> asyncio.Task[None]:
        if one.saving is None:
            one.saving = self._start(self._save(one))
        return one.saving

    async def _save(self, one: HeldSet) -> None:
        error = await outcome_of(self._written(one)) if self._shelf is not None else None
        if isinstance(error, Exception):
            report("a snapshot was not written", error)
        one.saving = None

    async def _written(self, one: HeldSet) -> None:
        """What was forgotten while we wrote must not stay in the snapshot, so we look again when it is there."""
        assert self._shelf is not None
        for _ in range(SAVES_MAX):
            revision, contents = await one.contents()
            if not len(contents.rows):
                break
            if not await self._shelf.write(one.user_id, contents, revision=revision, threads=self._threads):
                return
            changed = await self._ledger.changed_since(one.user_id, revision)
            if changed is not None and changed.isdisjoint(contents.rows.ids):
                one.saved, one.unsaved = revision, 0
                return
            await self._shelf.discard(one.user_id)
            await asyncio.wait((self._refreshed(one),))
        await self._shelf.discard(one.user_id)

    # Loading

    def _made(self, user_id: str, corpus: Corpus, revision: int) -> HeldSet:
        return HeldSet(user_id, corpus, revision, self._sources, self._resized)

    async def _loaded(self, user_id: str, started: Revision, records: Sequence[Record]) -> None:
        """Keep a set of what was read, after reading again what was written meanwhile."""
        shape = self._shape
        corpus = Corpus(dimension=shape.dimension, neighbours=shape.neighbours, tokens=shape.tokens)
        one = self._made(user_id, corpus, settled(started))
        await one.change(records=records)
        await one.catch_up()
        self._refuse_too_large(one)
        self._hold(one)
        self._saved(one)
        self._unsettled += len(records)
        if self._unsettled >= SETTLED_EACH_MEMORIES:
            self._unsettled = 0
            settle()

    # Refreshing

    def _refreshed(self, one: HeldSet) -> asyncio.Task[None]:
        """One at a time for each set; goes on when a request runs out of time."""
        if one.refresh is None:
            one.refresh = self._start(self._refresh(one))
        return one.refresh

    async def _refresh(self, one: HeldSet) -> None:
        error = await outcome_of(self._catch_up(one))
        if isinstance(error, TooFarBehind | TooLarge) and self._shelf is not None:
            await self._shelf.discard(one.user_id)  # it is of no use any more
        if error is not None and not isinstance(error, Unavailable):
            self._drop(one)
            if isinstance(error, TooLarge):
                self._loads.rest(one.user_id, error)
            report("a working set was not refreshed", error)
        elif one.unsaved >= UNSAVED_MAX:
            self._saved(one)
        one.refresh = None
        one.news.set()

    async def _catch_up(self, one: HeldSet) -> None:
        await one.catch_up()
        self._refuse_too_large(one)

    def _refuse_too_large(self, one: HeldSet) -> None:
        if len(one.corpus) > self._limits.memories_max:
            raise TooLarge

    async def _steady(self, one: HeldSet) -> None:
        error = await outcome_of(one.lay_out())
        if error is not None:
            self._drop(one)
            report("a working set was not laid out", error)

    # Room

    def _holds(self, one: HeldSet) -> bool:
        return self._sets.get(one.user_id) is one

    def _hold(self, one: HeldSet) -> None:
        if (before := self._sets.get(one.user_id)) is not None:
            self._drop(before)
        self._sets[one.user_id] = one
        self._bytes += one.size_bytes
        self._make_room()

    def _drop(self, one: HeldSet) -> None:
        if self._holds(one):
            del self._sets[one.user_id]
            self._bytes -= one.size_bytes

    def _resized(self, one: HeldSet, more: int) -> None:
        if self._holds(one):
            self._bytes += more
            self._make_room()

    def _make_room(self) -> None:
        while self._bytes > self._limits.bytes_max and len(self._sets) > 1:
            self._drop(next(iter(self._sets.values())))

    def _start(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = self._tasks.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task


async def _waited_for(task: asyncio.Task[None], ends_at: float) -> bool:
    """Whether it ended by then; it goes on in any case."""
    if not task.done():
        timeout = None if math.isinf(ends_at) else max(0.0, ends_at - asyncio.get_running_loop().time())
        await asyncio.wait((task,), timeout=timeout)
    return task.done()


__all__ = ["WorkingSetLimits", "WorkingSets"]
