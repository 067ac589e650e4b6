"""The ports of memory storage, of the lock and revision of each user, and of snapshots of working sets."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from memory.model import Candidate, Change, Memory, MemoryStatus, Record, Vector
from memory.model.claim_filters import ANY_CLAIM, ClaimFilter
from memory.ports.models import Embedder
from memory.ports.paging import Page


@dataclass(frozen=True, slots=True)
class MemoryFilter:
    """Which memories of one user. Empty means "any". A project (agent) also admits memories that have none."""

    user_id: str
    project_id: str = ""
    agent_id: str = ""
    memory_types: tuple[str, ...] = ()
    status: MemoryStatus | None = MemoryStatus.ACTIVE
    exact_project: bool = False  # exactly that project, "" meaning none: for learning and deleting, never for recall
    # Without a status: whether archived memories are included; False: only what may be recalled.
    with_archived: bool = True
    with_raw: bool = False  # without a status: whether rows with the raw words of turns are included
    source: str = ""  # exactly that one
    other_source: str = ""  # any but that one
    said_within: tuple[tuple[float, float], ...] = ()  # in one of these times, `[start, end)`, by `said_at`


class MemoryLookup(Protocol):
    """Lookups among one user's memories: memories of others are never returned. Raises `Unavailable`."""

    async def nearest(
        self, where: MemoryFilter, vectors: Vector, *, limit: int, words: Collection[str] = ()
    ) -> list[Record]:
        """The memories nearest to any of these vectors, at most `limit` per vector, with their vectors, as last
        written.

        Unordered, each once. `vectors` has shape `(n, dimension)`. `words`: only memories whose content contains one of
        these strings, as given or capitalised; letters and digits only. One round trip.
        """

    async def load_few(self, where: MemoryFilter, *, most: int) -> list[Record] | None:
        """All memories with their vectors, unordered, as last written; None if there are more than `most`.

        The cost does not depend on how many there are.
        """

    async def same_statement(self, where: MemoryFilter, key: str) -> Record | None:
        """The memory with this `model.statement_key`, the newest of several; None if there is none."""

    async def get(self, user_id: str, memory_ids: Sequence[str]) -> list[Record]:
        """Those that exist and belong to the user, in the order asked for."""


class MemoryStore(MemoryLookup, Protocol):
    """Stores memories. Every call concerns one user; memories of others are never returned or changed.

    For read-modify-write the caller holds `UserLedger.write`. Rows written by `apply` are visible to all later calls of
    any process. Raises `Unavailable`.
    """

    async def prepare(self) -> None:
        """Make sure that it can hold our vectors. Raises `BadSetting` if its vectors are of another origin.

        All other calls check that as well and raise `Unavailable`: vectors are never mixed.
        """

    async def search(self, where: MemoryFilter, vector: Vector, *, limit: int) -> list[Candidate]:
        """The nearest memories by cosine, best first; `parts["dense"]` and `score` are the cosine."""

    async def load(self, where: MemoryFilter, *, limit: int) -> list[Record]:
        """All memories with their vectors, newest first, at most `limit`, as last written; for working sets."""

    async def ids(self, where: MemoryFilter) -> list[str]:
        """The ids of all memories that the filter admits, newest first, as last written."""

    async def memories(self, user_id: str, memory_ids: Sequence[str]) -> list[Memory]:
        """As `get`, without vectors."""

    async def page(
        self, where: MemoryFilter, *, limit: int, cursor: str, claim: ClaimFilter = ANY_CLAIM
    ) -> Page[Memory]:
        """The memories that both filters admit, newest first (`created_at`, then `id`, both descending).

        Raises `BadInput` for an invalid cursor.
        """

    async def count(self, where: MemoryFilter) -> int: ...

    async def apply(
        self, user_id: str, changes: Sequence[Change], vectors: Vector, *, before_each: Callable[[], None] | None = None
    ) -> None:
        """Write every row, or raise; idempotent. `vectors` has shape `(len(changes), dimension)`.

        Raises `MemoryRefused`, before anything is written, for one that does not fit, or whose id is another user's.

        Returns once the rows survive a crash of the store and are found by search. `before_each` is called right before
        each batch is sent, with no await in between; if it raises, the write ends with that error.
        """

    async def delete(self, user_id: str, memory_ids: Collection[str]) -> None:
        """Delete permanently; unknown ids are ignored."""

    async def is_ready(self) -> bool:
        """Whether searches work now. Never raises."""


@dataclass(frozen=True, slots=True)
class Revision:
    """A user's revision: odd during a write, even when all writes are visible."""

    number: int

    @property
    def is_settled(self) -> bool:
        return self.number % 2 == 0


class LedgerWrite(Protocol):
    """The user's lock, held. Records the changed ids, so that readers refresh only those."""

    def touch(self, memory_ids: Collection[str]) -> None:
        """Record that these memories are written or deleted while the lock is held. Call before the write.

        Also without ids: the user's revision moves on, as it must if the number is stored with what is planned now.
        """

    async def renew(self) -> None:
        """Extend the lock for another full term, and announce what was touched. Call right before a write.

        If this process dies, readers take what was announced for changed, and nothing else. Raises `Conflict` if the
        lock was lost.
        """

    def check_term(self) -> None:
        """Raise `Conflict` if a row sent now might arrive after the lock has expired.

        Uses the clock only, without IO or await: it detects that this process was suspended since `renew`.
        """

    async def forgotten(self, memory_ids: Collection[str]) -> frozenset[str]:
        """Those ids that were deleted permanently: a stored plan must not restore them."""

    async def forget(self, memory_ids: Collection[str], *, raw_ids: Collection[str] = ()) -> None:
        """Record these ids as deleted. Implies `renew`: without the lock nothing is recorded.

        Implies `touch`, except of `raw_ids`: of rows with raw words, which no reader holds.
        """

    async def advance_erase_epoch(self) -> None:
        """Delete all bookkeeping with the user's id, and release the lock: nothing more may be done under it.

        What began before is not stored afterwards: notes, receipts, states, counts of use. The user may return at
        once, with a revision higher than any before, of which nothing is known. Raises `Conflict` if the lock was
        lost; then nothing is deleted.
        """


class UserMemories(Protocol):
    """A user's memories held in this process, which spare queries of the store."""

    async def as_of(self, user_id: str, revision: int | None = None) -> MemoryLookup | None:
        """All of the user's memories that may be recalled, at that settled revision, or now if None.

        Vectors may be rounded to 16 bits. None if the memories are not available locally: query the store. Must be used
        before the next await; its own calls never wait. Never raises.
        """


class UserLedger(Protocol):
    """Locks and revisions per user, as a sequence lock. Raises `Unavailable`."""

    def write(self, user_id: str) -> AbstractAsyncContextManager[LedgerWrite]:
        """Hold the user's lock: the revision is odd inside, and even afterwards. Works across processes.

        Afterwards it is higher, or as before if nothing was touched: then nothing changed that a reader may hold. Two
        holders may see the same odd number, so readers compare even ones only.

        A lock whose holder died, or held it for 30 s, is taken over, and the odd revision is repaired, also by the turn
        log's `recover`. Waits up to 5 s, then raises `Unavailable`. Raises `Conflict` on exit if the lock was lost.
        """

    async def revision(self, user_id: str) -> Revision: ...

    async def changed_since(self, user_id: str, number: int) -> frozenset[str] | None:
        """Ids changed after that (even) revision by writes that are over; None if it is too old: load everything."""

    async def erase_epoch(self, user_id: str) -> int:
        """How often the user was erased. While the user's lock is held it does not change."""


@dataclass(frozen=True, slots=True)
class MemoryBank:
    """The memories of all users: their store, the locks for writing, and the embedder of their vectors.

    `local_memories`: used instead of the store for users whose memories this process holds.
    """

    store: MemoryStore
    ledger: UserLedger
    embedder: Embedder
    local_memories: UserMemories


class Snapshots(Protocol):
    """One blob per user, which nobody here looks into. A cache: any of them may be gone at any time, to make room.

    Readers never wait for writers, of any process. Raises `Unavailable`.
    """

    async def read(self, user_id: str) -> bytes | None:
        """What was last written, whole; None where there is nothing, or it was too large to keep."""

    async def write(self, user_id: str, snapshot: bytes) -> None:
        """In place of what is there, whole or not at all. Need not survive a power cut."""

    async def erase(self, user_id: str) -> None:
        """Gone from the disk, and from every later `read`; nothing to do where there is none."""

    async def erase_all(self) -> None:
        """Every user's: none of them can be of use any more."""
