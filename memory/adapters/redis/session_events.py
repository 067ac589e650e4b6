"""What happens to sessions when a user's turns change, and what that writes: the pure side of summaries becoming due.

Whatever changes a turn says so with its commit (`Planned.sessions`), so that a summary is gone in the same step. Every
event writes without reading. See `memory.ports.SessionSummaries`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from memory.adapters.redis.log_client import Command
from memory.adapters.redis.log_keys import UserKeys
from memory.adapters.redis.queue_values import GIVEN_UP, QueueChange, UserQueue

QUIET, TOKEN, TRIES = "q:", "k:", "n:"  # before the session's id: fields of what is due
AT_ONCE = 0.0


@dataclass(frozen=True, slots=True)
class WentOn:
    """A turn of it has ended at that time: it is due once it has been quiet for long enough."""

    session_id: str
    at: float


@dataclass(frozen=True, slots=True)
class Changed:
    """A turn of it was deleted, reworded, withdrawn, abandoned, resumed or left out: its summary is gone.

    A session that was not due is over, so that its next summary need not wait.
    """

    session_id: str


@dataclass(frozen=True, slots=True)
class LearntLate:
    """A turn of it that ended at that time was learnt: it belongs to the next summary."""

    session_id: str
    finished_at: float


@dataclass(frozen=True, slots=True)
class Rests:
    """It has changed, and is to wait as if a turn had ended at that time, for it will change again soon."""

    session_id: str
    at: float


@dataclass(frozen=True, slots=True)
class NeedsNone:
    """It was looked at: it has no substance, or none any more."""

    session_id: str


SessionEvent: TypeAlias = WentOn | Changed | LearntLate | Rests | NeedsNone
WITHDRAWING = (Changed, NeedsNone)  # whatever had a summary has one no longer


def events_of(before: UserQueue, change: QueueChange) -> list[SessionEvent]:
    """What follows from the stages that turns of the queue get."""
    learnt: dict[str, LearntLate] = {}
    changed: dict[str, Changed] = {}
    for turn_id, stage in change.stages.items():
        turn = before.turn(turn_id)
        if turn is None or turn.stage == stage:
            continue
        if stage == "learnt":
            learnt[turn.session_id] = LearntLate(turn.session_id, turn.finished_at)
        elif stage in ("withdrawn", "abandoned"):
            changed[turn.session_id] = Changed(turn.session_id)
    return [*learnt.values(), *changed.values()]


def commands_of(keys: UserKeys, events: Collection[SessionEvent], new_token: Callable[[], int]) -> list[Command]:
    commands: list[Command] = []
    for event in events:
        session, due = event.session_id, keys.due_summaries
        token: Command = ("HSET", due, TOKEN + session, new_token())
        tries: Command = ("HDEL", due, TRIES + session)
        match event:
            case WentOn():
                commands += [("HSET", due, QUIET + session, repr(event.at)), token, tries]
            case LearntLate():
                commands += [("HSETNX", due, QUIET + session, repr(event.finished_at)), token]
            case Changed():
                commands += [("HSETNX", due, QUIET + session, repr(AT_ONCE)), token, tries]
                commands += [("HDEL", keys.summaries, session)]
            case Rests():
                commands += [("HSET", due, QUIET + session, repr(event.at))]
            case NeedsNone():
                commands += [("HDEL", keys.summaries, session)]
    return commands


def place_of(events: Sequence[SessionEvent], before: UserQueue, change: QueueChange | None) -> float | None:
    """From when on a session of the user may be due; None if nothing about that has changed."""
    places = [event.at if isinstance(event, WentOn) else AT_ONCE for event in events]
    if change is not None and _given_up(change.queue) - _given_up(before):  # they hold their sessions back no longer
        places.append(AT_ONCE)
    return min(places, default=None)


def _given_up(queue: UserQueue) -> set[str]:
    return {window.id for window in queue.windows if window.state in GIVEN_UP}
