"""The ports of upkeep in SQL, in the turn log's database: uses of memories, and whose round is due.

A row of uses holds what was counted and is not in the store yet. Counting must never make a request wait, nor a reader
fail: it is posted.

The schedule has the users known to the ledger, and the time of their last rounds. One transaction assigns a user to one
process, and no other user while that one is in progress: upkeep reads many rows, and concurrent rounds would only delay
each other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import partial

from memory.adapters.sql.database import IN_PASSING_SECONDS, OnDatabase, reads, writes
from memory.adapters.sql.erased_users import was_erased_since
from memory.adapters.sql.statements import Connection, listed, statements
from memory.ports import UsageCount

SQL = statements("upkeep")


class SqlUsageCounts(OnDatabase):
    def count(self, user_id: str, memory_ids: Collection[str], *, at: float) -> None:
        if memory_ids:
            in_order = tuple(sorted(memory_ids))  # or two filters lock their rows crosswise
            job = partial(_counted, user_id=user_id, memory_ids=in_order, at=at)
            self._database.post(job, within=IN_PASSING_SECONDS)

    @reads
    def unstored(self, connection: Connection, user_id: str, *, limit: int) -> dict[str, UsageCount]:
        return _counts(SQL.uses_of_user(connection, user_id=user_id, limit=limit))

    @writes
    def take(self, connection: Connection, user_id: str, memory_ids: Collection[str]) -> dict[str, UsageCount]:
        return _counts(SQL.take_uses(connection, user_id=user_id, memory_ids=listed(memory_ids)))

    @writes
    def drop(self, connection: Connection, user_id: str, memory_ids: Collection[str]) -> None:
        SQL.delete_uses(connection, user_id=user_id, memory_ids=listed(memory_ids))


def _counts(rows: Iterable[tuple[str, int, float]]) -> dict[str, UsageCount]:
    return {memory_id: UsageCount(counted, used_at) for memory_id, counted, used_at in rows}


def _counted(connection: Connection, *, user_id: str, memory_ids: Sequence[str], at: float) -> None:
    if not was_erased_since(connection, user_id, at):
        SQL.count_use.many(
            connection, [{"user_id": user_id, "memory_id": memory_id, "used_at": at} for memory_id in memory_ids]
        )


class SqlUpkeepSchedule(OnDatabase):
    @reads
    def users(self, connection: Connection, *, after: str, limit: int) -> Sequence[str]:
        return SQL.users_after.column(connection, after=after, limit=limit)

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
        return is_due or SQL.stranger.exists(connection)

    @writes
    def _taken(self, connection: Connection, *, now: float, every: float, patience: float) -> str | None:
        SQL.insert_strangers(connection, now=now)
        user_id = _due(connection, now=now, every=every, patience=patience)
        if user_id is not None:
            SQL.begin_round(connection, now=now, user_id=user_id)
        return user_id


def _due(connection: Connection, *, now: float, every: float, patience: float) -> str | None:
    if SQL.round_under_way.exists(connection, now=now - patience):
        return None
    return SQL.due_user.value(connection, str, now=now - every)
