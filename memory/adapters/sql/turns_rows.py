"""Converts turns to rows and back. No queries, and no decisions about learning.

Oversized content is truncated, never refused: the beginning and the end of what the user said are worth keeping.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from memory.model import Message, Scope, Turn, TurnStatus

MESSAGES_BYTES_MAX = 1 << 20  # of one turn's user messages in UTF-8: anything larger is pasted text
MESSAGES_MAX = 1_000  # of one turn: for clients that never send an assistant message
ANSWER_BYTES_MAX = 1 << 20  # as much as the observer keeps of a reply


Row = TypeVar("Row")


def messages_of(stored: bytes) -> tuple[Message, ...]:
    return tuple(Message(*fields) for fields in json.loads(to_text(stored)))


def to_bytes(text: str) -> bytes:
    """UTF-8 that preserves lone surrogates, which JSON bodies may contain."""
    return text.encode("utf-8", "surrogatepass")


def to_text(stored: bytes) -> str:
    return stored.decode("utf-8", "surrogatepass")


def cut(text: bytes, bytes_max: int) -> bytes:
    """At most `bytes_max` bytes, ending with a whole character."""
    if len(text) <= bytes_max:
        return text
    end = bytes_max
    while text[end] & 0xC0 == 0x80:  # a continuation byte: the character starts before it
        end -= 1
    return text[:end]


def messages_to_bytes(messages: Sequence[Message]) -> bytes:
    """The newest messages that fit completely, then the beginning of the next one."""
    kept: list[tuple[str, str, bool]] = []
    room = MESSAGES_BYTES_MAX
    for message in reversed(messages[-MESSAGES_MAX:]):
        content = to_bytes(message.content)
        kept.append((message.role, to_text(cut(content, room)), message.is_tool_traffic))
        room -= len(content)
        if room <= 0:
            break
    return to_bytes(json.dumps(kept[::-1], ensure_ascii=False, separators=(",", ":")))


def fitting(rows: Iterable[Row], size_of: Callable[[Row], int], *, bytes_max: int) -> Iterator[Row]:
    """The rows until their bytes are spent; the first one in any case."""
    for number, row in enumerate(rows):
        bytes_max -= size_of(row)
        if number and bytes_max < 0:
            return
        yield row


def values_of(
    turn: Turn, *, opened_at: float, finished_at: float | None, stage: str, owner: str
) -> dict[str, str | bytes | float | None]:
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
