"""Inserts a turn at the stage for its status: a job on a connection, see `turns_queue` for the rules."""

from __future__ import annotations

from memory.adapters.sql import known_exchanges, turn_effects
from memory.adapters.sql.statements import Connection, statements
from memory.adapters.sql.turns_queue import make_ready
from memory.adapters.sql.turns_rows import values_of
from memory.adapters.turn_rules import stage_after
from memory.model import Turn, TurnStatus

SQL = statements("turns_opening")


def insert_turn(connection: Connection, turn: Turn, *, now: float, owner: str, stage: str = "") -> None:
    """A known id changes nothing. `stage`: "" for that which follows from the turn's status."""
    is_open = turn.status is TurnStatus.OPENED
    stage = stage or ("open" if is_open else stage_after(turn.status))
    finished_at = None if is_open else now
    inserted = SQL.insert_turn(
        connection, **values_of(turn, opened_at=now, finished_at=finished_at, stage=stage, owner=owner)
    ).fetchone()
    if inserted is None:
        return
    (seq,) = inserted
    if finished_at is not None:
        turn_effects.turn_ended(connection, turn.scope.user_id, turn.scope.session_id, at=finished_at)
    known_exchanges.remember(connection, turn)
    if stage == "ready":
        make_ready(connection, seq, turn.scope.user_id, turn.scope.session_id, now)
