"""The four ports of the turn log: the durable queue for learning, and the conversation record; with their values.

An adapter implements all four as `TurnLog`, since they change the same turns; the contract suites run on it. Callers
take only the ports that they use.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping
from dataclasses import dataclass
from typing import Protocol

from memory.model import Turn, TurnStatus, Urgency
from memory.ports.conversation_trees import ConversationTrees, RecordingTimes, ResponseChains
from memory.ports.recorded import RecordCopies, RecordedMessages, RemovedWords


@dataclass(frozen=True, slots=True)
class Lease:
    """Work for one worker: the turns of one window, in order. `window_id` and `turns` are the same at every attempt,
    except for an answer of a tool loop that was added meanwhile.
    """

    window_id: str
    user_id: str
    session_id: str
    turns: tuple[Turn, ...]
    attempt: int  # 1 for the first; attempts that ended in an outage do not count
    token: str  # proves that the lease is still held
    plan: bytes | None  # stored by an earlier attempt; to be applied unchanged
    waiting_since: float = 0.0  # when the first of its turns finished, by our clock
    outages: int = 0  # consecutive attempts before this one that ended in an outage
    outage_since: float | None = None  # when the first of them did


@dataclass(frozen=True, slots=True)
class Backlog:
    """`pending`: turns not learnt yet; `waiting`: those of them that wait for a retry; `failed`: dead or shed."""

    pending: int
    waiting: int
    failed: int


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A window given up after its last attempt, or (attempts 0) shed before its first.

    `attempts` includes those of the last outage.
    """

    window_id: str
    user_id: str
    session_id: str
    turn_ids: tuple[str, ...]
    reason: str
    buried_at: float
    attempts: int


@dataclass(frozen=True, slots=True)
class LearnDue:
    """When the finished turns of a session are due: as soon as one of these conditions holds.

    In addition, turns marked as explicit or as ending a topic, and those of `make_due_now`, are due at once, with the
    turns of their session before them, and have priority. The order per user is kept: one live lease per user. Within a
    session turns wait for its retries, unless they ask something of memory.
    """

    batch_turns_max: int = 20  # per window
    idle_seconds: float = 0.0  # debounce: a session is due so long after its last turn; 0 means at once
    turns_at_once: int = 1  # or as soon as it has so many turns
    tokens_at_once: int | None = None  # or about so many tokens, including answers; None: no limit


@dataclass(frozen=True, slots=True)
class FreshTurn:
    """A finished turn that has not been examined. `earlier`: the waiting turns of its session right before it."""

    turn: Turn
    earlier: tuple[Turn, ...]  # oldest first


@dataclass(frozen=True, slots=True)
class ForgetRequestTurn:
    """A turn with a request to forget. `claims`: the encoded claims of the request; b"" if they were not stored.
    `is_since`: made after what a window says; otherwise before it, in its session.
    """

    turn: Turn
    claims: bytes = b""
    is_since: bool = True


@dataclass(frozen=True, slots=True)
class QueueDepth:
    """For metrics. `oldest_seconds`: age of the oldest finished turn that is not learnt; 0 without one."""

    opened: int
    due: int
    leased: int
    retrying: int
    dead: int
    oldest_seconds: float
    shed: int = 0


class PartsOfTurns(Protocol):
    """What belongs to recorded turns, as ports of its own."""

    @property
    def chains(self) -> ResponseChains:
        """The links by which later requests continue exchanges with these turns."""

    @property
    def messages(self) -> RecordedMessages:
        """The record as messages: read, search, delete, trim, compress. Tool traffic of turns is added there."""

    @property
    def trees(self) -> ConversationTrees:
        """The positions of these turns in their conversations."""


class TurnRecording(PartsOfTurns, Protocol):
    """Records turns as they happen, or imported ones. Raises `Unavailable` (also when the disk is full)."""

    @property
    def times(self) -> RecordingTimes:
        """When turns were recorded at all."""

    async def open(self, turn: Turn) -> None:
        """Append the turn with status opened. Return once it survives a crash of this process.

        The turn belongs to this process; if the process dies, `recover` makes it `unknown`.
        """

    async def finish(
        self, turn_id: str, *, status: TurnStatus, answer: str, answered_at: float, receipt_id: str = ""
    ) -> None:
        """Record how the reply ended; durable on return. Closed and unknown turns are learnt; failed and aborted ones
        are only recorded.

        Ignored for a turn that has ended, with one exception: others made it `unknown` since its process stood still
        for so long, and now it is closed. Then its answer is recorded as by `complete`. That it failed, or was aborted,
        comes too late: what the user said is learnt, as of a process that died.
        """

    async def complete(self, turn_id: str, *, answer: str, answered_at: float) -> None:
        """Add the final answer of a tool loop to the turn that the user opened, which was closed without one.

        Ignored for a turn that is neither closed nor unknown, or has an answer. Durable on return. Turns that are
        learnt already, or are being learnt, are not learnt again.
        """

    async def append(self, turn: Turn) -> None:
        """Append a finished turn (imported history). A known id is ignored."""


class WindowLeases(Protocol):
    """Windows of finished turns, each leased to one worker until it is learnt, postponed or given up.

    Raises `Unavailable`.
    """

    async def recover(self) -> int:
        """Make open turns of dead processes `unknown`, and end their leases and locks. Returns the number of turns.

        Cheap if nobody died: may be called every 50 ms, like `lease`.
        """

    async def lease(self, *, now: float, seconds: float, due: LearnDue) -> Lease | None:
        """The oldest due window of a user without a live lease, or None. Expired leases are taken over with their
        plan.
        """

    async def extend(self, lease: Lease, *, until: float) -> None:
        """Raises `Conflict` if the lease is lost, or has expired and another worker works for that user."""

    async def save_plan(self, lease: Lease, plan: bytes) -> None:
        """Store the plan before it is applied. Raises `Conflict`."""

    async def acknowledge(self, lease: Lease) -> None:
        """The window is learnt. Raises `Conflict`."""

    async def retry_at(self, lease: Lease, *, due_at: float, reason: str, outage_since: float | None = None) -> None:
        """Return the window to the queue until `due_at`. Raises `Conflict`.

        `outage_since`: a required part has been unavailable since then, so that this attempt does not count.
        """

    async def move_to_dead_letters(self, lease: Lease, *, now: float, reason: str) -> None:
        """Keeps turns and plan. Raises `Conflict`."""


class TurnTriage(Protocol):
    """The turns that wait to be learnt: their number and priority, and which are shed, replayed or dropped.

    Raises `Unavailable`.
    """

    async def unexamined(self, *, limit: int) -> list[FreshTurn]:
        """Finished turns that wait for a lease and are not marked, oldest first, at most `limit` (and 8 MB).

        Cheap if there are none: may be called every 50 ms.
        """

    async def mark(self, urgencies: Mapping[str, Urgency]) -> None:
        """Store the urgency of these turns, by id. Only the first mark counts; leased and unknown ids are ignored.

        Later marks never make an earlier turn of the session less urgent.
        """

    async def shed(self, *, now: float, keep: int, window_turns: int) -> int:
        """Shed the least valuable windows while more than `keep` finished turns wait. Returns the number of turns.

        The value of a window is that of its best turn; of equal ones the oldest go first. Only marked turns that were
        never leased are shed, in windows of at most `window_turns`, and none with an explicit turn. They become dead
        letters with a reason: they stay on record, and `replay` makes them due again.
        """

    async def make_due_now(self, user_id: str, *, session_id: str = "") -> None:
        """Make all finished turns of the user (or of one session) due now, without debounce; later ones wait.

        Retries keep their time. For a session, this marks its end.
        """

    async def depth(self, *, now: float) -> QueueDepth: ...

    async def backlog(self, user_id: str, *, session_id: str = "", opened_before: float) -> Backlog:
        """Counts turns that reached the log before that time, whatever their own `at`. Open turns are pending."""

    async def dead_letters(self, *, limit: int) -> list[DeadLetter]: ...

    async def replay(self, window_ids: Collection[str]) -> int:
        """Make dead letters due again, as attempt 1; returns how many. Empty means all. They are not shed again."""

    async def drop(self, window_ids: Collection[str]) -> int:
        """Delete dead letters without learning them; returns how many. Empty means none."""


class ConversationRecord(PartsOfTurns, Protocol):
    """Reads the recorded conversations, and withdraws turns from learning. Raises `Unavailable`."""

    @property
    def copies(self) -> RecordCopies:
        """The record as it goes to another system, and comes from one."""

    @property
    def removed_words(self) -> RemovedWords:
        """Turns whose words left the record."""

    def turns(self, user_id: str, *, session_id: str = "") -> AsyncIterator[Turn]:
        """The record in the order of opening, which for imported history differs from the order of `at`."""

    async def context(self, lease: Lease, *, limit: int) -> list[Turn]:
        """The last turns of the session before the window, oldest first.

        Without failed, aborted, abandoned and withdrawn turns. The cost does not depend on the length of the session.
        """

    async def failed_turns(self, lease: Lease, *, limit: int) -> list[Turn]:
        """The session's last failed or aborted turns before the window's end, oldest first.

        Readers need to know about the gaps. The cost does not depend on the length of the session.
        """

    async def mark_forget_requests(self, lease: Lease, claims: Mapping[str, bytes]) -> None:
        """Mark turns of the window as requests to forget, for `forget_requests_for`.

        `claims`: the encoded claims by turn id, stored with the turn. Raises `Conflict`.
        """

    async def forget_requests_for(self, lease: Lease, *, limit: int) -> list[ForgetRequestTurn]:
        """The user's latest marked turns, in any session, opened after the window's first turn; in its own session also
        those before it. If a turn of the window was filled in, also those that were said after it and opened before it.

        Without the window's own. The cost does not depend on the length of the record.
        """

    async def withdraw(
        self,
        user_id: str,
        *,
        project_id: str = "",
        opened_before: float,
        only: Collection[str] = (),
        spare: Collection[str] = (),
    ) -> int:
        """Remove turns that are not learnt yet, including open ones, from the queue, because they were forgotten.

        `only`: these turn ids, if not empty; `spare`: never these. Returns the number of turns.

        The rest of a window becomes another one without a plan, and the holder of the old lease gets a `Conflict`: a
        worker must call `extend` or `save_plan` under the user's lock right before it applies a plan.
        """


class TurnLog(TurnRecording, WindowLeases, TurnTriage, ConversationRecord, Protocol):
    """All four ports: what an adapter implements."""
