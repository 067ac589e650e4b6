"""What goes through the turn log (`turn_log`): leases, windows that were given up, and how much waits."""

from __future__ import annotations

from dataclasses import dataclass

from memory.model import Turn


@dataclass(frozen=True, slots=True)
class Lease:
    """Work for one worker: the turns of one window, in order. `window_id` and `turns` are the same at every attempt.

    But for an answer that a tool loop found in between.
    """

    window_id: str
    user_id: str
    session_id: str
    turns: tuple[Turn, ...]
    attempt: int  # 1 for the first; those that ended in an outage of a part are not among them
    token: str  # proves that the lease is still ours
    plan: bytes | None  # what an earlier attempt stored; apply it as it is
    waiting_since: float = 0.0  # when the first of its turns reached its end, by our clock
    outages: int = 0  # attempts right before this one that ended in an outage of a part
    outage_since: float | None = None  # when the first of them did


@dataclass(frozen=True, slots=True)
class Backlog:
    """`pending`: turns not learnt yet, `waiting`: those of them that await a retry, `failed`: dead or shed."""

    pending: int
    waiting: int
    failed: int


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A window that was given up after its last attempt, or (attempts 0) shed before its first.

    `attempts`: also those that ended in the last outage.
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
    """When the finished turns of a session are due: any one of these is enough. The trained reader: at once.

    Beside them, what was marked as explicit, as ending a topic, or hurried is due now, up to that turn and no further,
    and goes before everybody else's work. Per-user order always holds: one live lease per user. Within a session turns
    wait for what is being retried of it, unless they ask something of memory.
    """

    batch_turns_max: int = 20  # of one window
    idle_seconds: float = 0.0  # debounce: a session is due that long after its last turn; 0 means at once
    turns_at_once: int = 1  # or as soon as it has so many turns
    tokens_at_once: int | None = None  # or about so many tokens, answers included; None: however many


@dataclass(frozen=True, slots=True)
class FreshTurn:
    """A finished turn that nobody has looked at yet. `earlier`: turns of its session right before it that wait, too."""

    turn: Turn
    earlier: tuple[Turn, ...]  # oldest first


@dataclass(frozen=True, slots=True)
class Order:
    """A turn that asks for something to be forgotten. `claims`: what was read there, encoded; b"" if nobody kept it."""

    turn: Turn
    claims: bytes = b""


@dataclass(frozen=True, slots=True)
class QueueDepth:
    """For metrics. `oldest_seconds` is the age of the oldest finished turn that is not learnt; 0 without one."""

    opened: int
    due: int
    leased: int
    retrying: int
    dead: int
    oldest_seconds: float
    shed: int = 0
