"""Rules of copies of the conversation record that hold on every adapter: what is left of a turn or message. Pure."""

from __future__ import annotations

from dataclasses import replace

from memory.adapters.well_formed import well_formed
from memory.model import Message, RecordedMessage, Scope, Turn, TurnStatus
from memory.model.recorded import ID_OF_TURN


def plain_turn(turn: Turn) -> Turn:
    """For another system: without a receipt, in valid UTF-8; a reply that is being streamed is left out."""
    messages = tuple(Message(one.role, well_formed(one.content), one.is_tool_traffic) for one in turn.messages)
    status = TurnStatus.UNKNOWN if turn.status is TurnStatus.OPENED else turn.status
    return replace(
        turn,
        messages=messages,
        status=status,
        receipt_id="",
        answer=well_formed(turn.answer),
        model=well_formed(turn.model),
        trace_id=well_formed(turn.trace_id),
    )


def plain_message(message: RecordedMessage) -> RecordedMessage:
    return replace(
        message,
        content=well_formed(message.content),
        trace_id=well_formed(message.trace_id),
        source=replace(message.source, name=well_formed(message.source.name)),
        target=replace(message.target, name=well_formed(message.target.name)),
    )


def owned_turn(turn: Turn, user_id: str) -> Turn:
    scope = turn.scope
    return replace(turn, scope=Scope(user_id, scope.project_id, scope.session_id, scope.agent_id), receipt_id="")


def moved_to(message: RecordedMessage, turn_id: str, *, seq: int) -> RecordedMessage:
    """Tool traffic of a turn that has another id, and another place, here."""
    part = message.id.removeprefix(f"{ID_OF_TURN}{message.turn_id}")
    return replace(message, id=f"{ID_OF_TURN}{turn_id}{part}", turn_id=turn_id, seq=seq)
