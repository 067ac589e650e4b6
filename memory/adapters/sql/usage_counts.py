"""Access counts in SQL, in the turn log's database: gathered in memory, written in batches, added up for the store.

A row holds what was counted and is not in the store yet, and, once somebody set out to bring it there, the sum that the
store has to show: so a repeat after a crash writes the same sum. It must never make a request wait, nor a reader fail.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection, Mapping
from functools import partial
from types import TracebackType
from typing import Self

from memory.adapters.sql.database import SqlDatabase
from memory.adapters.sql.erased_users import was_erased_since
from memory.adapters.sql.statements import Connection, statements
from memory.adapters.usage_tally import UsageTally
from memory.ports import UsageCount

SQL = statements("usage_counts")

FLUSH_SECONDS = 5.0  # between two writes of one process, which is what a crash may lose


class SqlUsageCounts:
    """`memory.ports.UsageCounts` in an open `SqlDatabase`. Open with `async with`; on exit pending counts are
    written.
    """

    def __init__(self, database: SqlDatabase, *, flush_seconds: float = FLUSH_SECONDS) -> None:
        self._database = database
        self._flush_seconds = flush_seconds
        self._tally = UsageTally()
        self._timer: asyncio.TimerHandle | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._flush()

    def count(self, user_id: str, memory_ids: Collection[str], *, at: float) -> None:
        self._tally.count(user_id, memory_ids, at=at)
        if not self._tally.is_empty and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._flush_seconds, self._flush)

    async def unstored(self, user_id: str, *, limit: int) -> dict[str, UsageCount]:
        return await self._database.read(partial(_waiting, user_id=user_id, limit=limit))

    async def begin_store(self, user_id: str, stored: Mapping[str, int]) -> None:
        await self._database.write(partial(_settled, user_id=user_id, stored=stored))

    async def end_store(self, user_id: str, memory_ids: Collection[str]) -> None:
        await self._database.write(partial(_written, user_id=user_id, memory_ids=memory_ids))

    async def drop(self, user_id: str, memory_ids: Collection[str]) -> None:
        self._tally.drop(user_id, memory_ids)
        await self._database.write(partial(_dropped, user_id=user_id, memory_ids=memory_ids))

    def _flush(self) -> None:
        self._timer = None
        rows = [(user_id, *counted) for user_id, counts in self._tally.taken().items() for counted in counts]
        if rows:
            self._database.post(partial(_added, rows=rows))


def _added(connection: Connection, *, rows: list[tuple[str, str, int, float]]) -> None:
    SQL.add_uses.many(
        connection,
        [
            {"user_id": user_id, "memory_id": memory_id, "counted": counted, "used_at": used_at}
            for user_id, memory_id, counted, used_at in rows
            if not was_erased_since(connection, user_id, used_at)
        ],
    )


def _waiting(connection: Connection, *, user_id: str, limit: int) -> dict[str, UsageCount]:
    rows = SQL.uses_of_user(connection, user_id=user_id, limit=limit)
    return {memory_id: UsageCount(counted, total or 0, used_at) for memory_id, counted, total, used_at in rows}


def _settled(connection: Connection, *, user_id: str, stored: Mapping[str, int]) -> None:
    SQL.set_total.many(
        connection,
        [{"count": count, "user_id": user_id, "memory_id": memory_id} for memory_id, count in stored.items()],
    )


def _written(connection: Connection, *, user_id: str, memory_ids: Collection[str]) -> None:
    ids = json.dumps(list(memory_ids))
    SQL.delete_stored(connection, user_id=user_id, memory_ids=ids)
    SQL.forget_total(connection, user_id=user_id, memory_ids=ids)


def _dropped(connection: Connection, *, user_id: str, memory_ids: Collection[str]) -> None:
    SQL.delete_uses(connection, user_id=user_id, memory_ids=json.dumps(list(memory_ids)))
