"""Abandons and resumes turns of a tree. Jobs on a connection, inside the transaction that opens the turn.

An abandoned turn leaves the queue; one that was learnt, or was being learnt, is unsettled until its memories are
withdrawn. Resuming is the reverse.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Sequence

from memory.adapters.sql.branch_positions import BranchNode
from memory.adapters.sql.turns_queue import make_ready
from memory.adapters.sql.turns_upkeep import take_out
from memory.adapters.tree_rules import OVERLAP_SECONDS_MIN, SHIFT_TURNS_MAX, stage_when_resumed
from memory.model import BranchShift, BranchTurn, Turn, TurnStatus


def is_extension(connection: sqlite3.Connection, parent: BranchNode) -> bool:
    """Whether a new turn after `parent` leaves the rest of its tree as it is."""
    newer = connection.execute(
        "SELECT 1 FROM turn_branches WHERE tree_id = ? AND is_abandoned = 0 AND position > ?",
        (parent.tree_id, parent.position),
    ).fetchone()
    beside = connection.execute(
        "SELECT 1 FROM turn_branches WHERE tree_id = ? AND is_concurrent LIMIT 1", (parent.tree_id,)
    ).fetchone()
    return not parent.is_abandoned and newer is None and beside is None


def under_way(connection: sqlite3.Connection, turn: Turn, parent_id: str, keys: Sequence[str]) -> list[str]:
    """Turns after the same parent that were being answered when this one came, and that it does not repeat.

    Nobody chose between them yet: two agents, or a client that asks for a title meanwhile.
    """
    rows = connection.execute(
        """
        SELECT id FROM turn_branches JOIN turns ON id = turn_id
        WHERE parent_id = ?1 AND turns.user_id = ?2 AND id != ?3 AND is_abandoned = 0
          AND (status = 'opened' OR coalesce(answered_at, finished_at) > ?4)
          AND key NOT IN (SELECT value FROM json_each(?5))
        """,
        (parent_id, turn.scope.user_id, turn.id, turn.at + OVERLAP_SECONDS_MIN, json.dumps(list(keys))),
    ).fetchall()
    return [turn_id for (turn_id,) in rows]


def answered(connection: sqlite3.Connection, turn_id: str, user_id: str, *, at: float) -> None:
    """Abandon a turn beside the path if its answer was complete when the one that stands there came, after all."""
    later = connection.execute(
        """
        SELECT 1 FROM turn_branches AS own
        JOIN turn_branches AS other ON other.parent_id = own.parent_id AND other.tree_id = own.tree_id
        JOIN turns ON turns.id = other.turn_id
        WHERE own.turn_id = ?1 AND own.is_concurrent AND NOT other.is_abandoned AND other.parent_id != ''
          AND other.position > own.position AND said_at + ?2 >= ?3
        """,
        (turn_id, OVERLAP_SECONDS_MIN, at),
    ).fetchone()
    if later is not None:
        _abandon(connection, user_id, [turn_id])
        connection.execute("UPDATE turn_branches SET is_concurrent = 0 WHERE turn_id = ?", (turn_id,))


def make_active(
    connection: sqlite3.Connection, turn: Turn, tree_id: str, *, now: float, beside: Collection[str] = ()
) -> None:
    """Make the path to this turn the active one of its tree. The cost depends on the length of both paths.

    `beside`: turns off the path that stay active.
    """
    turn_id, user_id = turn.id, turn.scope.user_id
    path = {
        row[0]
        for row in connection.execute(
            """
            WITH RECURSIVE path (id) AS (
                SELECT ?1 UNION
                SELECT parent_id FROM turn_branches, path WHERE turn_id = path.id AND user_id = ?2 AND parent_id != ''
            )
            SELECT id FROM path
            """,
            (turn_id, user_id),
        )
    }
    active = connection.execute(
        "SELECT turn_id FROM turn_branches WHERE tree_id = ? AND is_abandoned = 0 AND user_id = ? ORDER BY position",
        (tree_id, user_id),
    ).fetchall()
    left = connection.execute(
        "SELECT turn_id FROM turn_branches WHERE turn_id IN (SELECT value FROM json_each(?)) AND is_abandoned"
        " ORDER BY position",
        (json.dumps(sorted(path)),),
    ).fetchall()
    _abandon(connection, user_id, [one for (one,) in active if one not in path and one not in beside])
    _resume(connection, user_id, [one for (one,) in left], now=now)
    connection.execute("UPDATE turn_branches SET is_concurrent = 0 WHERE tree_id = ? AND is_concurrent", (tree_id,))
    if beside:
        connection.execute(
            "UPDATE turn_branches SET is_concurrent = 1 WHERE turn_id IN (SELECT value FROM json_each(?))",
            (json.dumps(sorted(beside)),),
        )


def _abandon(connection: sqlite3.Connection, user_id: str, turn_ids: Sequence[str]) -> None:
    rows = connection.execute(
        """
        SELECT seq, session_id, stage, window_id, length(messages) + length(answer), id FROM turns
        WHERE id IN (SELECT value FROM json_each(?)) AND user_id = ?
        """,
        (json.dumps(list(turn_ids)), user_id),
    ).fetchall()
    take_out(connection, user_id, [row[:5] for row in rows if row[2] in ("open", "ready", "window")], stage="abandoned")
    connection.executemany(
        "UPDATE turns SET stage = 'abandoned' WHERE seq = ?", [(row[0],) for row in rows if row[2] == "learnt"]
    )
    _mark(connection, turn_ids, is_abandoned=True)
    connection.executemany(
        "UPDATE turn_branches SET reached = ?1, is_settled = 0 WHERE turn_id = ?2",
        [(row[2], row[5]) for row in rows if row[2] in ("window", "learnt")],
    )


def _resume(connection: sqlite3.Connection, user_id: str, turn_ids: Sequence[str], *, now: float) -> None:
    rows = connection.execute(
        """
        SELECT seq, turns.session_id, status, reached, id FROM turns JOIN turn_branches ON turn_id = id
        WHERE id IN (SELECT value FROM json_each(?)) AND turns.user_id = ? AND stage = 'abandoned'
        """,
        (json.dumps(list(turn_ids)), user_id),
    ).fetchall()
    _mark(connection, turn_ids, is_abandoned=False)
    for seq, _, status, reached, turn_id in rows:
        stage = stage_when_resumed(TurnStatus(status), reached)
        connection.execute("UPDATE turns SET stage = ? WHERE seq = ?", (stage, seq))
        if reached:
            connection.execute("UPDATE turn_branches SET is_settled = 0 WHERE turn_id = ?", (turn_id,))
    for seq, session_id, status, reached, _ in rows:
        if stage_when_resumed(TurnStatus(status), reached) == "ready":
            make_ready(connection, seq, user_id, session_id, now)


def _mark(connection: sqlite3.Connection, turn_ids: Collection[str], *, is_abandoned: bool) -> None:
    connection.execute(
        "UPDATE turn_branches SET is_abandoned = ? WHERE turn_id IN (SELECT value FROM json_each(?))",
        (is_abandoned, json.dumps(list(turn_ids))),
    )


def next_shift(connection: sqlite3.Connection, *, without: Collection[str]) -> str | None:
    row = connection.execute(
        "SELECT user_id FROM turn_branches WHERE is_settled = 0 AND user_id NOT IN (SELECT value FROM json_each(?))"
        " LIMIT 1",
        (json.dumps(sorted(without)),),
    ).fetchone()
    return None if row is None else str(row[0])


def shift_of(connection: sqlite3.Connection, user_id: str) -> BranchShift:
    rows = connection.execute(
        """
        SELECT turn_id, parent_id, said_at, is_abandoned FROM turn_branches JOIN turns ON id = turn_id
        WHERE is_settled = 0 AND turn_branches.user_id = ? ORDER BY position LIMIT ?
        """,
        (user_id, SHIFT_TURNS_MAX),
    ).fetchall()
    turns = [(BranchTurn(*row[:3]), row[3]) for row in rows]
    return BranchShift(
        tuple(turn for turn, is_abandoned in turns if is_abandoned),
        tuple(turn for turn, is_abandoned in turns if not is_abandoned),
    )


def settle(connection: sqlite3.Connection, user_id: str, shift: BranchShift) -> None:
    for turns, is_abandoned in ((shift.abandoned, True), (shift.resumed, False)):
        connection.execute(
            """
            UPDATE turn_branches SET is_settled = 1, reached = iif(is_abandoned, reached, '')
            WHERE is_settled = 0 AND user_id = ? AND is_abandoned = ?
              AND turn_id IN (SELECT value FROM json_each(?))
            """,
            (user_id, is_abandoned, json.dumps([turn.turn_id for turn in turns])),
        )
    connection.execute(  # a turn that was deleted meanwhile has nothing left to settle
        """
        UPDATE turn_branches SET is_settled = 1
        WHERE is_settled = 0 AND user_id = ? AND turn_id NOT IN (SELECT id FROM turns WHERE user_id = ?)
        """,
        (user_id, user_id),
    )
