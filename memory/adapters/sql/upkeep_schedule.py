"""The upkeep schedule in SQL: the users known to the ledger, and the time of their last rounds.

One transaction assigns a user to one process, and no other user while that one is in progress: upkeep reads many rows,
and concurrent rounds would only delay each other.
"""

from __future__ import annotations

from collections.abc import Sequence

from memory.adapters.sql.jobs import OnDatabase, reads, writes
from memory.adapters.sql.statements import Connection, statements

SQL = statements("upkeep_schedule")


class SqlUpkeepSchedule(OnDatabase):
    """`memory.ports.UpkeepSchedule` in an open `SqlDatabase`."""

    @reads
    def users(self, connection: Connection, *, after: str, limit: int) -> Sequence[str]:
        return [user_id for (user_id,) in SQL.users_after(connection, after=after, limit=limit)]

    async def next_due(self, *, now: float, every: float, patience: float) -> str | None:
        """Checks with a read first: usually nobody is due, and nothing has to be written."""
        if not await self._is_work(now=now, every=every, patience=patience):
            return None
        return await self._taken(now=now, every=every, patience=patience)

    @writes
    def ended(self, connection: Connection, user_id: str, *, now: float) -> None:
        SQL.end_round(connection, user_id=user_id, now=now)

    @reads
    def _is_work(self, connection: Connection, *, now: float, every: float, patience: float) -> bool:
        """Whether somebody is due, or new."""
        is_due = _due(connection, now=now, every=every, patience=patience) is not None
        return is_due or SQL.stranger(connection).fetchone() is not None

    @writes
    def _taken(self, connection: Connection, *, now: float, every: float, patience: float) -> str | None:
        SQL.insert_strangers(connection, now=now)
        user_id = _due(connection, now=now, every=every, patience=patience)
        if user_id is not None:
            SQL.begin_round(connection, now=now, user_id=user_id)
        return user_id


def _due(connection: Connection, *, now: float, every: float, patience: float) -> str | None:
    at_work = SQL.round_under_way(connection, now=now - patience).fetchone()
    if at_work is not None:
        return None
    row = SQL.due_user(connection, now=now - every).fetchone()
    return None if row is None else str(row[0])
