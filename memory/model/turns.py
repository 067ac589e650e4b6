"""What was said and answered: what is learnt from."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from memory.errors import BadInput
from memory.model.chats import Message
from memory.model.identity import Scope


class TurnStatus(StrEnum):
    OPENED = "opened"
    CLOSED = "closed"
    FAILED = "failed"  # the upstream answered with an error
    ABORTED = "aborted"  # the reply ended before its end: client gone, or upstream reset
    UNKNOWN = "unknown"  # we went down before the reply ended


@dataclass(frozen=True, slots=True)
class Urgency:
    """What a look at a finished turn says about when it is to be learnt, and what is lost if it never is.

    `worth` lies in 0..1, 0 for small talk. `is_explicit`: the user asked for something to be remembered or forgotten,
    or put something right: due at once, never shed. `asks_memory`: the former; it does not wait for what is retried.
    `ends_topic`: it speaks of something else than the turns before it.
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
    """The user messages after the last assistant message, plus the answer. `scope.session_id` is never empty here."""

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

    def __post_init__(self) -> None:
        if not self.scope.session_id:
            raise BadInput("a turn needs a session_id")
