"""Summaries of sessions on SQLite, in the database of the turn log, whose triggers withdraw them (`schema.py`).

So no code that deletes or changes a turn has to know about summaries. A token per session changes with each of these
changes, and a summary is stored only if its session's token is still the one that was read.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Sequence
from functools import partial
from typing import Any

import numpy as np

from memory.adapters.sql.database import SqlDatabase
from memory.adapters.sql.turns_rows import TURN_COLUMNS, turn_of
from memory.adapters.turn_rules import SUMMARISED_BYTES_MAX, SUMMARISED_TURN_BYTES_MAX, TAUGHT
from memory.adapters.turn_texts import messages_of, to_bytes, to_text
from memory.model import DueSession, Role, SaidTurn, SessionSummary, StoredSummary, Turn, Vector, WithdrawnSummary

_COLUMNS = (
    "user_id, session_id, version, title, text, first_at, last_at, turn_ids, project_id, agent_id, made_by, made_at, "
    "series"
)
_STATUSES = ", ".join(f"'{status.value}'" for status in TAUGHT)
_MAY_BE_PART = (
    f"is_order = 0 AND length(messages) + length(answer) <= {SUMMARISED_TURN_BYTES_MAX} "  # noqa: S608  # our own constant
    "AND id NOT IN (SELECT turn_id FROM turns_in_no_summary)"
)
_DUE = """
SELECT waiting.user_id, waiting.session_id, token, coalesce(version, 0), tries, coalesce(series, token),
    min(quiet_since) AS since
FROM summaries_due AS waiting LEFT JOIN session_summaries AS made
    ON made.user_id = waiting.user_id AND made.session_id = waiting.session_id
WHERE quiet_since <= ?1 AND not_before <= ?2 AND NOT EXISTS (
    SELECT 1 FROM turns LEFT JOIN windows ON windows.id = window_id
    WHERE turns.user_id = waiting.user_id AND turns.session_id = waiting.session_id
      AND stage IN ('open', 'ready', 'window') AND (stage != 'window' OR state IN ('leased', 'waiting'))
)
GROUP BY waiting.user_id ORDER BY since LIMIT ?3
"""


class SqlSummaries:
    """`memory.ports.SessionSummaries` and `SummaryQueue` in an open `SqlDatabase`, that of the turn log.

    `origin`: names the model of the vectors; vectors of another origin are not returned.
    """

    def __init__(self, database: SqlDatabase, *, origin: str = "") -> None:
        self._database = database
        self._origin = origin

    async def of_session(self, user_id: str, session_id: str) -> SessionSummary | None:
        return await self._database.read(partial(_of_session, user_id=user_id, session_id=session_id))

    async def get(self, user_id: str, ids: Collection[str]) -> list[SessionSummary]:
        return await self._database.read(partial(_get, user_id=user_id, ids=ids)) if ids else []

    async def of_user(self, user_id: str, *, limit: int) -> list[StoredSummary]:
        return await self._database.read(partial(_of_user, user_id=user_id, limit=limit, origin=self._origin))

    async def end(self, user_id: str, session_id: str) -> None:
        await self._database.write(partial(_end, user_id=user_id, session_id=session_id))

    async def is_ended(self, user_id: str, session_id: str) -> bool:
        return await self._database.read(partial(_is_ended, user_id=user_id, session_id=session_id))

    async def leave_out(self, user_id: str, turn_ids: Collection[str]) -> None:
        if turn_ids:
            await self._database.write(partial(_leave_out, user_id=user_id, turn_ids=turn_ids))

    async def leave_out_until(
        self, user_id: str, *, project_id: str, until: float, spare: Collection[str] = ()
    ) -> None:
        await self._database.write(partial(_leave_out_until, values=(user_id, project_id, until), spare=spare))

    async def said(self, user_id: str, *, project_id: str, until: float, after: int, limit: int) -> list[SaidTurn]:
        return await self._database.read(partial(_said, values=(user_id, project_id, until, after, limit)))

    async def withdrawn(self, user_id: str = "", *, limit: int) -> list[WithdrawnSummary]:
        return await self._database.read(partial(_withdrawn, user_id=user_id, limit=limit))

    async def settle(self, withdrawn: Sequence[WithdrawnSummary]) -> None:
        if withdrawn:
            await self._database.write(partial(_settle, withdrawn=withdrawn))

    async def erase(self, user_id: str) -> None:
        await self._database.write(partial(_erase, user_id=user_id))

    async def due(self, *, now: float, idle_seconds: float, limit: int) -> list[DueSession]:
        return await self._database.read(partial(_due, now=now, idle_seconds=idle_seconds, limit=limit))

    async def turns(self, due: DueSession, *, limit: int) -> list[Turn]:
        return await self._database.read(partial(_turns, due=due, limit=limit))

    async def put(self, due: DueSession, summary: SessionSummary | None, vector: Vector | None) -> bool:
        job = partial(_put, due=due, summary=summary, vector=vector, origin=self._origin)
        return await self._database.write(job)

    async def postpone(self, due: DueSession, *, until: float) -> None:
        await self._database.write(partial(_postpone, due=due, until=until))


def let_rest(connection: sqlite3.Connection, *, sessions: Collection[tuple[str, str]], now: float) -> None:
    """Sessions that are due at once wait as if a turn had ended, since turns expire one by one."""
    connection.executemany(
        "UPDATE summaries_due SET quiet_since = ? WHERE user_id = ? AND session_id = ?",
        [(now, *session) for session in sessions],
    )


def _of_session(connection: sqlite3.Connection, *, user_id: str, session_id: str) -> SessionSummary | None:
    row = connection.execute(
        f"SELECT {_COLUMNS} FROM session_summaries WHERE user_id = ? AND session_id = ?",  # noqa: S608  # our own constant
        (user_id, session_id),
    ).fetchone()
    return None if row is None else _summary(row)


def _get(connection: sqlite3.Connection, *, user_id: str, ids: Collection[str]) -> list[SessionSummary]:
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM session_summaries "  # noqa: S608  # our own constant
        "WHERE user_id = ? AND id IN (SELECT value FROM json_each(?))",
        (user_id, json.dumps(list(ids))),
    )
    return [_summary(row) for row in rows]


def _of_user(connection: sqlite3.Connection, *, user_id: str, limit: int, origin: str) -> list[StoredSummary]:
    rows = connection.execute(
        f"SELECT {_COLUMNS}, vector, origin FROM session_summaries WHERE user_id = ? "  # noqa: S608  # our own constant
        "ORDER BY last_at DESC, session_id LIMIT ?",
        (user_id, limit),
    )
    return [
        StoredSummary(_summary(row), _vector(vector) if of_origin == origin else None)
        for *row, vector, of_origin in rows
    ]


def _summary(row: Sequence[Any]) -> SessionSummary:
    """Of `_COLUMNS`."""
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


def _end(connection: sqlite3.Connection, *, user_id: str, session_id: str) -> None:
    connection.execute(
        "UPDATE summaries_due SET quiet_since = 0 WHERE user_id = ? AND session_id = ?", (user_id, session_id)
    )


def _is_ended(connection: sqlite3.Connection, *, user_id: str, session_id: str) -> bool:
    row = connection.execute(
        "SELECT quiet_since FROM summaries_due WHERE user_id = ? AND session_id = ?", (user_id, session_id)
    ).fetchone()
    return row is None or row[0] == 0


def _leave_out(connection: sqlite3.Connection, *, user_id: str, turn_ids: Collection[str]) -> None:
    connection.execute(
        "INSERT OR IGNORE INTO turns_in_no_summary (turn_id, user_id, session_id) SELECT id, user_id, session_id "
        "FROM turns WHERE user_id = ? AND id IN (SELECT value FROM json_each(?))",
        (user_id, json.dumps(list(turn_ids))),
    )


def _leave_out_until(connection: sqlite3.Connection, *, values: tuple[str, str, float], spare: Collection[str]) -> None:
    connection.execute(
        "INSERT OR IGNORE INTO turns_in_no_summary (turn_id, user_id, session_id) SELECT id, user_id, session_id "
        "FROM turns WHERE user_id = ?1 AND ?2 IN ('', project_id) AND said_at <= ?3 "
        "AND id NOT IN (SELECT value FROM json_each(?4))",
        (*values, json.dumps(list(spare))),
    )


def _said(connection: sqlite3.Connection, *, values: tuple[str, str, float, int, int]) -> list[SaidTurn]:
    """Also of turns that are not learnt yet, and of abandoned ones, which can be resumed."""
    rows = connection.execute(
        f"""
        SELECT seq, id, messages FROM turns
        WHERE user_id = ?1 AND ?2 IN ('', project_id) AND said_at <= ?3 AND seq > ?4
          AND stage NOT IN ('nothing', 'withdrawn') AND {_MAY_BE_PART}
        ORDER BY seq LIMIT ?5
        """,  # noqa: S608  # our own constants
        values,
    )
    return [
        SaidTurn(seq, turn_id, tuple(one.content for one in messages_of(messages) if one.role == Role.USER))
        for seq, turn_id, messages in rows
    ]


def _withdrawn(connection: sqlite3.Connection, *, user_id: str, limit: int) -> list[WithdrawnSummary]:
    rows = connection.execute(
        "SELECT user_id, session_id, series, version FROM summaries_withdrawn WHERE ?1 IN ('', user_id) LIMIT ?2",
        (user_id, limit),
    )
    return [WithdrawnSummary(*row) for row in rows]


def _settle(connection: sqlite3.Connection, *, withdrawn: Sequence[WithdrawnSummary]) -> None:
    connection.executemany(
        "DELETE FROM summaries_withdrawn WHERE user_id = ? AND session_id = ? AND series = ?",
        [(one.user_id, one.session_id, one.series) for one in withdrawn],
    )


def _erase(connection: sqlite3.Connection, *, user_id: str) -> None:
    """The summaries before the table that their trigger writes into."""
    for table in ("session_summaries", "summaries_due", "turns_in_no_summary", "summaries_withdrawn"):
        connection.execute(f"DELETE FROM {table} WHERE user_id = ?", (user_id,))  # noqa: S608  # our own constants


def _due(connection: sqlite3.Connection, *, now: float, idle_seconds: float, limit: int) -> list[DueSession]:
    rows = connection.execute(_DUE, (now - idle_seconds, now, limit))
    return [DueSession(*row) for *row, _ in rows]


def _turns(connection: sqlite3.Connection, *, due: DueSession, limit: int) -> list[Turn]:
    rows = connection.execute(
        f"""
        SELECT {TURN_COLUMNS}, length(messages) + length(answer) FROM turns
        WHERE user_id = ? AND session_id = ? AND stage = 'learnt' AND status IN ({_STATUSES})
          AND {_MAY_BE_PART}
        ORDER BY seq DESC LIMIT ?
        """,  # noqa: S608  # our own constants
        (due.user_id, due.session_id, limit),
    )
    found: list[Turn] = []
    room = SUMMARISED_BYTES_MAX
    for *row, size in rows:
        room -= size
        if found and room < 0:
            break
        found.append(turn_of(tuple(row)))
    return found[::-1]


def _put(
    connection: sqlite3.Connection,
    *,
    due: DueSession,
    summary: SessionSummary | None,
    vector: Vector | None,
    origin: str,
) -> bool:
    where = (due.user_id, due.session_id)
    current = connection.execute(
        "DELETE FROM summaries_due WHERE user_id = ? AND session_id = ? AND token = ?", (*where, due.token)
    )
    if current.rowcount == 0:
        return False
    if summary is None:
        connection.execute("DELETE FROM session_summaries WHERE user_id = ? AND session_id = ?", where)
        return True
    assert (summary.user_id, summary.session_id) == where, "the summary is that of the session"
    values = (
        *where,
        summary.version,
        to_bytes(summary.title),
        to_bytes(summary.text),
        summary.first_at,
        summary.last_at,
        json.dumps(summary.turn_ids),
        summary.project_id,
        summary.agent_id,
        summary.made_by,
        summary.made_at,
        summary.series,
        summary.id,
        b"" if vector is None else np.asarray(vector, dtype=np.float16).tobytes(),
        origin,
    )
    # replacing is no deletion: past notes may hold the earlier version
    connection.execute(
        f"INSERT OR REPLACE INTO session_summaries ({_COLUMNS}, id, vector, origin) "  # noqa: S608  # our own constant
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        values,
    )
    return True


def _postpone(connection: sqlite3.Connection, *, due: DueSession, until: float) -> None:
    connection.execute(
        "UPDATE summaries_due SET not_before = ?, tries = tries + 1 WHERE user_id = ? AND session_id = ? AND token = ?",
        (until, due.user_id, due.session_id, due.token),
    )
