"""Turns whose words left the record, in the turn log's database. Triggers write the rows (`recording_schema`)."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Sequence
from functools import partial

from memory.adapters.sql.database import SqlDatabase


class SqlRemovedWords:
    """`memory.ports.RemovedWords` in an open `SqlDatabase`."""

    def __init__(self, database: SqlDatabase) -> None:
        self._database = database

    async def next_user(self, *, without: Collection[str] = ()) -> str | None:
        return await self._database.read(partial(_next_user, without=without))

    async def turn_ids(self, user_id: str, *, limit: int) -> list[str]:
        return await self._database.read(partial(_turn_ids, user_id=user_id, limit=limit))

    async def settle(self, user_id: str, turn_ids: Sequence[str]) -> None:
        await self._database.write(partial(forget_removed, user_id=user_id, turn_ids=turn_ids))


def _next_user(connection: sqlite3.Connection, *, without: Collection[str]) -> str | None:
    row = connection.execute(
        "SELECT user_id FROM removed_words WHERE user_id NOT IN (SELECT value FROM json_each(?)) LIMIT 1",
        (json.dumps(sorted(without)),),
    ).fetchone()
    return None if row is None else str(row[0])


def _turn_ids(connection: sqlite3.Connection, *, user_id: str, limit: int) -> list[str]:
    rows = connection.execute("SELECT turn_id FROM removed_words WHERE user_id = ? LIMIT ?", (user_id, limit))
    return [str(turn_id) for (turn_id,) in rows]


def forget_removed(connection: sqlite3.Connection, *, user_id: str, turn_ids: Collection[str]) -> None:
    connection.execute(
        "DELETE FROM removed_words WHERE user_id = ? AND turn_id IN (SELECT value FROM json_each(?))",
        (user_id, json.dumps(list(turn_ids))),
    )
