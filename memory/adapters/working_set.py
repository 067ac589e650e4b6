"""Working sets: the memories of users who talk, held in this process, so that a request searches them in a millisecond.

A set is loaded from the store beside the requests, which meanwhile search the store directly. It is never older than
the last write that had ended when a request came: each request asks the ledger for the user's revision, a sequence lock
that is odd while somebody writes, and fetches just the memories that changed. What was read while a write was under way
is thrown away and read again. When the store or the ledger is down, the set serves on. Bounded in bytes: the set that
was asked longest ago goes first, and a user with too many memories never gets one.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import structlog

from memory.errors import Conflict, Unavailable
from memory.model import Record
from memory.ports import MemoryFilter, MemoryStore, Revision, UserLedger
from memory.recall.corpus import Corpus

MEMORIES_MAX = 20_000  # of one user: laying out more would hold up that user's own requests
BYTES_MAX = 512 << 20  # of all sets of one process
ROWS_ON_LOOP_MAX = 1_000  # laying out so many takes about 3 ms; more is done in a thread
LOAD_ATTEMPTS = 5  # a user who is written to without pause is loaded later
RETRY_SECONDS = 0.2

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class _Set:
    """One user's corpus, complete up to `revision`. `refresh` is under way while it is not None."""

    corpus: Corpus
    revision: int
    size_bytes: int = 0
    refresh: asyncio.Task[None] | None = None


@dataclass(frozen=True, slots=True)
class WorkingSetLimits:
    memories_max: int = MEMORIES_MAX
    bytes_max: int = BYTES_MAX


class WorkingSets:
    """`memory.recall.retrieval.Corpora`. `async with` opens it; loads in flight end with it."""

    def __init__(
        self, *, store: MemoryStore, ledger: UserLedger, dimension: int, limits: WorkingSetLimits | None = None
    ) -> None:
        self._store = store
        self._ledger = ledger
        self._dimension = dimension
        self._limits = limits or WorkingSetLimits()
        self._sets: OrderedDict[str, _Set] = OrderedDict()
        self._loading: dict[str, asyncio.Task[None]] = {}
        self._too_large: dict[str, int] = {}  # user -> revision at which there were too many memories
        self._tasks = asyncio.TaskGroup()

    async def __aenter__(self) -> Self:
        await self._tasks.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in [*self._loading.values(), *(s.refresh for s in self._sets.values() if s.refresh)]:
            task.cancel()
        await self._tasks.__aexit__(None, None, None)

    @property
    def size_bytes(self) -> int:
        """What all sets hold together, estimated."""
        return sum(one.size_bytes for one in self._sets.values())

    async def corpus(self, user_id: str, *, waits: bool = False) -> Corpus | None:
        """All memories of the user as of now, or None while they are not loaded. `waits`: load them first.

        Use the corpus before the next await: after it, somebody else may be changing it. Never raises.
        """
        if user_id not in self._sets:
            loading = self._load_beside(user_id)
            if waits and loading is not None:
                await asyncio.shield(loading)
        one = self._sets.get(user_id)
        if one is None:
            return None
        self._sets.move_to_end(user_id)
        revision = await self._revision(user_id)
        if revision is not None and revision.is_settled and revision.number != one.revision:
            self._refresh_beside(user_id, one)
        while one.refresh is not None:
            await asyncio.shield(one.refresh)
        return one.corpus if self._sets.get(user_id) is one else None

    async def _revision(self, user_id: str) -> Revision | None:
        try:
            return await self._ledger.revision(user_id)
        except Unavailable:
            return None

    # Loading

    def _load_beside(self, user_id: str) -> asyncio.Task[None] | None:
        if user_id not in self._loading:
            self._loading[user_id] = self._start(self._load(user_id))
            self._loading[user_id].add_done_callback(lambda _: self._loading.pop(user_id, None))
        return self._loading.get(user_id)

    def _start(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        return self._tasks.create_task(work)

    async def _load(self, user_id: str) -> None:
        for _ in range(LOAD_ATTEMPTS):
            try:
                if await self._is_loaded(user_id):
                    return
            except (Unavailable, Conflict):
                pass
            await asyncio.sleep(RETRY_SECONDS)

    async def _is_loaded(self, user_id: str) -> bool:
        before = await self._ledger.revision(user_id)
        if self._too_large.get(user_id) == before.number:
            return True
        if not before.is_settled:
            return False
        records = await self._store.load(_all_of(user_id), limit=self._limits.memories_max + 1)
        if await self._ledger.revision(user_id) != before:
            return False
        if len(records) > self._limits.memories_max:
            self._too_large[user_id] = before.number
            return True
        corpus = await asyncio.to_thread(self._laid_out, records)
        self._sets[user_id] = _Set(corpus, before.number, corpus.size_bytes)
        self._evict()
        return True

    def _laid_out(self, records: list[Record]) -> Corpus:
        corpus = Corpus(records, dimension=self._dimension)
        corpus.prepare()
        return corpus

    def _evict(self) -> None:
        while len(self._sets) > 1 and self.size_bytes > self._limits.bytes_max:
            self._sets.popitem(last=False)

    # Refreshing

    def _refresh_beside(self, user_id: str, one: _Set) -> None:
        """A task of its own: a request that runs out of time must not stop it half way."""
        if one.refresh is None:
            one.refresh = self._start(self._refresh(user_id, one))

    async def _refresh(self, user_id: str, one: _Set) -> None:
        try:
            with suppress(Unavailable, Conflict):  # the store is down: what we have is better than nothing
                await self._catch_up(user_id, one)
        finally:
            one.refresh = None

    async def _catch_up(self, user_id: str, one: _Set) -> None:
        target = await self._ledger.revision(user_id)
        changed = await self._ledger.changed_since(user_id, one.revision)
        if changed is None:
            self._forget(user_id)
            return
        records = await self._store.get(user_id, sorted(changed))
        if await self._ledger.revision(user_id) != target or not target.is_settled:
            return  # somebody wrote meanwhile: the next request catches up
        found = {record.memory.id: record for record in records}
        if len(one.corpus) > ROWS_ON_LOOP_MAX:
            await asyncio.to_thread(_changed, one.corpus, changed, found)
        else:
            _changed(one.corpus, changed, found)
        one.revision, one.size_bytes = target.number, one.corpus.size_bytes
        if len(one.corpus) > self._limits.memories_max:
            self._forget(user_id)
        self._evict()

    def _forget(self, user_id: str) -> None:
        self._sets.pop(user_id, None)


def _changed(corpus: Corpus, changed: frozenset[str], found: dict[str, Record]) -> None:
    for memory_id in changed:
        if memory_id in found:
            corpus.add(found[memory_id])
        else:
            corpus.remove(memory_id)
    corpus.prepare()


def _all_of(user_id: str) -> MemoryFilter:
    """Superseded ones too: a question about the past may want them. The ranking keeps them out of all others."""
    return MemoryFilter(user_id=user_id, status=None)
