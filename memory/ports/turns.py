"""The values of the turn log (`turn_log`): leases, dead letters, and the state of the queue."""

from __future__ import annotations

from dataclasses import dataclass

from memory.model import Turn


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
    """A turn with a request to forget. `claims`: the encoded claims of the request; b"" if they were not stored."""

    turn: Turn
    claims: bytes = b""


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
