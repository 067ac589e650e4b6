"""The upkeep schedule on SQLite: the users known to the ledger, and the time of their last rounds.

One transaction assigns a user to one process, and no other user while that one is in progress: upkeep reads many rows,
and concurrent rounds would only delay each other.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from functools import partial

from memory.adapters.sql.database import SqlDatabase

_IS_USER = "users.user_id NOT LIKE ' %'"  # and no shared project, whose memories are given, not learnt


class SqlUpkeepSchedule:
    """`memory.ports.UpkeepSchedule` in an open `SqlDatabase`."""

    def __init__(self, database: SqlDatabase) -> None:
        self._database = database

    async def users(self, *, after: str, limit: int) -> Sequence[str]:
        return await self._database.read(partial(_users, after=after, limit=limit))

    async def next_due(self, *, now: float, every: float, patience: float) -> str | None:
        """Checks with a read first: usually nobody is due, and nothing has to be written."""
        look = partial(_due, now=now, every=every, patience=patience)
        if not await self._database.read(_has_strangers) and await self._database.read(look) is None:
            return None
        return await self._database.write(partial(_taken, now=now, every=every, patience=patience))

    async def ended(self, user_id: str, *, now: float) -> None:
        await self._database.write(partial(_ended, user_id=user_id, now=now))


def _users(connection: sqlite3.Connection, *, after: str, limit: int) -> list[str]:
    rows = connection.execute(
        f"SELECT user_id FROM users WHERE user_id > ? AND {_IS_USER} ORDER BY user_id LIMIT ?",  # noqa: S608 - our own words
        (after, limit),
    )
    return [user_id for (user_id,) in rows]


def _has_strangers(connection: sqlite3.Connection) -> bool:
    found = connection.execute(
        f"SELECT 1 FROM users WHERE {_IS_USER} "  # noqa: S608 - likewise
        "AND NOT EXISTS (SELECT 1 FROM rounds WHERE rounds.user_id = users.user_id) LIMIT 1"
    ).fetchone()
    return found is not None


def _due(connection: sqlite3.Connection, *, now: float, every: float, patience: float) -> str | None:
    at_work = connection.execute("SELECT 1 FROM rounds WHERE begun_at > ? LIMIT 1", (now - patience,)).fetchone()
    if at_work is not None:
        return None
    row = connection.execute(
        "SELECT user_id FROM rounds WHERE ended_at <= ? ORDER BY ended_at, user_id LIMIT 1", (now - every,)
    ).fetchone()
    return None if row is None else str(row[0])


def _taken(connection: sqlite3.Connection, *, now: float, every: float, patience: float) -> str | None:
    connection.execute(f"INSERT OR IGNORE INTO rounds SELECT user_id, NULL, ? FROM users WHERE {_IS_USER}", (now,))  # noqa: S608
    user_id = _due(connection, now=now, every=every, patience=patience)
    if user_id is not None:
        connection.execute("UPDATE rounds SET begun_at = ? WHERE user_id = ?", (now, user_id))
    return user_id


def _ended(connection: sqlite3.Connection, *, user_id: str, now: float) -> None:
    connection.execute(
        "INSERT INTO rounds SELECT user_id, NULL, ?2 FROM users WHERE user_id = ?1 "  # none of an erased user
        "ON CONFLICT DO UPDATE SET begun_at = NULL, ended_at = ?2",
        (user_id, now),
    )
