"""Opt-outs on SQLite, in the turn log's database, by the digest of the user's id.

Read by key on the event loop: a thread switch takes longer, and a copy in each process would be late or unbounded.
"""

from __future__ import annotations

import sqlite3
from functools import partial

from memory.adapters.sql.database import SqlDatabase
from memory.adapters.sql.user_digests import user_hash


class SqlOptOuts:
    """`memory.ports.OptOuts` in an open `SqlDatabase`."""

    def __init__(self, database: SqlDatabase) -> None:
        self._database = database

    async def since(self, user_id: str) -> float | None:
        return await self._database.read_now(partial(_since, user=user_hash(user_id)))

    async def set(self, user_id: str, *, at: float) -> float:
        return await self._database.write(partial(_set, user=user_hash(user_id), at=at))

    async def clear(self, user_id: str) -> None:
        await self._database.write(partial(_clear, user=user_hash(user_id)))

    async def count(self) -> int:
        return await self._database.read(_count)


def _since(connection: sqlite3.Connection, *, user: str) -> float | None:
    row = connection.execute("SELECT opted_out_at FROM opted_out_users WHERE user_hash = ?", (user,)).fetchone()
    return None if row is None else float(row[0])


def _set(connection: sqlite3.Connection, *, user: str, at: float) -> float:
    connection.execute("INSERT OR IGNORE INTO opted_out_users (user_hash, opted_out_at) VALUES (?, ?)", (user, at))
    since = _since(connection, user=user)
    assert since is not None
    return since


def _clear(connection: sqlite3.Connection, *, user: str) -> None:
    connection.execute("DELETE FROM opted_out_users WHERE user_hash = ?", (user,))


def _count(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT count(*) FROM opted_out_users").fetchone()[0])
