"""Finds and reads messages of the conversation record, in rows of `turns` and `messages`.

Jobs on a connection. The keys of all candidates are sorted first, without their texts; texts are read for one page
only, up to a limit of bytes.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from memory.adapters import pages
from memory.adapters.recorded_rules import (
    EXAMINED_BYTES_MAX,
    TITLE_BYTES_MAX,
    TITLE_MESSAGES,
    UNITS_MAX,
    admits,
    read_cursor,
    title_of,
    write_cursor,
)
from memory.adapters.sql.turns_rows import TURN_COLUMNS, turn_of
from memory.adapters.turn_texts import to_bytes, to_text
from memory.model import MessageDirection, MessageFilter, Party, PartyType, RecordedMessage, Session, Visibility
from memory.model.recorded import ADDED_SEQ, ANSWER_ORDINAL, TOOLS_ORDINAL, Position, messages_of_turn

MESSAGE_COLUMNS = (
    "id, conversation_id, source_type, source, target_type, target, direction, content, at, trace_id, project_id, "
    "turn_id, visibility, seq, ordinal, position"
)

# One row per part of a turn or added message. A part "said" holds several messages, up to `TOOLS_ORDINAL`.
_KEYS = f"""
SELECT at, seq, ordinal, part, row, size FROM (
    SELECT said_at AS at, seq, {TOOLS_ORDINAL - 1} AS ordinal, 'said' AS part, seq AS row, length(messages) AS size
    FROM turns WHERE TURNS
    UNION ALL
    SELECT coalesce(answered_at, said_at), seq, {ANSWER_ORDINAL}, 'answer', seq, length(answer)
    FROM turns WHERE TURNS AND length(answer) > 0
    UNION ALL
    SELECT at, seq, iif(seq = {ADDED_SEQ}, position, ordinal), 'message', position, length(content)
    FROM messages WHERE MESSAGES
)
WHERE (at, seq, ordinal) > (:after_at, :after_seq, :after_ordinal)
ORDER BY at, seq, ordinal LIMIT {UNITS_MAX}
"""  # noqa: S608  # our own constants


@dataclass(frozen=True, slots=True)
class StoredPart:
    """A part of a turn, or a row of `messages`, without its text. `last`: the position of its last message."""

    last: Position
    part: str
    row: int
    size: int


def page(
    connection: sqlite3.Connection,
    *,
    where: MessageFilter,
    limit: int,
    cursor: str,
    bytes_max: int = EXAMINED_BYTES_MAX,
) -> tuple[list[RecordedMessage], str]:
    """The messages and the next cursor. At least one part is examined, whatever its size."""
    after = read_cursor(cursor)
    units = _units(connection, where, after)
    found: list[RecordedMessage] = []
    examined, last = 0, after
    for unit in units:
        if examined and examined + unit.size > bytes_max:
            return found, write_cursor(last)
        examined += unit.size
        for message in _messages_in(connection, unit):
            if message.position <= after or not admits(where, message):
                continue
            if len(found) == limit:
                return found, write_cursor(found[-1].position)
            found.append(message)
        last = unit.last
    return found, write_cursor(last) if len(units) == UNITS_MAX else ""


def _units(connection: sqlite3.Connection, where: MessageFilter, after: Position) -> list[StoredPart]:
    of_turns, of_messages = ["user_id = :user"], ["user_id = :user"]
    if where.conversation_id:
        of_turns.append("session_id = :conversation")
        of_messages.append("conversation_id = :conversation")
    if where.trace_id:
        of_turns.append("trace_id = :trace")
        of_messages.append("trace_id = :trace")
    if where.agent_id and not where.with_shared:
        of_turns.append("agent_id = :agent")
    statement = _KEYS.replace("TURNS", " AND ".join(of_turns)).replace("MESSAGES", " AND ".join(of_messages))
    values = {
        "user": where.user_id,
        "conversation": where.conversation_id,
        "trace": to_bytes(where.trace_id),
        "agent": where.agent_id,
        "after_at": after[0],
        "after_seq": after[1],
        "after_ordinal": after[2],
    }
    rows = connection.execute(statement, values).fetchall()
    return [StoredPart((at, seq, ordinal), part, row, size) for at, seq, ordinal, part, row, size in rows]


def _messages_in(connection: sqlite3.Connection, unit: StoredPart) -> list[RecordedMessage]:
    if unit.part == "message":
        row = connection.execute(
            f"SELECT {MESSAGE_COLUMNS} FROM messages WHERE position = ?",  # noqa: S608  # our own constant
            (unit.row,),
        ).fetchone()
        return [message_of(row)]
    turn = connection.execute(f"SELECT {TURN_COLUMNS} FROM turns WHERE seq = ?", (unit.row,)).fetchone()  # noqa: S608
    is_answer = unit.part == "answer"
    return [m for m in messages_of_turn(turn_of(turn), seq=unit.row) if (m.ordinal == ANSWER_ORDINAL) == is_answer]


def message_of(row: tuple[Any, ...]) -> RecordedMessage:
    """The message in a row of `MESSAGE_COLUMNS`."""
    message_id, conversation, source_type, source, target_type, target, direction, content, at, trace, *rest = row
    project, turn_id, visibility, seq, ordinal, position = rest
    return RecordedMessage(
        id=message_id,
        conversation_id=conversation,
        source=Party(PartyType(source_type), to_text(source)),
        target=Party(PartyType(target_type), to_text(target)),
        direction=MessageDirection(direction),
        content=to_text(content),
        at=at,
        trace_id=to_text(trace),
        project_id=project,
        turn_id=turn_id,
        visibility=Visibility(visibility),
        seq=seq,
        ordinal=position if seq == ADDED_SEQ else ordinal,
    )


def message(connection: sqlite3.Connection, *, user_id: str, message_id: str) -> RecordedMessage | None:
    """A row of `messages` by the message's id."""
    row = connection.execute(
        f"SELECT {MESSAGE_COLUMNS} FROM messages WHERE user_id = ? AND id = ?",  # noqa: S608  # our own constant
        (user_id, message_id),
    ).fetchone()
    return None if row is None else message_of(row)


def part(connection: sqlite3.Connection, *, user_id: str, turn_id: str, ordinal: int) -> RecordedMessage | None:
    """A message that is part of a turn."""
    row = connection.execute(
        f"SELECT {TURN_COLUMNS} FROM turns WHERE user_id = ? AND id = ?",  # noqa: S608  # our own constant
        (user_id, turn_id),
    ).fetchone()
    parts = [] if row is None else messages_of_turn(turn_of(row), seq=row[0])
    return next((message for message in parts if message.ordinal == ordinal), None)


# Sessions

_SESSIONS = """
SELECT session_id, min(said_at), max(max(said_at, coalesce(answered_at, said_at))), count(*), 0,
    json_group_array(DISTINCT agent_id), '[]', sum(status = 'opened'), sum(stage IN ('open', 'ready', 'window'))
FROM turns WHERE user_id = :user AND (:session IS NULL OR session_id = :session) GROUP BY session_id
UNION ALL
SELECT conversation_id, min(at), max(at), 0, sum(turn_id = ''),
    json_group_array(DISTINCT iif(source_type = 'agent', CAST(source AS TEXT), '')),
    json_group_array(DISTINCT iif(target_type = 'agent', CAST(target AS TEXT), '')), 0, 0
FROM messages WHERE user_id = :user AND (:session IS NULL OR conversation_id = :session) GROUP BY conversation_id
"""


def sessions(connection: sqlite3.Connection, *, user_id: str, limit: int, cursor: str) -> tuple[list[Session], str]:
    """One page, the latest active first. The cost grows with the number of the user's turns, not with their texts."""
    found = _sessions(connection, user_id, None)
    shown, next_cursor = pages.cut([(one.last_at, one.id) for one in found.values()], limit=limit, cursor=cursor)
    return [_titled(connection, user_id, found[session_id]) for _, session_id in shown], next_cursor


def session(connection: sqlite3.Connection, *, user_id: str, conversation_id: str) -> Session | None:
    found = _sessions(connection, user_id, conversation_id).get(conversation_id)
    return None if found is None else _titled(connection, user_id, found)


def _sessions(connection: sqlite3.Connection, user_id: str, only: str | None) -> Mapping[str, Session]:
    found: dict[str, Session] = {}
    for row in connection.execute(_SESSIONS, {"user": user_id, "session": only}):
        session_id, first_at, last_at, turns, added, sources, targets, opened, unlearnt = row
        agents = {*json.loads(sources), *json.loads(targets)} - {""}
        known = found.get(session_id)
        found[session_id] = Session(
            id=session_id,
            first_at=first_at if known is None else min(first_at, known.first_at),
            last_at=last_at if known is None else max(last_at, known.last_at),
            turns=turns if known is None else turns + known.turns,
            messages_added=added if known is None else added + known.messages_added,
            agent_ids=tuple(sorted(agents if known is None else agents | set(known.agent_ids))),
            is_answering=bool(opened) or (known is not None and known.is_answering),
            unlearnt_turns=unlearnt if known is None else unlearnt + known.unlearnt_turns,
        )
    return found


def _titled(connection: sqlite3.Connection, user_id: str, session: Session) -> Session:
    where = MessageFilter(user_id, session.id)
    messages, _ = page(connection, where=where, limit=TITLE_MESSAGES, cursor="", bytes_max=TITLE_BYTES_MAX)
    return replace(session, title=title_of(messages))


def turn_ids(connection: sqlite3.Connection, *, user_id: str, conversation_id: str) -> list[str]:
    rows = connection.execute(
        "SELECT id FROM turns WHERE user_id = ? AND session_id = ? ORDER BY seq", (user_id, conversation_id)
    )
    return [turn_id for (turn_id,) in rows]


def receipt_ids(
    connection: sqlite3.Connection, *, user_id: str, conversation_id: str, limit: int
) -> list[tuple[str, str]]:
    rows = connection.execute(
        "SELECT id, receipt_id FROM turns WHERE user_id = ? AND session_id = ? AND length(receipt_id) > 0 "
        "ORDER BY seq DESC LIMIT ?",
        (user_id, conversation_id, limit),
    ).fetchall()
    return [(turn_id, to_text(receipt_id)) for turn_id, receipt_id in reversed(rows)]


def of_receipt(connection: sqlite3.Connection, *, user_id: str, receipt_id: str) -> list[RecordedMessage]:
    row = connection.execute(
        f"SELECT {TURN_COLUMNS} FROM turns WHERE user_id = ? AND receipt_id = ? "  # noqa: S608  # our own constant
        "ORDER BY seq DESC LIMIT 1",
        (user_id, to_bytes(receipt_id)),
    ).fetchone()
    return [] if row is None else messages_of_turn(turn_of(row), seq=row[0])
