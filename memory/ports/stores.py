"""Where memories live, and the lock and the revision of each user."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Protocol

from memory.model import (
    Candidate,
    Change,
    Memory,
    MemoryStatus,
    Record,
    Vector,
)
from memory.ports.models import Embedder


@dataclass(frozen=True, slots=True)
class MemoryFilter:
    """Which memories of one user. Empty means "any". A given project (agent) also admits memories that have none."""

    user_id: str
    project_id: str = ""
    agent_id: str = ""
    memory_types: tuple[str, ...] = ()
    status: MemoryStatus | None = MemoryStatus.ACTIVE
    exact_project: bool = False  # only those of that very project, "" being none: to learn and delete, never to recall
    with_archived: bool = True  # without a status: also what upkeep put away; False: what may ever be recalled
    created_after: float | None = None  # Unix seconds, by `created_at`


@dataclass(frozen=True, slots=True)
class Page:
    """One page, newest first (`created_at`, then `id`, both descending). `next_cursor` is "" on the last one."""

    memories: tuple[Memory, ...]
    next_cursor: str


class MemoryStore(Protocol):
    """Where memories live. All calls are bound to one user; nothing of another user is ever returned or changed.

    Read-modify-write is the caller's: hold `UserLedger.write` around it. What `apply` wrote is seen by every later call
    of any process. Raises `Unavailable`.
    """

    async def prepare(self) -> None:
        """Make sure that it can hold our vectors. Raises `BadSetting` where those that it holds are of another origin.

        All other calls do so as well, and raise `Unavailable` there: no vectors are ever mixed.
        """
        ...

    async def search(self, where: MemoryFilter, vector: Vector, *, limit: int) -> list[Candidate]:
        """The nearest memories by cosine, best first; `parts["dense"]` and `score` are the cosine."""
        ...

    async def nearest(
        self, where: MemoryFilter, vectors: Vector, *, limit: int, words: Collection[str] = ()
    ) -> list[Record]:
        """The memories nearest to any of these vectors, at most `limit` for each, with their vectors, as last written.

        In no order, each once. `vectors` has shape `(n, dimension)`. `words`: only memories whose content holds one of
        these pieces of text, as it is given or with a capital first letter; letters and digits only. One round trip.
        """
        ...

    async def load(self, where: MemoryFilter, *, limit: int) -> list[Record]:
        """All memories with their vectors, newest first, at most `limit`, as last written: for a working set."""
        ...

    async def load_few(self, where: MemoryFilter, *, most: int) -> list[Record] | None:
        """All memories with their vectors, in no order, as last written; None where there are more than `most`.

        Costs the same however many there are.
        """
        ...

    async def same_statement(self, where: MemoryFilter, key: str) -> Record | None:
        """The memory whose content has this `model.statement_key`, the newest if there are several."""
        ...

    async def get(self, user_id: str, memory_ids: Sequence[str]) -> list[Record]:
        """Those that exist and belong to the user, in the order asked for."""
        ...

    async def page(self, where: MemoryFilter, *, limit: int, cursor: str) -> Page:
        """Raises `BadInput` for a cursor that we did not make."""
        ...

    async def count(self, where: MemoryFilter) -> int: ...

    async def apply(
        self,
        user_id: str,
        changes: Sequence[Change],
        vectors: Vector,
        *,
        before_each: Callable[[], None] | None = None,
    ) -> None:
        """Write every row, or raise; repeating is harmless. `vectors` has shape `(len(changes), dimension)`.

        Return once the rows survive a crash of the store and are found by search. `before_each` is called right before
        each part is sent, with nothing awaited in between; what it raises ends the write and is raised here.
        """
        ...

    async def delete(self, user_id: str, memory_ids: Collection[str]) -> None:
        """Gone for good; ids that do not exist are ignored."""
        ...

    async def is_ready(self) -> bool:
        """Whether a search would work now. Never raises."""
        ...


@dataclass(frozen=True, slots=True)
class Revision:
    """A user's revision: odd while a write is under way, even when all is visible."""

    number: int

    @property
    def is_settled(self) -> bool:
        return self.number % 2 == 0


class LedgerWrite(Protocol):
    """The user's lock, held. Names what changes, so that readers refresh just that."""

    def touch(self, memory_ids: Collection[str]) -> None:
        """These memories are written or deleted while the lock is held. Call before the write."""
        ...

    async def renew(self) -> None:
        """It is still ours, and from now on for as long again. Call right before a write. Raises `Conflict` if lost."""
        ...

    def check_term(self) -> None:
        """Raise `Conflict` where a row that is sent now might arrive when the lock is no longer ours.

        By the clock alone: it asks nobody and awaits nothing. Who was frozen since `renew` finds out here.
        """
        ...

    async def forgotten(self, memory_ids: Collection[str]) -> frozenset[str]:
        """Those of them that were deleted for good: a stored plan must not bring them back."""
        ...

    async def forget(self, memory_ids: Collection[str]) -> None:
        """Remember that these ids were deleted. Implies `touch`, and `renew`: a lost lock forgets nothing."""
        ...


class Nearby(Protocol):
    """What is asked of a user's memories before new ones are stored beside them. As `MemoryStore` says, each."""

    async def nearest(
        self, where: MemoryFilter, vectors: Vector, *, limit: int, words: Collection[str] = ()
    ) -> list[Record]: ...

    async def load_few(self, where: MemoryFilter, *, most: int) -> list[Record] | None: ...

    async def same_statement(self, where: MemoryFilter, key: str) -> Record | None: ...

    async def get(self, user_id: str, memory_ids: Sequence[str]) -> list[Record]: ...


class UserMemories(Protocol):
    """Memories that are at hand in this process, so that nobody need ask the store for them again and again."""

    async def as_of(self, user_id: str, revision: int | None = None) -> Nearby | None:
        """All that may ever be recalled of the user's memories: as of that settled revision, of now without one.

        Their vectors may have been rounded to 16 bits. None where they are not at hand so: then the store is to be
        asked. To be used before the next await that waits for anything else; its own calls never wait. Never raises.
        """
        ...


class UserLedger(Protocol):
    """Locks and revisions per user, as a sequence lock (DESIGN §4, "Working set"). Raises `Unavailable`."""

    def write(self, user_id: str) -> AbstractAsyncContextManager[LedgerWrite]:
        """Hold the user's lock: the revision is odd inside and even, and higher, after. Across processes and machines.

        A lock whose holder died, or held it for 30 s, goes to the next one, who repairs the odd revision; `recover` of
        the turn log repairs it, too. Waits 5 s, then `Unavailable`. Leaving raises `Conflict` where the lock was lost.
        """
        ...

    async def revision(self, user_id: str) -> Revision: ...

    async def changed_since(self, user_id: str, number: int) -> frozenset[str] | None:
        """Ids touched after that (even) revision; None when that is no longer known: load everything."""
        ...


class NothingAtHand:
    """`UserMemories` of a process that holds none."""

    async def as_of(self, user_id: str, revision: int | None = None) -> Nearby | None:
        return None


@dataclass(frozen=True, slots=True)
class MemoryBank:
    """The memories of all users: their rows, the locks under which rows are written, and what makes their vectors.

    `at_hand` spares the store where this process holds a user's memories.
    """

    store: MemoryStore
    ledger: UserLedger
    embedder: Embedder
    at_hand: UserMemories = field(default_factory=NothingAtHand)
