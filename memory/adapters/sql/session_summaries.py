"""Summaries of sessions in SQL, in the database of the turn log. `turn_effects` withdraws them when turns change.

A token per session changes with each of these changes, and a summary is stored only if its session's token is still the
one that was read.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from memory.adapters.sql import turn_effects
from memory.adapters.sql.database import OnDatabase, SqlDatabase, reads, writes
from memory.adapters.sql.statements import Connection, listed, statements
from memory.adapters.sql.turns_rows import fitting, messages_of, to_bytes, to_text, turn_of
from memory.model import DueSession, Role, SaidTurn, SessionSummary, StoredSummary, Turn, Vector, WithdrawnSummary

SQL = statements("session_summaries")

SUMMARISED_TURN_BYTES_MAX = 256 << 10  # of one turn; a larger one is a pasted document
SUMMARISED_BYTES_MAX = 512 << 10  # of turns read for one summary: seconds of the trained reader


class SqlSummaries(OnDatabase):
    """`memory.ports.SessionSummaries` and `SummaryQueue` in an open `SqlDatabase`, that of the turn log.

    `origin`: names the model of the vectors; vectors of another origin are not returned.
    """

    def __init__(self, database: SqlDatabase, *, origin: str = "") -> None:
        super().__init__(database)
        self._origin = origin

    @reads
    def of_session(self, connection: Connection, user_id: str, session_id: str) -> SessionSummary | None:
        return SQL.summary_of_session.one(connection, _summary, user_id=user_id, session_id=session_id)

    @reads
    def get(self, connection: Connection, user_id: str, ids: Collection[str]) -> list[SessionSummary]:
        return [_summary(row) for row in SQL.summaries_by_id(connection, user_id=user_id, ids=listed(ids))]

    @reads
    def of_user(self, connection: Connection, user_id: str, *, limit: int) -> list[StoredSummary]:
        rows = SQL.summaries_of_user(connection, user_id=user_id, limit=limit)
        return [
            StoredSummary(_summary(row), _vector(vector) if origin == self._origin else None)
            for *row, vector, origin in rows
        ]

    @writes
    def end(self, connection: Connection, user_id: str, session_id: str) -> None:
        SQL.make_quiet(connection, user_id=user_id, session_id=session_id)

    @reads
    def is_ended(self, connection: Connection, user_id: str, session_id: str) -> bool:
        return not SQL.quiet_since.value(connection, float, user_id=user_id, session_id=session_id)

    @writes
    def leave_out(self, connection: Connection, user_id: str, turn_ids: Collection[str]) -> None:
        left_out = SQL.leave_out_turns.column(connection, user_id=user_id, turn_ids=listed(turn_ids))
        turn_effects.sessions_changed(connection, user_id, set(left_out))

    @writes
    def leave_out_until(
        self,
        connection: Connection,
        user_id: str,
        *,
        project_id: str,
        session_id: str = "",
        until: float,
        spare: Collection[str] = (),
    ) -> None:
        left_out = SQL.leave_out_turns_until.column(
            connection, user_id=user_id, project_id=project_id, session_id=session_id, until=until, spare=listed(spare)
        )
        turn_effects.sessions_changed(connection, user_id, set(left_out))

    @reads
    def said(
        self, connection: Connection, user_id: str, *, project_id: str, until: float, after: int, limit: int
    ) -> list[SaidTurn]:
        """Also of turns that are not learnt yet, and of abandoned ones, which can be resumed."""
        rows = SQL.said_turns(
            connection,
            user_id=user_id,
            project_id=project_id,
            until=until,
            after=after,
            bytes_max=SUMMARISED_TURN_BYTES_MAX,
            limit=limit,
        )
        return [
            SaidTurn(seq, turn_id, tuple(one.content for one in messages_of(messages) if one.role == Role.USER))
            for seq, turn_id, messages in rows
        ]

    @reads
    def withdrawn(self, connection: Connection, user_id: str = "", *, limit: int) -> list[WithdrawnSummary]:
        rows = SQL.withdrawn_summaries(connection, user_id=user_id, limit=limit)
        return [WithdrawnSummary(*row) for row in rows]

    @writes
    def settle(self, connection: Connection, withdrawn: Sequence[WithdrawnSummary]) -> None:
        SQL.delete_withdrawn.many(
            connection,
            [{"user_id": one.user_id, "session_id": one.session_id, "series": one.series} for one in withdrawn],
        )

    @writes
    def erase(self, connection: Connection, user_id: str) -> None:
        SQL.delete_summaries(connection, user_id=user_id)
        SQL.delete_due(connection, user_id=user_id)
        SQL.delete_left_out(connection, user_id=user_id)
        SQL.delete_all_withdrawn(connection, user_id=user_id)

    @reads
    def due(self, connection: Connection, *, now: float, idle_seconds: float, limit: int) -> list[DueSession]:
        rows = SQL.due_sessions(connection, quiet_before=now - idle_seconds, now=now, limit=limit)
        return [DueSession(*row) for row in rows]

    @reads
    def turns(self, connection: Connection, due: DueSession, *, limit: int) -> list[Turn]:
        rows = SQL.turns_to_summarise(
            connection, user_id=due.user_id, session_id=due.session_id, bytes_max=SUMMARISED_TURN_BYTES_MAX, limit=limit
        )
        found = fitting(rows, lambda row: int(row[-1]), bytes_max=SUMMARISED_BYTES_MAX)
        return [turn_of(tuple(row[:-1])) for row in found][::-1]

    @writes
    def put(
        self, connection: Connection, due: DueSession, summary: SessionSummary | None, vector: Vector | None
    ) -> bool:
        taken = SQL.take_due(connection, user_id=due.user_id, session_id=due.session_id, token=due.token)
        if taken.rowcount == 0:
            return False
        if summary is None:
            turn_effects.withdraw_summaries(connection, due.user_id, {due.session_id})
            return True
        assert (summary.user_id, summary.session_id) == (due.user_id, due.session_id), "it is that of the session"
        texts = {"title": to_bytes(summary.title), "text": to_bytes(summary.text)}
        # replacing is no deletion: past notes may hold the earlier version
        SQL.put_summary(
            connection,
            **asdict(summary) | texts | {"turn_ids": json.dumps(summary.turn_ids)},
            id=summary.id,
            vector=b"" if vector is None else np.asarray(vector, dtype=np.float16).tobytes(),
            origin=self._origin,
        )
        return True

    @writes
    def postpone(self, connection: Connection, due: DueSession, *, until: float) -> None:
        SQL.postpone_session(connection, until=until, user_id=due.user_id, session_id=due.session_id, token=due.token)


def let_rest(connection: Connection, *, sessions: Collection[tuple[str, str]], now: float) -> None:
    """Sessions that are due at once wait as if a turn had ended, since turns expire one by one."""
    SQL.let_rest.many(
        connection, [{"now": now, "user_id": user_id, "session_id": session_id} for user_id, session_id in sessions]
    )


def _summary(row: Sequence[Any]) -> SessionSummary:
    user_id, session_id, version, title, text, first_at, last_at, turn_ids, *others = row
    return SessionSummary(
        user_id,
        session_id,
        version,
        to_text(title),
        to_text(text),
        first_at,
        last_at,
        tuple(json.loads(turn_ids)),
        *others,
    )


def _vector(stored: bytes) -> Vector | None:
    """Stored with 16 bits a number: differences below a thousandth do not matter here."""
    return np.frombuffer(stored, dtype=np.float16).astype(np.float32) if stored else None
