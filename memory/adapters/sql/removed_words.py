"""Turns whose words left the record, in the turn log's database. `turn_effects` writes the rows."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from functools import partial

from memory.adapters.sql.database import SqlDatabase
from memory.adapters.sql.statements import Connection, statements

SQL = statements("removed_words")


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


def _next_user(connection: Connection, *, without: Collection[str]) -> str | None:
    row = SQL.user_with_removed(connection, without=json.dumps(sorted(without))).fetchone()
    return None if row is None else str(row[0])


def _turn_ids(connection: Connection, *, user_id: str, limit: int) -> list[str]:
    rows = SQL.removed_of_user(connection, user_id=user_id, limit=limit)
    return [str(turn_id) for (turn_id,) in rows]


def forget_removed(connection: Connection, *, user_id: str, turn_ids: Collection[str]) -> None:
    SQL.delete_removed(connection, user_id=user_id, turn_ids=json.dumps(list(turn_ids)))
