"""The upkeep schedule in SQL: the users known to the ledger, and the time of their last rounds.

One transaction assigns a user to one process, and no other user while that one is in progress: upkeep reads many rows,
and concurrent rounds would only delay each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from memory.adapters.sql.database import SqlDatabase
from memory.adapters.sql.statements import Connection, statements

SQL = statements("upkeep_schedule")


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


def _users(connection: Connection, *, after: str, limit: int) -> list[str]:
    rows = SQL.users_after(connection, after=after, limit=limit)
    return [user_id for (user_id,) in rows]


def _has_strangers(connection: Connection) -> bool:
    found = SQL.stranger(connection).fetchone()
    return found is not None


def _due(connection: Connection, *, now: float, every: float, patience: float) -> str | None:
    at_work = SQL.round_under_way(connection, now=now - patience).fetchone()
    if at_work is not None:
        return None
    row = SQL.due_user(connection, now=now - every).fetchone()
    return None if row is None else str(row[0])


def _taken(connection: Connection, *, now: float, every: float, patience: float) -> str | None:
    SQL.insert_strangers(connection, now=now)
    user_id = _due(connection, now=now, every=every, patience=patience)
    if user_id is not None:
        SQL.begin_round(connection, now=now, user_id=user_id)
    return user_id


def _ended(connection: Connection, *, user_id: str, now: float) -> None:
    SQL.end_round(connection, user_id=user_id, now=now)
