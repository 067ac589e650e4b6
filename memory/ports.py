"""What the domain needs from the world: small protocols, each with its guarantees and its errors.

Every port has one contract suite in `tests/contracts/` that runs on every adapter. Every call is bounded in time by the
adapter's own time-out and raises `Unavailable` past it; a cancelled call leaves nothing half done.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from memory.model import (
    Candidate,
    Change,
    Memory,
    MemoryStatus,
    Message,
    PastNote,
    Placement,
    Receipt,
    Record,
    Turn,
    TurnStatus,
    Vector,
)

Clock: TypeAlias = Callable[[], float]
"""Unix seconds. Handed in; only `memory/app.py` knows the real one."""


class Embedder(Protocol):
    """Text to vectors. One process serves all; requests go ahead of learning."""

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        ...

    async def embed(self, texts: Sequence[str], *, is_urgent: bool) -> Vector:
        """Unit vectors, shape `(len(texts), dimension)`, float32. Raises `Unavailable`."""
        ...


@dataclass(frozen=True, slots=True)
class MemoryFilter:
    """Which memories of one user. Empty means "any". A given project (agent) also admits memories that have none."""

    user_id: str
    project_id: str = ""
    agent_id: str = ""
    memory_types: tuple[str, ...] = ()
    status: MemoryStatus | None = MemoryStatus.ACTIVE
    exact_project: bool = False  # only memories of that very project: for deletion, never for recall


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

    async def search(self, where: MemoryFilter, vector: Vector, *, limit: int) -> list[Candidate]:
        """The nearest memories by cosine, best first; `parts["dense"]` and `score` are the cosine."""
        ...

    async def load(self, where: MemoryFilter, *, limit: int) -> list[Record]:
        """All memories with their vectors, newest first, at most `limit`, as last written: for a working set."""
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

    async def apply(self, user_id: str, changes: Sequence[Change], vectors: Vector) -> None:
        """Write every row, or raise; repeating is harmless. `vectors` has shape `(len(changes), dimension)`.

        Return once the rows survive a crash of the store and are found by search.
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

    async def forgotten(self, memory_ids: Collection[str]) -> frozenset[str]:
        """Those of them that were deleted for good: a stored plan must not bring them back."""
        ...

    async def forget(self, memory_ids: Collection[str]) -> None:
        """Remember that these ids were deleted. Implies `touch`."""
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


@dataclass(frozen=True, slots=True)
class Lease:
    """Work for one worker: the turns of one window, in order. `window_id` and `turns` are the same at every attempt."""

    window_id: str
    user_id: str
    session_id: str
    turns: tuple[Turn, ...]
    attempt: int  # 1 for the first
    token: str  # proves that the lease is still ours
    plan: bytes | None  # what an earlier attempt stored; apply it as it is


@dataclass(frozen=True, slots=True)
class Backlog:
    """`pending`: turns not learnt yet, `waiting`: those of them that await a retry, `failed`: turns in dead letters."""

    pending: int
    waiting: int
    failed: int


@dataclass(frozen=True, slots=True)
class DeadLetter:
    window_id: str
    user_id: str
    session_id: str
    turn_ids: tuple[str, ...]
    reason: str
    buried_at: float
    attempts: int


@dataclass(frozen=True, slots=True)
class LearnDue:
    """When a finished turn is due. Verbatim mode: at once. Per-user order always holds: one live lease per user."""

    batch_turns_max: int = 20  # of one window
    idle_seconds: float = 0.0  # debounce: a session is due that long after its last turn; 0 means at once
    turns_at_once: int = 1  # or as soon as it has so many turns


class TurnLog(Protocol):
    """The durable queue and the conversation record, in one. Raises `Unavailable` (also when the disk is full)."""

    async def open(self, turn: Turn) -> None:
        """Append the turn with status opened. Return once it would survive a crash of this process.

        The turn belongs to this process; when the process dies, `recover` makes it `unknown`.
        """
        ...

    async def finish(
        self, turn_id: str, *, status: TurnStatus, answer: str, answered_at: float, receipt_id: str = ""
    ) -> None:
        """How the reply ended. Closed, aborted-before-open and repeated calls are ignored; durable on return.

        Closed and unknown turns are learnt; failed and aborted ones are recorded and teach nothing.
        """
        ...

    async def append(self, turn: Turn) -> None:
        """A turn that is already finished (history from elsewhere). The same id again is ignored."""
        ...

    async def recover(self) -> int:
        """Turns left open by dead processes become `unknown`; how many. Leases and locks that they held end now.

        Cheap when nobody died: may be called every 50 ms, as may `lease`.
        """
        ...

    async def lease(self, *, now: float, seconds: float, due: LearnDue) -> Lease | None:
        """The oldest due window of a user nobody else works for, or None. Expired ones are taken over, plan and all."""
        ...

    async def extend(self, lease: Lease, *, until: float) -> None:
        """Raises `Conflict` when the lease is no longer ours, or ended and somebody works for that user by now."""
        ...

    async def save_plan(self, lease: Lease, plan: bytes) -> None:
        """Store what will be applied, before it is. Raises `Conflict`."""
        ...

    async def acknowledge(self, lease: Lease) -> None:
        """The window is learnt. Raises `Conflict`."""
        ...

    async def retry_at(self, lease: Lease, *, due_at: float, reason: str) -> None:
        """Give the window back until `due_at`. Raises `Conflict`."""
        ...

    async def bury(self, lease: Lease, *, now: float, reason: str) -> None:
        """To the dead letters, which keep turns and plan. Raises `Conflict`."""
        ...

    async def dead_letters(self, *, limit: int) -> list[DeadLetter]: ...

    async def replay(self, window_ids: Collection[str]) -> int:
        """Make dead letters due again, attempt 1; how many. Empty means all."""
        ...

    async def drop(self, window_ids: Collection[str]) -> int:
        """Give dead letters up for good; how many. Empty means none: who gives up must say what."""
        ...

    async def hurry(self, user_id: str, *, session_id: str = "") -> None:
        """Make all finished turns of the user (or of one session) due now, debounce aside. Retries keep their time."""
        ...

    async def backlog(self, user_id: str, *, session_id: str = "", opened_before: float) -> Backlog:
        """Of the turns that reached the log before that time, whatever their own `at` says. Open turns are pending."""
        ...

    async def withdraw(self, user_id: str, *, project_id: str = "", opened_before: float) -> int:
        """Take not yet learnt turns, open ones too, out of the queue (their scope was just deleted); how many.

        What is left of a window becomes another one without a plan, and whoever holds the old lease gets a `Conflict`:
        so a worker must `extend` or `save_plan` under the user's lock right before it applies a plan.
        """
        ...

    def turns(self, user_id: str, *, session_id: str = "") -> AsyncIterator[Turn]:
        """The record, in the order of opening (which for imported history is not the order of `at`)."""
        ...

    async def depth(self, *, now: float) -> QueueDepth: ...


@dataclass(frozen=True, slots=True)
class QueueDepth:
    """For metrics. `oldest_seconds` is the age of the oldest finished turn that is not learnt; 0 without one."""

    opened: int
    due: int
    leased: int
    retrying: int
    dead: int
    oldest_seconds: float


class NoteBook(Protocol):
    """Notes of earlier requests by conversation key, shared by all filters, bounded. Raises `Unavailable`.

    Losing a note costs a prefix, never an answer, so it may forget the oldest.
    """

    async def find(self, user_id: str, keys: Sequence[str]) -> dict[str, PastNote]:
        """Those of the keys that have a note."""
        ...

    async def keep(self, user_id: str, key: str, note: PastNote, *, made_at: float) -> None:
        """In the place of an earlier note of that key. On return, every later `find` of any process sees it.

        `made_at` is when the search behind it began. A note made before a `drop` of one of its memories is not kept.
        """
        ...

    async def drop(self, user_id: str, memory_ids: Collection[str], *, now: float) -> None:
        """Forget every note that holds one of these memories, also those made until `now` that come within a minute.

        An empty collection means all of the user's notes.
        """
        ...


class Receipts(Protocol):
    """What was decided for a request, and why; bounded per user, in bytes and in time."""

    def keep(self, receipt: Receipt) -> None:
        """Readable by every process soon after, unless the part is down or busy. Never waits, never raises."""
        ...

    async def get(self, user_id: str, receipt_id: str) -> Receipt | None:
        """None for one that never was, is too old, or is somebody else's. Raises `Unavailable`."""
        ...

    async def erase(self, user_id: str) -> None:
        """All of this user's, with the words that they quote. Raises `Unavailable`."""
        ...


class ModelTraits(Protocol):
    """What was learnt about the upstream's models, shared by all filters. Raises `Unavailable`."""

    async def placement(self, model: str) -> Placement | None:
        """Where a note may stand for this model; None: nothing is known. What others learnt is seen within seconds."""
        ...

    async def learn(self, model: str, placement: Placement) -> None:
        """Seen by this process at once. Once `off` is known, `system` is no news: it only ever becomes more careful."""
        ...


class ChatTemplates(Protocol):
    """What the upstream itself says about its models' chat templates. May be asked beside a request, never in it."""

    async def placement(self, model: str) -> Placement | None:
        """The freest placement that this model's template takes; None: the server cannot tell. Never raises."""
        ...


class ChatModel(Protocol):
    """A language model that answers one request at a time. What it says is a proposal, to be checked by the caller."""

    async def complete(
        self, messages: Sequence[Message], *, max_tokens: int, seconds: float, schema: Mapping[str, Any] | None = None
    ) -> str:
        """The answer's text, at most 256 KB, within `seconds`. Raises `Unavailable("model", …)`.

        With a JSON schema the model is asked to follow it, which no caller may rely on. Cancelled, it is told to stop.
        """
        ...


class Tokens(Protocol):
    """Counts tokens as the embedding model's WordPiece does, with truncation off: an estimate for other models."""

    def __call__(self, text: str) -> int: ...


__all__ = [
    "Backlog",
    "ChatModel",
    "ChatTemplates",
    "Clock",
    "DeadLetter",
    "Embedder",
    "LearnDue",
    "Lease",
    "LedgerWrite",
    "MemoryFilter",
    "MemoryStore",
    "ModelTraits",
    "NoteBook",
    "Page",
    "QueueDepth",
    "Receipts",
    "Revision",
    "Tokens",
    "TurnLog",
    "UserLedger",
]
