"""One user's working set: a corpus that is refreshed from the store and laid out in a thread, under a lock.

Changed memories are removed as soon as a change is known, and added again by a read that no write overlapped. The
corpus is changed and laid out only under `edit_lock`, and only by tasks that a request cannot cancel, since a thread
cannot be cancelled either. It must never block the loop for more than a few milliseconds, whatever its size.

| state   | what comes                                          | what happens                               | next    |
|---------|-----------------------------------------------------|--------------------------------------------|---------|
| ABSENT  | a request of the user, or a write                   | their snapshot is read                     | OPENING |
| OPENING | it was read                                         | the set is held, as of the snapshot        | HELD    |
| OPENING | there is none that can be used                      | a request: the set waits to be loaded      | WAITING |
| OPENING | there is none that can be used                      | a write: nothing                           | ABSENT  |
| WAITING | its turn has come, and no chat searches the store   | all is read, laid out, held, and saved     | HELD    |
| WAITING | it is too large, or the store is down               | the load ends                              | RESTING |
| RESTING | a request                                           | the store is searched                      | RESTING |
| RESTING | its time is over                                    | nothing                                    | ABSENT  |
| HELD    | the ledger names memories that changed              | they are taken out                         | BEHIND  |
| BEHIND  | they were read again, and nobody wrote meanwhile    | they are put in as they are now            | HELD    |
| BEHIND  | the store is down, or somebody writes all the time  | what is left serves on                     | BEHIND  |
| BEHIND  | the ledger no longer knows what changed, or a fault | the set goes, and its snapshot where stale | ABSENT  |
| BEHIND  | it is too large by now                              | the set and its snapshot go                | RESTING |
| (held)  | other sets need the room                            | the set goes                               | ABSENT  |

While it rests a set that is held serves on. Where a user's set stands is read off what is kept for them
(`WorkingSets.state_of`), never written down beside it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TypeVar

from memory.errors import Unavailable
from memory.model import MemoryStatus, Record
from memory.ports import MemoryStore, Revision, UserLedger
from memory.recall.ranking.corpus import Contents, Corpus
from memory.recall.ranking.features import TextFeatures
from memory.recall.working_set.loader import TooFarBehind

NEVER_RECALLED = (MemoryStatus.ARCHIVED, MemoryStatus.RAW)
ROWS_ON_LOOP_MAX = 300  # laying out so many takes about 1 ms; more is done in a thread
ROWS_BETWEEN_PAUSES = 16  # less than a millisecond of work, the longest that the thread may hold the interpreter
YIELD_SECONDS = 0.0005  # a real sleep: without it the loop gets the interpreter only every 5 ms
CATCH_UP_SECONDS_MAX = 5.0  # with a user who is written to continuously; then a later request tries again
PAUSE_SECONDS = 0.005  # between two checks of a user who is being written to: a write takes 10 to 100 ms

Result = TypeVar("Result")


class SetState(Enum):
    """What is held of a user, by the table above."""

    ABSENT = auto()
    OPENING = auto()
    WAITING = auto()
    RESTING = auto()
    HELD = auto()  # as of its revision, which is all that we heard of
    BEHIND = auto()  # without what changed since


@dataclass(frozen=True, slots=True)
class WorkingSetSources:
    """The store and ledger that a set is refreshed from, and the threads that work on it."""

    store: MemoryStore
    ledger: UserLedger
    threads: Executor


@dataclass(slots=True, eq=False)
class Prefetch:
    """A request of a user has arrived."""

    task: asyncio.Task[None] = field(init=False)  # loads and refreshes their set in the background
    revision: Revision | None = None  # the ledger's when the request came; None if it was not asked
    written: int | None = None  # the revision that the set has to reach; None while the ledger has not answered
    reading: TextFeatures | None = None  # of one question's words, once read: `ranked` takes it for that question's
    of_project: Prefetch | None = None  # the same for the set of a shared project, which the request uses as well


@dataclass(slots=True, eq=False)
class WorkingSet:
    """Complete up to `revision`, without the memories changed from then until `known_revision`."""

    user_id: str
    corpus: Corpus
    revision: int
    sources: WorkingSetSources
    resized: Callable[[WorkingSet, int], None]  # called with the increase of its size in bytes
    known_revision: int = 0
    # Set when `known_revision` changed, or `refresh` ended.
    revision_known: asyncio.Event = field(default_factory=asyncio.Event)
    edit_lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    is_laid_out: bool = False
    size_bytes: int = 0
    refresh: asyncio.Task[None] | None = None  # running task; `saving` likewise
    saving: asyncio.Task[None] | None = None
    saved: int = -1  # revision of the snapshot that was read or written
    unsaved: int = 0  # changes since then

    @property
    def is_rankable(self) -> bool:
        """Whether it can be ranked now, on the loop, before the next await."""
        return self.is_laid_out and not self.edit_lock.locked()

    async def catch_up(self) -> None:
        """Refresh from the store, as of some moment during the call. Raises `Unavailable` and `TooFarBehind`."""
        loop = asyncio.get_running_loop()
        give_up_at = loop.time() + CATCH_UP_SECONDS_MAX
        while not await self._has_caught_up():
            if loop.time() > give_up_at:
                raise Unavailable("turn_log", "the user's memories are changing continuously")
            await asyncio.sleep(PAUSE_SECONDS)

    async def _has_caught_up(self) -> bool:
        """Remove changed memories and add them again as they are now. False while somebody writes."""
        store, ledger = self.sources.store, self.sources.ledger
        target = await ledger.revision(self.user_id)
        if target.number != self.revision:
            changed = await ledger.changed_since(self.user_id, self.revision)
            if changed is None:
                raise TooFarBehind
            await self.change(gone=changed)
            self.known_revision = last_even(target)
            self.revision_known.set()
            if not target.is_settled:
                return False
            records = await store.get(self.user_id, sorted(changed)) if changed else []
            if await ledger.revision(self.user_id) != target:
                return False
            await self.change(records=[r for r in records if r.memory.status not in NEVER_RECALLED])
            self.unsaved += len(changed)
        await self.lay_out()
        self.revision = self.known_revision = target.number
        return True

    async def change(self, *, records: Sequence[Record] = (), gone: Collection[str] = ()) -> None:
        gone = [memory_id for memory_id in gone if memory_id in self.corpus]
        if not records and not gone:
            return
        async with self.edit_lock:
            self.is_laid_out = False
            for memory_id in gone:
                self.corpus.remove(memory_id)
            if len(records) > ROWS_BETWEEN_PAUSES:
                await self._in_thread(lambda: _add_in_batches(self.corpus, records))
            else:
                for record in records:
                    self.corpus.add(record)

    async def lay_out(self) -> None:
        async with self.edit_lock:
            if self.is_laid_out:
                return
            is_quick = len(self.corpus) <= ROWS_ON_LOOP_MAX
            # Its size is known once it is laid out.
            size = self.corpus.size_bytes if is_quick else await self._in_thread(lambda: self.corpus.size_bytes)
            self.is_laid_out = True
            before, self.size_bytes = self.size_bytes, size
        self.resized(self, size - before)

    async def contents(self) -> tuple[int, Contents]:
        """For a snapshot: a revision up to which it is complete, and the contents, which may be a little newer."""
        async with self.edit_lock:
            return self.revision, await self._in_thread(self.corpus.contents)

    async def _in_thread(self, work: Callable[[], Result]) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self.sources.threads, work)


def last_even(revision: Revision) -> int:
    return revision.number - revision.number % 2


def _add_in_batches(corpus: Corpus, records: Sequence[Record]) -> None:
    for number, record in enumerate(records, start=1):
        corpus.add(record)
        if number % ROWS_BETWEEN_PAUSES == 0:
            time.sleep(YIELD_SECONDS)
