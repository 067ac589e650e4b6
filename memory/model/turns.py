"""A turn: what the user said and the answer, the unit of learning; and as one system gives it to another."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from enum import StrEnum

from memory.errors import BadInput
from memory.model.chats import Message
from memory.model.identity import Scope

_IDS = uuid.UUID("c2f4b8a6-1d37-5e92-9b60-7f8e5a3c4d11")


class TurnStatus(StrEnum):
    OPENED = "opened"
    CLOSED = "closed"
    FAILED = "failed"  # the upstream answered with an error
    ABORTED = "aborted"  # the reply was incomplete: the client or the upstream disconnected
    UNKNOWN = "unknown"  # the process that saw it died before the end of the reply, or stood still for long
    FILLED_IN = "filled_in"  # not observed: taken from the conversation that the client sent again later


@dataclass(frozen=True, slots=True)
class Urgency:
    """The result of examining a finished turn: when it has to be learnt, and its value for load shedding.

    `worth`: 0..1, 0 for small talk. `is_explicit`: the user asked to remember or forget something, or corrected it; due
    at once, never shed. `asks_memory`: asked to remember or forget; such a turn does not wait for retries of its
    session. `ends_topic`: it is about something else than the turns before it.
    """

    worth: float
    is_explicit: bool = False
    asks_memory: bool = False
    ends_topic: bool = False

    def __post_init__(self) -> None:
        if not 0.0 <= self.worth <= 1.0:
            raise BadInput("worth must lie between 0 and 1")


@dataclass(frozen=True, slots=True)
class Turn:
    """The user messages after the last assistant message, plus the answer. `scope.session_id` is never empty here.

    `utc_offset`: of the user's zone then, in seconds east of UTC; None if unknown.
    """

    id: str
    scope: Scope
    at: float
    messages: tuple[Message, ...]
    status: TurnStatus = TurnStatus.OPENED
    answer: str = ""
    answered_at: float | None = None
    model: str = ""
    trace_id: str = ""
    receipt_id: str = ""
    utc_offset: int | None = None

    @property
    def local_at(self) -> float:
        """When it was said by the user's own clock, as if that showed UTC: its day is the user's day."""
        return self.at + (self.utc_offset or 0)

    def __post_init__(self) -> None:
        if not self.scope.session_id:
            raise BadInput("a turn needs a session_id")


class Learning(StrEnum):
    LEARNT = "learnt"
    DUE = "due"  # the system that gets it learns it
    NEVER = "never"  # failed, abandoned, or withdrawn because something was forgotten


@dataclass(frozen=True, slots=True)
class TurnCopy:
    """`in_summaries`: False of a turn that says what was forgotten or withheld, or asks for that.

    `is_order`: it asks for that, and whoever learns other turns applies it. `is_held`: if due, not before it is
    released, behind the orders of all turns.
    """

    turn: Turn
    learning: Learning = Learning.LEARNT
    in_summaries: bool = True
    is_order: bool = False
    is_held: bool = False


def copied_turn_id(user_id: str, turn_id: str) -> str:
    """The id of a turn of another system, or of another user, in this user's record: the same for each copy of it.

    The id in a file is the choice of whoever sends it. As it stands it could be that of another user's turn, and a
    refusal would show that there is one.
    """
    return str(uuid.uuid5(_IDS, f"{user_id}\x1f{turn_id}"))
