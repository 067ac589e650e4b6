"""The ports of upkeep in SQL, in the turn log's database: uses of memories, and whose round is due.

Uses are gathered in memory and written in batches. A row holds what was counted and is not in the store yet. It must
never make a request wait, nor a reader fail.

The schedule has the users known to the ledger, and the time of their last rounds. One transaction assigns a user to one
process, and no other user while that one is in progress: upkeep reads many rows, and concurrent rounds would only delay
each other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Self

from memory.adapters.sql.database import OnDatabase, SqlDatabase, reads, writes
from memory.adapters.sql.erased_users import was_erased_since
from memory.adapters.sql.statements import Connection, listed, statements
from memory.ports import UsageCount

SQL = statements("upkeep")

FLUSH_SECONDS = 5.0  # between two writes of one process, which is what a crash may lose
GATHERED_MAX = 10_000  # memories between two writes; what comes beyond them is not counted


class SqlUsageCounts(OnDatabase):
    """`memory.ports.UsageCounts` in an open `SqlDatabase`. Open with `async with`; on exit pending counts are
    written.
    """

    def __init__(self, database: SqlDatabase, *, flush_seconds: float = FLUSH_SECONDS) -> None:
        super().__init__(database)
        self._flush_seconds = flush_seconds
        self._gathered: dict[tuple[str, str], UsageCount] = {}
        self._timer: asyncio.TimerHandle | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._flush()

    def count(self, user_id: str, memory_ids: Collection[str], *, at: float) -> None:
        for memory_id in memory_ids:
            known = self._gathered.get((user_id, memory_id))
            if known is not None:
                self._gathered[user_id, memory_id] = UsageCount(known.counted + 1, max(known.used_at, at))
            elif len(self._gathered) < GATHERED_MAX:
                self._gathered[user_id, memory_id] = UsageCount(1, at)
        if self._gathered and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._flush_seconds, self._flush)

    @reads
    def unstored(self, connection: Connection, user_id: str, *, limit: int) -> dict[str, UsageCount]:
        return _counts(SQL.uses_of_user(connection, user_id=user_id, limit=limit))

    @writes
    def take(self, connection: Connection, user_id: str, memory_ids: Collection[str]) -> dict[str, UsageCount]:
        return _counts(SQL.take_uses(connection, user_id=user_id, memory_ids=listed(memory_ids)))

    async def drop(self, user_id: str, memory_ids: Collection[str]) -> None:
        for key in [key for key in self._gathered if key[0] == user_id and (not memory_ids or key[1] in memory_ids)]:
            del self._gathered[key]
        await self._dropped(user_id, memory_ids)

    @writes
    def _dropped(self, connection: Connection, user_id: str, memory_ids: Collection[str]) -> None:
        SQL.delete_uses(connection, user_id=user_id, memory_ids=listed(memory_ids))

    def _flush(self) -> None:
        self._timer = None
        gathered, self._gathered = self._gathered, {}
        if gathered:
            self._database.post(partial(_added, gathered=gathered))


def _counts(rows: Iterable[tuple[str, int, float]]) -> dict[str, UsageCount]:
    return {memory_id: UsageCount(counted, used_at) for memory_id, counted, used_at in rows}


def _added(connection: Connection, *, gathered: Mapping[tuple[str, str], UsageCount]) -> None:
    SQL.add_uses.many(
        connection,
        [
            {"user_id": user_id, "memory_id": memory_id, "counted": count.counted, "used_at": count.used_at}
            for (user_id, memory_id), count in gathered.items()
            if not was_erased_since(connection, user_id, count.used_at)
        ],
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
