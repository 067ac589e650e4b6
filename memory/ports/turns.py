"""The turn log: the durable queue of what is to be learnt, and the record of what was said."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from dataclasses import dataclass
from typing import Protocol

from memory.model import (
    Turn,
    TurnStatus,
)


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
