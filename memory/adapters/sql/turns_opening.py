"""Inserts a turn at the stage for its status: a job on a connection, see `turns_queue` for the rules."""

from __future__ import annotations

import sqlite3

from memory.adapters.sql import known_exchanges
from memory.adapters.sql.turns_queue import make_ready
from memory.adapters.sql.turns_rows import INSERT_TURN, values_of
from memory.adapters.turn_rules import stage_after
from memory.model import Turn, TurnStatus


def insert_turn(connection: sqlite3.Connection, *, turn: Turn, now: float, owner: str, stage: str = "") -> None:
    """A known id changes nothing. `stage`: "" for that which follows from the turn's status."""
    is_open = turn.status is TurnStatus.OPENED
    stage = stage or ("open" if is_open else stage_after(turn.status))
    finished_at = None if is_open else now
    values = values_of(turn, opened_at=now, finished_at=finished_at, stage=stage, owner=owner)
    inserted = connection.execute(INSERT_TURN, values)
    if inserted.rowcount != 1:
        return
    seq = inserted.lastrowid
    known_exchanges.remember(connection, turn)
    if stage == "ready":
        assert seq is not None  # an insert that took place has a rowid
        make_ready(connection, seq, turn.scope.user_id, turn.scope.session_id, now)
