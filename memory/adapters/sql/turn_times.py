"""When turns were recorded, for a check of the clock."""

from __future__ import annotations

import sqlite3

from memory.adapters.sql.database import SqlDatabase


async def newest_turn_at(database: SqlDatabase) -> float | None:
    """When the turn that this machine dates latest was recorded; None without turns. Raises `Unavailable`."""

    def latest(connection: sqlite3.Connection) -> float | None:
        (at,) = connection.execute("SELECT max(opened_at) FROM turns").fetchone()
        return None if at is None else float(at)

    return await database.read(latest)


__all__ = ["newest_turn_at"]
