"""Changes messages of the conversation record: adds, deletes, shortens, expires.

Jobs on a connection, each within one transaction. A turn that is not learnt yet is withdrawn from learning before any
of its text goes, so that whoever holds a lease on it gets a `Conflict`.
"""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Callable, Collection, Sequence

from memory.adapters.recorded_rules import tool_traffic, with_rewritten
from memory.adapters.sql import recorded_rows, turns_upkeep
from memory.adapters.sql.removed_words import forget_removed
from memory.adapters.sql.session_summaries import let_rest
from memory.adapters.sql.turns_rows import TURN_COLUMNS, turn_of
from memory.adapters.turn_texts import to_bytes, to_text
from memory.model import (
    RecordedMessage,
    ToolMessage,
    TurnStatus,
)
from memory.model.recorded import (
    ADDED_SEQ,
    ANSWER_ORDINAL,
    messages_of_turn,
    part_of,
)

UNLEARNT = ("open", "ready", "window")

_INSERT = """
INSERT OR IGNORE INTO messages (id, user_id, project_id, conversation_id, turn_id, at, added_at, seq, ordinal, trace_id,
    source_type, source, target_type, target, direction, visibility, content)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""


def add(connection: sqlite3.Connection, *, user_id: str, messages: Sequence[RecordedMessage], now: float) -> None:
    for message in messages:
        connection.execute(
            _INSERT,
            (
                message.id,
                user_id,
                message.project_id,
                message.conversation_id,
                message.turn_id,
                message.at,
                now,
                message.seq,
                message.ordinal,
                to_bytes(message.trace_id),
                message.source.type.value,
                to_bytes(message.source.name),
                message.target.type.value,
                to_bytes(message.target.name),
                message.direction.value,
                message.visibility.value,
                to_bytes(message.content),
            ),
        )


def add_tool_messages(
    connection: sqlite3.Connection, *, turn_id: str, messages: Sequence[ToolMessage], at: float, now: float
) -> None:
    row = connection.execute(f"SELECT {TURN_COLUMNS} FROM turns WHERE id = ?", (turn_id,)).fetchone()  # noqa: S608
    if row is None:
        return
    turn = turn_of(row)
    known = connection.execute("SELECT count(*) FROM messages WHERE turn_id = ?", (turn_id,)).fetchone()[0]
    recorded = tool_traffic(turn, messages, seq=row[0], known=known, at=at)
    add(connection, user_id=turn.scope.user_id, messages=recorded, now=now)


def delete_turns(connection: sqlite3.Connection, *, user_id: str, turn_ids: Collection[str]) -> int:
    """With tool traffic, receipts and links. Ids of other users' turns are ignored."""
    if not turn_ids:
        return 0
    turns_upkeep.withdraw(connection, user_id, "", math.inf, only=turn_ids, spare=())
    values = (user_id, json.dumps(list(turn_ids)))
    named = "SELECT value FROM json_each(?2)"
    connection.execute(
        f"""
        DELETE FROM receipts WHERE user_id = ?1 AND id IN (
            SELECT CAST(receipt_id AS TEXT) FROM turns
            WHERE user_id = ?1 AND id IN ({named}) AND length(receipt_id) > 0
        )
        """,  # noqa: S608  # our own constant
        values,
    )
    connection.execute(f"DELETE FROM chains WHERE user_id = ?1 AND turn_id IN ({named})", values)  # noqa: S608
    connection.execute(f"DELETE FROM messages WHERE user_id = ?1 AND turn_id IN ({named})", values)  # noqa: S608
    return connection.execute(f"DELETE FROM turns WHERE user_id = ?1 AND id IN ({named})", values).rowcount  # noqa: S608


def delete_added(connection: sqlite3.Connection, *, user_id: str, conversation_id: str) -> int:
    return connection.execute(
        "DELETE FROM messages WHERE user_id = ? AND conversation_id = ? AND turn_id = ''", (user_id, conversation_id)
    ).rowcount


def erase(connection: sqlite3.Connection, *, user_id: str, project_id: str, before: float, limit: int) -> int:
    """Up to `limit` turns, and added messages. Tool traffic goes with its turn."""
    values = (user_id, project_id, before, limit)
    rows = connection.execute(
        "SELECT id FROM turns WHERE user_id = ?1 AND ?2 IN ('', project_id) AND opened_at < ?3 LIMIT ?4", values
    ).fetchall()
    turn_ids = [turn_id for (turn_id,) in rows]
    turns = delete_turns(connection, user_id=user_id, turn_ids=turn_ids)
    forget_removed(connection, user_id=user_id, turn_ids=turn_ids)  # the caller has erased all rows of that scope
    added = connection.execute(
        "DELETE FROM messages WHERE position IN (SELECT position FROM messages "
        "WHERE user_id = ?1 AND ?2 IN ('', project_id) AND added_at < ?3 AND turn_id = '' LIMIT ?4)",
        values,
    ).rowcount
    return turns + added


def delete_messages(
    connection: sqlite3.Connection, *, user_id: str, message_ids: Collection[str], only_learnt: bool
) -> int:
    """`only_learnt`: leave turns alone that are not learnt yet, instead of withdrawing them."""
    return sum(_deleted(connection, user_id, message_id, only_learnt=only_learnt) for message_id in message_ids)


def _deleted(connection: sqlite3.Connection, user_id: str, message_id: str, *, only_learnt: bool) -> bool:
    part = part_of(message_id)
    if part is not None:
        return _part_deleted(connection, user_id, *part, only_learnt=only_learnt)
    found = recorded_rows.message(connection, user_id=user_id, message_id=message_id)
    if found is None or (only_learnt and found.turn_id and _is_unlearnt(connection, found.turn_id)):
        return False
    connection.execute("DELETE FROM messages WHERE user_id = ? AND id = ?", (user_id, message_id))
    return True


def _part_deleted(
    connection: sqlite3.Connection, user_id: str, turn_id: str, ordinal: int, *, only_learnt: bool
) -> bool:
    found = recorded_rows.part(connection, user_id=user_id, turn_id=turn_id, ordinal=ordinal)
    if found is None:
        return False
    if _is_unlearnt(connection, turn_id):
        if only_learnt:
            return False
        turns_upkeep.withdraw(connection, user_id, "", math.inf, only=[turn_id], spare=())
    _rewrite(connection, turn_id, ordinal, lambda _: "")
    if _is_empty(connection, turn_id):
        delete_turns(connection, user_id=user_id, turn_ids=[turn_id])
    return True


def _is_empty(connection: sqlite3.Connection, turn_id: str) -> bool:
    """Whether nothing is left of a turn that has ended."""
    row = connection.execute(f"SELECT {TURN_COLUMNS} FROM turns WHERE id = ?", (turn_id,)).fetchone()  # noqa: S608
    turn = turn_of(row)
    has_tools = connection.execute("SELECT 1 FROM messages WHERE turn_id = ? LIMIT 1", (turn_id,)).fetchone()
    is_ended = turn.status is not TurnStatus.OPENED
    return is_ended and has_tools is None and not messages_of_turn(turn, seq=row[0])


def _rewrite(connection: sqlite3.Connection, turn_id: str, ordinal: int, rewrite: Callable[[str], str]) -> None:
    """Change the text of one part of a turn; without a text, a user message loses its role as well."""
    messages, answer = connection.execute("SELECT messages, answer FROM turns WHERE id = ?", (turn_id,)).fetchone()
    if ordinal == ANSWER_ORDINAL:
        text = to_bytes(rewrite(to_text(answer)))
        connection.execute("UPDATE turns SET answer = ? WHERE id = ?", (text, turn_id))
        return
    written = with_rewritten(messages, ordinal, rewrite)
    connection.execute("UPDATE turns SET messages = ? WHERE id = ?", (written, turn_id))


def _is_unlearnt(connection: sqlite3.Connection, turn_id: str) -> bool:
    row = connection.execute("SELECT stage FROM turns WHERE id = ?", (turn_id,)).fetchone()
    return row is not None and row[0] in UNLEARNT


def rewrite_outputs(
    connection: sqlite3.Connection, *, user_id: str, message_ids: Collection[str], rewrite: Callable[[str], str]
) -> int:
    """Change the texts of answers and of rows of `messages`; turns not learnt yet are left alone. Returns how many."""
    changed = 0
    for message_id in message_ids:
        part = part_of(message_id)
        if part is not None:
            found = recorded_rows.part(connection, user_id=user_id, turn_id=part[0], ordinal=part[1])
        else:
            found = recorded_rows.message(connection, user_id=user_id, message_id=message_id)
        if found is None or rewrite(found.content) == found.content:
            continue
        if found.turn_id and _is_unlearnt(connection, found.turn_id):
            continue
        if part is not None:
            _rewrite(connection, part[0], part[1], rewrite)
        else:
            connection.execute(
                "UPDATE messages SET content = ? WHERE user_id = ? AND id = ?",
                (to_bytes(rewrite(found.content)), user_id, message_id),
            )
        changed += 1
    return changed


def expire(connection: sqlite3.Connection, *, before: float, limit: int, now: float) -> int:
    """Of all users, the oldest first."""
    rows = connection.execute(
        "SELECT user_id, id, session_id FROM turns WHERE opened_at < ? AND stage NOT IN ('open', 'ready', 'window') "
        "ORDER BY opened_at LIMIT ?",
        (before, limit),
    ).fetchall()
    by_user: dict[str, list[str]] = {}
    for user_id, turn_id, _ in rows:
        by_user.setdefault(user_id, []).append(turn_id)
    turns = sum(delete_turns(connection, user_id=user, turn_ids=ids) for user, ids in by_user.items())
    let_rest(connection, sessions={(user_id, session_id) for user_id, _, session_id in rows}, now=now)
    added = connection.execute(
        "DELETE FROM messages WHERE position IN ("
        "SELECT position FROM messages WHERE added_at < ? AND seq = ? ORDER BY added_at LIMIT ?)",
        (before, ADDED_SEQ, limit),
    ).rowcount
    return turns + added
