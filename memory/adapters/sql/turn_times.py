"""When turns were recorded, for a check of the clock."""

from __future__ import annotations

from memory.adapters.sql.database import SqlDatabase
from memory.adapters.sql.statements import Connection, statements

SQL = statements("turn_times")


async def newest_turn_at(database: SqlDatabase) -> float | None:
    """When the turn that this machine dates latest was recorded; None without turns. Raises `Unavailable`."""

    def latest(connection: Connection) -> float | None:
        (at,) = SQL.latest_opening(connection).fetchone()
        return None if at is None else float(at)

    return await database.read(latest)
