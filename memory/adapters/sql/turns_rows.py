"""Converts turns to rows and back. No queries, and no decisions about learning."""

from __future__ import annotations

from typing import Any

from memory.adapters.turn_texts import ANSWER_BYTES_MAX, cut, messages_of, messages_to_bytes, to_bytes, to_text
from memory.model import Scope, Turn, TurnStatus


def values_of(
    turn: Turn, *, opened_at: float, finished_at: float | None, stage: str, owner: str
) -> dict[str, str | bytes | float | None]:
    """The values of a row of `turns`."""
    scope = turn.scope
    return {
        "id": turn.id,
        "user_id": scope.user_id,
        "project_id": scope.project_id,
        "session_id": scope.session_id,
        "agent_id": scope.agent_id,
        "trace_id": to_bytes(turn.trace_id),
        "receipt_id": to_bytes(turn.receipt_id),
        "model": to_bytes(turn.model),
        "said_at": turn.at,
        "opened_at": opened_at,
        "finished_at": finished_at,
        "answered_at": turn.answered_at,
        "status": turn.status.value,
        "stage": stage,
        "owner": owner,
        "messages": messages_to_bytes(turn.messages),
        "utc_offset": turn.utc_offset,
        "answer": cut(to_bytes(turn.answer), ANSWER_BYTES_MAX),
    }


def turn_of(row: tuple[Any, ...]) -> Turn:
    """The turn in a row: see any statement that reads turns."""
    _, turn_id, user, project, session, agent, said_at, messages, status, answer, answered_at, utc_offset, *texts = row
    model, trace_id, receipt_id = (to_text(text) for text in texts)
    return Turn(
        id=str(turn_id),
        scope=Scope(str(user), str(project), str(session), str(agent)),
        at=float(said_at),
        messages=messages_of(messages),
        status=TurnStatus(status),
        answer=to_text(answer),
        answered_at=answered_at,
        model=model,
        trace_id=trace_id,
        receipt_id=receipt_id,
        utc_offset=utc_offset,
    )
