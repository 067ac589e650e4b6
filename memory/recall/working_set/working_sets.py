"""Working sets: the memories of active users, held in this process, so that a search takes a millisecond.

A set is loaded from the user's snapshot (`snapshot_codec`) within milliseconds, or without one from the store, after
the chat that missed it (`loader`). It is never older than the last write that had ended when a request arrived: each
request asks the ledger for the user's revision, a sequence lock that is odd during a write, and fetches only the
changed memories. Those are removed from the set as soon as a change is known, until a read that no write overlapped; a
request that cannot wait uses the others, and nobody ever sees half of a write, or forgotten memories. If the store is
down, the set is used all the same. If the ledger is down, it is used for a request that knows a revision; otherwise the
store is searched: memories may have been forgotten.

The event loop is never blocked for more than a few milliseconds, whatever the size of a set. The total size is bounded:
the least recently used set is evicted, and users with too many memories have no set. `SetState` has the table.
"""

from __future__ import annotations

import asyncio
import math
from collections import OrderedDict
from collections.abc import Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Self

from memory.errors import Unavailable
from memory.model import Record
from memory.ports import MemoryStore, Revision, Tokens, UserLedger
from memory.recall.ranking.corpus import Corpus
from memory.recall.working_set.corpus_memories import CorpusMemories
from memory.recall.working_set.loader import LoadQueue, TooFarBehind, TooLarge, outcome_of, report
from memory.recall.working_set.snapshot_codec import SnapshotCodec
from memory.recall.working_set.working_set import Prefetch, SetState, WorkingSet, WorkingSetSources, last_even
from memory.runtime.gc_freeze import SPARE_BYTES, freeze_live_objects, keep_freed_memory, preallocate
from memory.settings import WorkingSetSettings

# Loaded memories, after which they are frozen: collecting them takes some milliseconds until then.
FREEZE_EVERY_MEMORIES = 1_000
UNSAVED_MAX = 50  # changes that a snapshot may lack: fetching more would delay a later chat
SAVES_MAX = 3  # attempts at one snapshot, if a memory in it changed each time
SPARE_AFTER_SECONDS = 0.03  # after the answer to the chat that used some has been sent
SPARE_USED_MAX = SPARE_BYTES // 4  # by sets; then all of it is touched again, which costs some milliseconds
THREADS = 3  # a large user's set occupies one of them
LEARNING_PATIENCE_SECONDS = 1.0  # learning waits so long for a set; it needs it again at its next window

_DEFAULTS = WorkingSetSettings()


@dataclass(frozen=True, slots=True)
class WorkingSetLimits:
    memories_max: int = _DEFAULTS.user_memories_max  # per user
    bytes_max: int = _DEFAULTS.total_mib << 20  # of all sets
    patience: float = _DEFAULTS.patience_ms / 1000  # seconds, of a chat
    search_patience: float = 20.0  # of a search: as long as a large user's first load takes
    preallocates: bool = False  # chats wait for this process, so that memory for the next set is allocated in advance


class WorkingSets:
    """The sets of one process. Open with `async with`; running loads end with it."""

    def __init__(
        self,
        *,
        store: MemoryStore,
        ledger: UserLedger,
        dimension: int,
        tokens: Tokens | None = None,
        limits: WorkingSetLimits | None = None,
        snapshots: SnapshotCodec | None = None,
    ) -> None:
        """`dimension`: of vectors. `tokens`: counts each memory's line once for all notes."""
        self._ledger = ledger
        self._dimension = dimension
        self._tokens = tokens
        self._limits = limits or WorkingSetLimits()
        self._snapshots = snapshots
        self._sets: OrderedDict[str, WorkingSet] = OrderedDict()
        most = self._limits.memories_max
        self._loads = LoadQueue(store=store, ledger=ledger, memories_max=most, keep=self._loaded, start=self._start)
        self.searching = self._loads.searching  # around a chat's search of the store: nothing is loaded meanwhile
        self._preallocating: asyncio.Task[None] | None = None  # until it has started
        self._spare_used = 0  # bytes of sets that came since, or grew
        self._opening: dict[str, asyncio.Task[None]] = {}
        self.size_bytes = 0  # estimated, of all sets
        self._unfrozen = 0  # loaded memories that the garbage collector still visits
        self._running: set[asyncio.Task[None]] = set()
        self._tasks = asyncio.TaskGroup()
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="working-set")
        self._sources = WorkingSetSources(store, ledger, self._threads)

    async def __aenter__(self) -> Self:
        await self._tasks.__aenter__()
        if self._limits.preallocates:
            keep_freed_memory()
            self._preallocate_soon(SPARE_USED_MAX)
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._running:
            task.cancel()
        await self._tasks.__aexit__(None, None, None)
        self._threads.shutdown(wait=False, cancel_futures=True)

    def state_of(self, user_id: str) -> SetState:
        one = self._sets.get(user_id)
        if one is not None:
            return SetState.HELD if one.revision == one.known_revision else SetState.BEHIND
        if self._loads.is_resting(user_id):
            return SetState.RESTING
        if self._loads.is_waiting(user_id):
            return SetState.WAITING
        return SetState.OPENING if user_id in self._opening else SetState.ABSENT

    def prefetch(self, user_id: str, revision: Revision | None = None, *, waits: bool = False) -> Prefetch:
        """A request of this user has arrived: in the background, load the set and find out which writes came before.

        `corpus` takes the result. `revision`: the ledger's now, if it is known.
        """
        prefetch = Prefetch(revision)
        prefetch.task = self._start(self._made_current(user_id, prefetch, waits=waits))
        return prefetch

    async def corpus(
        self, user_id: str, *, waits: bool = False, prefetch: Prefetch | None = None, seconds: float = math.inf
    ) -> Corpus | None:
        """All memories of the user as of now, or of `prefetch`; None while they are not loaded, or might be older.

        `waits`: load them first. A chat waits `seconds` at most. Use it before the next await: after that somebody else
        may be changing it. Never raises.
        """
        ends_at = asyncio.get_running_loop().time() + seconds
        prefetch = prefetch or self.prefetch(user_id, waits=waits)
        await _waited_for(prefetch.task, ends_at)
        while (one := self._sets.get(user_id)) is not None and not one.is_rankable:  # without the changed memories
            if not await _waited_for(self._start(self._lay_out(one)), ends_at):
                return None
        is_current = one is not None and prefetch.written is not None and one.known_revision >= prefetch.written
        return one.corpus if one is not None and is_current else None

    async def as_of(self, user_id: str, revision: int | None = None) -> CorpusMemories | None:
        """See `memory.ports.UserMemories`. A missing set is loaded, with a short wait."""
        if self._snapshots is None and user_id not in self._sets:
            return None  # loading a large user's set costs more than the lookup
        corpus = await self.corpus(user_id, waits=True, seconds=LEARNING_PATIENCE_SECONDS)
        if corpus is None or self.state_of(user_id) is not SetState.HELD:  # changed memories are missing
            return None
        is_wanted = revision is None or self._sets[user_id].revision == revision
        return CorpusMemories(user_id, corpus) if is_wanted else None

    async def _made_current(self, user_id: str, prefetch: Prefetch, *, waits: bool) -> None:
        one = await self._present(user_id, waits=waits)
        if one is not None:
            await self._brought_up_to_date(one, prefetch, waits=waits)
            if not self._holds(one):  # it was too far behind, or was evicted
                await self._present(user_id, waits=waits)

    async def _present(self, user_id: str, *, waits: bool) -> WorkingSet | None:
        """The user's set: the one held, else from the snapshot; otherwise a load for later requests is queued."""
        if self.state_of(user_id) in (SetState.ABSENT, SetState.OPENING, SetState.WAITING):
            await asyncio.wait((self._opened(user_id),), timeout=self._patience(waits=waits))
        if user_id not in self._sets and (ended := self._loads.ask(user_id, is_awaited=waits)) is not None and waits:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._limits.search_patience):
                    await ended.wait()
        one = self._sets.get(user_id)
        if one is not None:
            self._sets.move_to_end(user_id)
        return one

    async def _brought_up_to_date(self, one: WorkingSet, prefetch: Prefetch, *, waits: bool) -> None:
        """Wait until earlier writes are included, as long as the caller's patience allows."""
        try:
            revision = prefetch.revision or await self._ledger.revision(one.user_id)
        except Unavailable:
            return  # unknown whether memories were forgotten meanwhile
        prefetch.written = last_even(revision)
        if prefetch.written != one.revision or one.refresh is not None:
            await asyncio.wait((self._refreshed(one),), timeout=self._patience(waits=waits))
        # The changed ids are not even known yet.
        while one.refresh is not None and one.known_revision < prefetch.written:
            one.revision_known.clear()
            await one.revision_known.wait()

    def _patience(self, *, waits: bool) -> float:
        return self._limits.search_patience if waits else self._limits.patience

    # Snapshots

    def _opened(self, user_id: str) -> asyncio.Task[None]:
        """One at a time per user."""
        task = self._opening.get(user_id)
        if task is None:
            task = self._opening[user_id] = self._start(self._open(user_id))
            task.add_done_callback(lambda _: self._opening.pop(user_id))
        return task

    async def _open(self, user_id: str) -> None:
        found = await self._snapshots.read(user_id, self._threads) if self._snapshots is not None else None
        if found is not None and user_id not in self._sets:
            one = WorkingSet(user_id, found.corpus, found.revision, self._sources, self._resized)
            one.known_revision = one.saved = found.revision
            one.size_bytes = found.corpus.size_bytes
            one.is_laid_out = True
            self._hold(one)

    def _preallocate_soon(self, used: int) -> None:
        self._spare_used += used
        is_due = self._spare_used >= SPARE_USED_MAX
        if self._limits.preallocates and is_due and self._preallocating is None:
            self._preallocating = self._start(self._preallocate())

    async def _preallocate(self) -> None:
        await asyncio.sleep(SPARE_AFTER_SECONDS)
        self._preallocating, self._spare_used = None, 0  # from now on a further call starts another one
        await asyncio.get_running_loop().run_in_executor(self._threads, preallocate)

    async def hold(self, user_id: str) -> None:
        """Load the user's set from its snapshot, if there is one. Never raises."""
        if user_id not in self._sets:
            await asyncio.wait((self._opened(user_id),))

    async def save(self, user_id: str) -> None:
        """Refresh the user's set, loading it if necessary, and write its snapshot. Never raises."""
        await self.corpus(user_id, waits=True)
        one = self._sets.get(user_id)
        if one is not None and one.saved != one.revision:
            await asyncio.wait((self._saved(one),))
        elif self._snapshots is not None and self.state_of(user_id) is SetState.RESTING:
            await self._snapshots.discard(user_id)  # the user has too many memories now

    def _saved(self, one: WorkingSet) -> asyncio.Task[None]:
        if one.saving is None:
            one.saving = self._start(self._save(one))
        return one.saving

    async def _save(self, one: WorkingSet) -> None:
        error = await outcome_of(self._written(one)) if self._snapshots is not None else None
        if isinstance(error, Exception):
            report("a snapshot was not written", error)
        one.saving = None

    async def _written(self, one: WorkingSet) -> None:
        """Checks again after writing: memories forgotten meanwhile must not remain in the snapshot."""
        assert self._snapshots is not None
        for _ in range(SAVES_MAX):
            revision, contents = await one.contents()
            if not len(contents.rows):
                break
            if not await self._snapshots.write(one.user_id, contents, revision=revision, threads=self._threads):
                return
            changed = await self._ledger.changed_since(one.user_id, revision)
            if changed is not None and changed.isdisjoint(contents.rows.ids):
                one.saved, one.unsaved = revision, 0
                return
            await self._snapshots.discard(one.user_id)
            await asyncio.wait((self._refreshed(one),))
        await self._snapshots.discard(one.user_id)

    # Loading

    async def _loaded(self, user_id: str, started: Revision, records: Sequence[Record]) -> None:
        """Create a set from the loaded records, after fetching what changed meanwhile."""
        corpus = Corpus(dimension=self._dimension, tokens=self._tokens)
        one = WorkingSet(user_id, corpus, last_even(started), self._sources, self._resized)
        await one.change(records=records)
        await self._catch_up(one)
        self._hold(one)
        self._saved(one)
        self._unfrozen += len(records)
        if self._unfrozen >= FREEZE_EVERY_MEMORIES:
            self._unfrozen = 0
            freeze_live_objects()

    # Refreshing

    def _refreshed(self, one: WorkingSet) -> asyncio.Task[None]:
        """One at a time per set; continues when a request runs out of time."""
        if one.refresh is None:
            one.refresh = self._start(self._refresh(one))
        return one.refresh

    async def _refresh(self, one: WorkingSet) -> None:
        error = await outcome_of(self._catch_up(one))
        if isinstance(error, TooFarBehind | TooLarge) and self._snapshots is not None:
            await self._snapshots.discard(one.user_id)  # it cannot be used any more
        if error is not None and not isinstance(error, Unavailable):
            self._drop(one)
            if isinstance(error, TooLarge):
                self._loads.rest(one.user_id, error)
            report("a working set was not refreshed", error)
        elif one.unsaved >= UNSAVED_MAX:
            self._saved(one)
        one.refresh = None
        one.revision_known.set()

    async def _catch_up(self, one: WorkingSet) -> None:
        await one.catch_up()
        if len(one.corpus) > self._limits.memories_max:
            raise TooLarge

    async def _lay_out(self, one: WorkingSet) -> None:
        error = await outcome_of(one.lay_out())
        if error is not None:
            self._drop(one)
            report("a working set was not laid out", error)

    # Eviction

    def _holds(self, one: WorkingSet) -> bool:
        return self._sets.get(one.user_id) is one

    def _hold(self, one: WorkingSet) -> None:
        if (before := self._sets.get(one.user_id)) is not None:
            self._drop(before)
        self._sets[one.user_id] = one
        self.size_bytes += one.size_bytes
        self._preallocate_soon(one.size_bytes)
        self._make_room()

    def _drop(self, one: WorkingSet) -> None:
        if self._holds(one):
            del self._sets[one.user_id]
            self.size_bytes -= one.size_bytes

    def _resized(self, one: WorkingSet, more: int) -> None:
        if self._holds(one):
            self.size_bytes += more
            self._preallocate_soon(max(more, 0))
            self._make_room()

    def _make_room(self) -> None:
        while self.size_bytes > self._limits.bytes_max and len(self._sets) > 1:
            self._drop(next(iter(self._sets.values())))

    def _start(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = self._tasks.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task


async def _waited_for(task: asyncio.Task[None], ends_at: float) -> bool:
    """Whether it ended by then; it continues in any case."""
    if not task.done():
        timeout = None if math.isinf(ends_at) else max(0.0, ends_at - asyncio.get_running_loop().time())
        await asyncio.wait((task,), timeout=timeout)
    return task.done()
