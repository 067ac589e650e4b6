"""The values of a user's queue: what is kept in one key and replaced as a whole.

Texts and plans are not here but in keys of their own: a queue of a thousand turns takes about 200 KB. A turn leaves the
queue when it is learnt, dropped, or has nothing to learn; its record stays.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

LIVE = ("leased", "waiting")  # states of a window that will be learnt
GIVEN_UP = ("dead", "shed")  # states of a window that only operators can revert
LEFT = ("withdrawn", "abandoned")  # stages of turns that are not to be learnt, and are no context
UNLEARNT = ("open", "ready", "window")  # stages of turns that are still to be learnt


class WaitingTurn(msgspec.Struct, frozen=True):
    """A turn on its way. `stage`: open, ready or window, or one of `LEFT` while its reply has not ended.

    `seq`: the order of opening, over all users. `size`: bytes of messages and answer.
    """

    seq: int
    id: str
    session_id: str
    project_id: str
    opened_at: float
    stage: str
    size: int
    is_open: bool = False
    owner: str = ""  # the process that opened it, while it is open
    finished_at: float = 0.0
    worth: float | None = None  # None: not examined yet
    is_explicit: bool = False
    window_id: str = ""


class SessionMark(msgspec.Struct, frozen=True):
    """Up to which turn the ready turns of a session are urgent, and ask something of memory."""

    session_id: str
    urgent_seq: int = 0
    asked_seq: int = 0


class QueuedWindow(msgspec.Struct, frozen=True):
    """`state`: leased (`due_at`: when that ends), waiting (`due_at`: when to try again), dead or shed.

    `outages`: attempts that ended, one after the other, in an outage of a part, and are not among `attempt`.
    """

    id: str
    session_id: str
    state: str = "waiting"
    due_at: float = 0.0
    attempt: int = 0
    token: str = ""
    owner: str = ""
    has_plan: bool = False
    reason: str = ""
    buried_at: float = 0.0
    outages: int = 0
    outage_since: float | None = None
    is_asked: bool = False


class UserQueue(msgspec.Struct, frozen=True):
    """Turns in the order of opening."""

    user_id: str
    turns: tuple[WaitingTurn, ...] = ()
    marks: tuple[SessionMark, ...] = ()  # of sessions with ready turns
    windows: tuple[QueuedWindow, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not self.turns and not self.windows

    def turn(self, turn_id: str) -> WaitingTurn | None:
        return next((turn for turn in self.turns if turn.id == turn_id), None)

    def window(self, window_id: str) -> QueuedWindow | None:
        return next((window for window in self.windows if window.id == window_id), None)

    def turns_of(self, window_id: str) -> tuple[WaitingTurn, ...]:
        return tuple(turn for turn in self.turns if turn.stage == "window" and turn.window_id == window_id)

    def ready(self, session_id: str) -> tuple[WaitingTurn, ...]:
        return tuple(turn for turn in self.turns if turn.stage == "ready" and turn.session_id == session_id)

    def mark(self, session_id: str) -> SessionMark:
        return next((mark for mark in self.marks if mark.session_id == session_id), SessionMark(session_id))


@dataclass(frozen=True, slots=True)
class QueueChange:
    """A transition: the queue after it, and the stages of turns that left it or whose record shows it.

    `ended`: turn ids whose replies ended without an answer at `ended_at`, since their process died.
    """

    queue: UserQueue
    stages: Mapping[str, str] = field(default_factory=dict)
    ended: tuple[str, ...] = ()
    ended_at: float = 0.0


@dataclass(frozen=True, slots=True)
class RecordEffects:
    """What has to change in a user's other keys when the queue changes."""

    stages: Mapping[str, str]
    unknown: tuple[str, ...]
    unknown_at: float
    plans_to_delete: tuple[str, ...]


def effects_of(before: UserQueue, change: QueueChange) -> RecordEffects:
    """The effects of a change on the record and on plans: the only place that derives them."""
    planned = {window.id for window in change.queue.windows if window.has_plan}
    dropped = tuple(window.id for window in before.windows if window.has_plan and window.id not in planned)
    return RecordEffects(dict(change.stages), change.ended, change.ended_at, dropped)


EMPTY = b""


def encode(queue: UserQueue) -> bytes:
    return EMPTY if queue.is_empty else _ENCODER.encode(queue)


def decode(stored: bytes | None, user_id: str) -> UserQueue:
    return _DECODER.decode(stored) if stored else UserQueue(user_id)


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(UserQueue)
