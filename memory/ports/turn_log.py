"""The turn log: the durable queue of what is to be learnt, and the record of what was said. Four ports on one queue.

An adapter keeps all four in one place, since they change the same turns: `TurnLog`, on which the contract suites run.
Nobody who uses it takes more of it than they need.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping
from typing import Protocol

from memory.model import Turn, TurnStatus, Urgency
from memory.ports.chains import ResponseChains
from memory.ports.turns import Backlog, DeadLetter, FreshTurn, LearnDue, Lease, Order, QueueDepth


class TurnRecording(Protocol):
    """Turns as they are said, or told later. Raises `Unavailable` (also when the disk is full)."""

    @property
    def chains(self) -> ResponseChains:
        """Where its turns stand in conversations that clients go on from by name."""
        ...

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

    async def complete(self, turn_id: str, *, answer: str, answered_at: float) -> None:
        """The final answer of a tool loop: it belongs to the turn that the user opened, which had none when it closed.

        Ignored for a turn that is not closed, or has an answer. Durable on return. What was learnt already, or is
        being learnt, was learnt without it.
        """
        ...

    async def append(self, turn: Turn) -> None:
        """A turn that is already finished (history from elsewhere). The same id again is ignored."""
        ...


class WindowLeases(Protocol):
    """Windows of finished turns, each in the hands of one worker until it is learnt, put off or given up.

    Raises `Unavailable`.
    """

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

    async def retry_at(self, lease: Lease, *, due_at: float, reason: str, outage_since: float | None = None) -> None:
        """Give the window back until `due_at`. Raises `Conflict`.

        `outage_since`: a part that it needs has been away since then, so that this attempt does not count.
        """
        ...

    async def bury(self, lease: Lease, *, now: float, reason: str) -> None:
        """To the dead letters, which keep turns and plan. Raises `Conflict`."""
        ...


class TurnTriage(Protocol):
    """What waits to be learnt: how much, what goes first, what is given up, and what of that comes back.

    Raises `Unavailable`.
    """

    async def unexamined(self, *, limit: int) -> list[FreshTurn]:
        """Finished turns that wait to be leased and are not marked yet, oldest first, at most `limit` (and 8 MB).

        Cheap when there are none: may be called every 50 ms.
        """
        ...

    async def mark(self, urgencies: Mapping[str, Urgency]) -> None:
        """What a look at these turns (by id) found. Only the first mark counts; leased and unknown turns are ignored.

        What made an earlier turn of the session urgent stays so, whatever is marked or told after it.
        """
        ...

    async def shed(self, *, now: float, keep: int, window_turns: int) -> int:
        """Give up the least valuable windows while more than `keep` finished turns are not learnt; how many turns.

        A window is worth as much as its best turn; of equal ones the oldest go first. Only marked turns that were never
        leased, in windows of at most `window_turns`, and never one with an explicit turn. They become dead letters with
        a reason: they stay on record, and `replay` brings them back.
        """
        ...

    async def hurry(self, user_id: str, *, session_id: str = "") -> None:
        """Make all turns of the user (or of one session) that are finished now due, debounce aside; later ones wait.

        Retries keep their time. Called for a session, this is how its end is said.
        """
        ...

    async def depth(self, *, now: float) -> QueueDepth: ...

    async def backlog(self, user_id: str, *, session_id: str = "", opened_before: float) -> Backlog:
        """Of the turns that reached the log before that time, whatever their own `at` says. Open turns are pending."""
        ...

    async def dead_letters(self, *, limit: int) -> list[DeadLetter]: ...

    async def replay(self, window_ids: Collection[str]) -> int:
        """Make dead letters due again, attempt 1; how many. Empty means all. What was shed is not shed again."""
        ...

    async def drop(self, window_ids: Collection[str]) -> int:
        """Give dead letters up for good; how many. Empty means none: who gives up must say what."""
        ...


class ConversationRecord(Protocol):
    """The conversations as they were recorded: read, or kept from being learnt. Raises `Unavailable`."""

    def turns(self, user_id: str, *, session_id: str = "") -> AsyncIterator[Turn]:
        """The record, in the order of opening (which for imported history is not the order of `at`)."""
        ...

    async def context(self, lease: Lease, *, limit: int) -> list[Turn]:
        """The last turns of the session before the window, oldest first, that taught, or would have, and still may.

        Not those that failed, were aborted, or were withdrawn. Costs the same however long the session is.
        """
        ...

    async def breaks(self, lease: Lease, *, limit: int) -> list[Turn]:
        """The session's last turns before the window's end that failed or were aborted, oldest first.

        Whoever reads the talk has to know that something stood there. Costs the same however long the session is.
        """
        ...

    async def note_orders(self, lease: Lease, claims: Mapping[str, bytes]) -> None:
        """These turns of the window ask for something to be forgotten, so that `orders_after` finds them from now on.

        `claims`: by turn id, what was read there, encoded. It goes with the turn. Raises `Conflict`.
        """
        ...

    async def orders_after(self, lease: Lease, *, limit: int) -> list[Order]:
        """The latest turns of the user, in any session, that were noted so and were opened after the window's first.

        Oldest first, and none of the window's own. Costs the same however much was said.
        """
        ...

    async def withdraw(
        self,
        user_id: str,
        *,
        project_id: str = "",
        opened_before: float,
        only: Collection[str] = (),
        spare: Collection[str] = (),
    ) -> int:
        """Take not yet learnt turns, open ones too, out of the queue (what they say was just forgotten); how many.

        `only` these turns, by id, where there are any; never those to `spare`.

        What is left of a window becomes another one without a plan, and whoever holds the old lease gets a `Conflict`:
        so a worker must `extend` or `save_plan` under the user's lock right before it applies a plan.
        """
        ...


class TurnLog(TurnRecording, WindowLeases, TurnTriage, ConversationRecord, Protocol):
    """All of it: what an adapter is."""
