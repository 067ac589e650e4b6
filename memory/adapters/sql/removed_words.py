"""Turns whose words left the record, in the turn log's database. `turn_effects` writes the rows."""

from __future__ import annotations

from collections.abc import Collection

from memory.adapters.sql.jobs import OnDatabase, reads, writing
from memory.adapters.sql.statements import Connection, listed, statements

SQL = statements("removed_words")


def forget_removed(connection: Connection, user_id: str, turn_ids: Collection[str]) -> None:
    SQL.delete_removed(connection, user_id=user_id, turn_ids=listed(turn_ids))


class SqlRemovedWords(OnDatabase):
    """`memory.ports.RemovedWords` in an open `SqlDatabase`."""

    @reads
    def next_user(self, connection: Connection, *, without: Collection[str] = ()) -> str | None:
        row = SQL.user_with_removed(connection, without=listed(sorted(without))).fetchone()
        return None if row is None else str(row[0])

    @reads
    def turn_ids(self, connection: Connection, user_id: str, *, limit: int) -> list[str]:
        return [str(turn_id) for (turn_id,) in SQL.removed_of_user(connection, user_id=user_id, limit=limit)]

    settle = writing(forget_removed)
