"""Abandons and resumes turns of a tree. Jobs on a connection, inside the transaction that opens the turn.

An abandoned turn leaves the queue; one that was learnt, or was being learnt, is unsettled until its memories are
withdrawn. Resuming is the reverse.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from memory.adapters.sql import turn_effects
from memory.adapters.sql.branch_positions import BranchNode
from memory.adapters.sql.statements import Connection, listed, statements
from memory.adapters.sql.turns_queue import make_ready
from memory.adapters.sql.turns_upkeep import take_out
from memory.adapters.turn_rules import TAUGHT
from memory.model import BranchShift, BranchTurn, Turn, TurnStatus

SQL = statements("branch_shifts")

SHIFT_TURNS_MAX = 500  # of one kind, settled at a time
OVERLAP_SECONDS_MIN = 0.05  # of two requests at the same time: a client may send the next before we see an answer's end


def is_extension(connection: Connection, parent: BranchNode) -> bool:
    """Whether a new turn after `parent` leaves the rest of its tree as it is."""
    newer = SQL.newer_on_path(connection, tree_id=parent.tree_id, position=parent.position).fetchone()
    beside = SQL.concurrent_in_tree(connection, tree_id=parent.tree_id).fetchone()
    return not parent.is_abandoned and newer is None and beside is None


def under_way(connection: Connection, turn: Turn, parent_id: str, keys: Sequence[str]) -> list[str]:
    """Turns after the same parent that were being answered when this one came, and that it does not repeat.

    Nobody chose between them yet: two agents, or a client that asks for a title meanwhile.
    """
    rows = SQL.unanswered_siblings(
        connection,
        parent_id=parent_id,
        user_id=turn.scope.user_id,
        id=turn.id,
        at=turn.at + OVERLAP_SECONDS_MIN,
        keys=listed(keys),
    ).fetchall()
    return [turn_id for (turn_id,) in rows]


def answered(connection: Connection, turn_id: str, user_id: str, *, at: float) -> None:
    """Abandon a turn beside the path if its answer was complete when the one that stands there came, after all."""
    later = SQL.later_sibling(connection, turn_id=turn_id, overlap_seconds_min=OVERLAP_SECONDS_MIN, at=at).fetchone()
    if later is not None:
        _abandon(connection, user_id, [turn_id])
        SQL.no_longer_concurrent(connection, turn_id=turn_id)


def make_active(connection: Connection, turn: Turn, tree_id: str, *, now: float, beside: Collection[str] = ()) -> None:
    """Make the path to this turn the active one of its tree. The cost depends on the length of both paths.

    `beside`: turns off the path that stay active.
    """
    turn_id, user_id = turn.id, turn.scope.user_id
    path = {row[0] for row in SQL.path_to(connection, turn_id=turn_id, user_id=user_id)}
    active = SQL.active_in_tree(connection, tree_id=tree_id, user_id=user_id).fetchall()
    left = SQL.abandoned_among(connection, path=listed(sorted(path))).fetchall()
    _abandon(connection, user_id, [one for (one,) in active if one not in path and one not in beside])
    _resume(connection, user_id, [one for (one,) in left], now=now)
    SQL.none_concurrent(connection, tree_id=tree_id)
    if beside:
        SQL.mark_concurrent(connection, beside=listed(sorted(beside)))


def _abandon(connection: Connection, user_id: str, turn_ids: Sequence[str]) -> None:
    rows = SQL.turns_by_id(connection, turn_ids=listed(turn_ids), user_id=user_id).fetchall()
    take_out(connection, user_id, [row[:5] for row in rows if row[2] in ("open", "ready", "window")], stage="abandoned")
    SQL.abandon_learnt.many(connection, [{"seq": row[0]} for row in rows if row[2] == "learnt"])
    turn_effects.sessions_changed(connection, user_id, {row[1] for row in rows if row[2] == "learnt"})
    _mark(connection, turn_ids, is_abandoned=True)
    SQL.unsettle_abandoned.many(
        connection, [{"reached": row[2], "turn_id": row[5]} for row in rows if row[2] in ("window", "learnt")]
    )


def _resume(connection: Connection, user_id: str, turn_ids: Sequence[str], *, now: float) -> None:
    rows = SQL.abandoned_turns(connection, turn_ids=listed(turn_ids), user_id=user_id).fetchall()
    _mark(connection, turn_ids, is_abandoned=False)
    turn_effects.sessions_changed(connection, user_id, {session_id for _, session_id, *_ in rows})
    for seq, _, status, reached, turn_id in rows:
        stage = _stage_when_resumed(TurnStatus(status), reached)
        SQL.set_stage(connection, stage=stage, seq=seq)
        if reached:
            SQL.unsettle(connection, turn_id=turn_id)
    for seq, session_id, status, reached, _ in rows:
        if _stage_when_resumed(TurnStatus(status), reached) == "ready":
            make_ready(connection, seq, user_id, session_id, now)


def _stage_when_resumed(status: TurnStatus, reached: str) -> str:
    """Of a turn that was abandoned: where it was then, or where it would be by now."""
    if reached == "learnt":
        return "learnt"
    if status is TurnStatus.OPENED:
        return "open"
    return "ready" if status in TAUGHT else "nothing"


def _mark(connection: Connection, turn_ids: Collection[str], *, is_abandoned: bool) -> None:
    SQL.mark_abandoned(connection, is_abandoned=is_abandoned, turn_ids=listed(turn_ids))


def next_shift(connection: Connection, *, without: Collection[str] = ()) -> str | None:
    row = SQL.unsettled_user(connection, without=listed(sorted(without))).fetchone()
    return None if row is None else str(row[0])


def shift_of(connection: Connection, user_id: str) -> BranchShift:
    rows = SQL.unsettled_turns(connection, user_id=user_id, shift_turns_max=SHIFT_TURNS_MAX).fetchall()
    turns = [(BranchTurn(*row[:3]), row[3]) for row in rows]
    return BranchShift(
        tuple(turn for turn, is_abandoned in turns if is_abandoned),
        tuple(turn for turn, is_abandoned in turns if not is_abandoned),
    )


def settle(connection: Connection, user_id: str, shift: BranchShift) -> None:
    for turns, is_abandoned in ((shift.abandoned, True), (shift.resumed, False)):
        SQL.settle_turns(
            connection,
            user_id=user_id,
            is_abandoned=is_abandoned,
            turn_ids=listed(turn.turn_id for turn in turns),
        )
    SQL.settle_deleted(connection, user_id=user_id)
