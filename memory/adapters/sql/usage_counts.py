"""Access counts on SQLite, in the turn log's database: gathered in memory, written in batches, added up for the store.

A row holds what was counted and is not in the store yet, and, once somebody set out to bring it there, the sum that the
store has to show: so a repeat after a crash writes the same sum. It must never make a request wait, nor a reader fail.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Collection, Mapping
from functools import partial
from types import TracebackType
from typing import Self

from memory.adapters.sql.database import SqlDatabase
from memory.adapters.sql.erased_users import was_erased_since
from memory.adapters.usage_tally import UsageTally
from memory.ports import UsageCount

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


def _added(connection: sqlite3.Connection, *, rows: list[tuple[str, str, int, float]]) -> None:
    connection.executemany(
        """
        INSERT INTO uses (user_id, memory_id, counted, used_at) VALUES (?, ?, ?, ?)
        ON CONFLICT DO UPDATE SET counted = counted + excluded.counted, used_at = max(used_at, excluded.used_at)
        """,
        [row for row in rows if not was_erased_since(connection, row[0], row[3])],
    )


def _waiting(connection: sqlite3.Connection, *, user_id: str, limit: int) -> dict[str, UsageCount]:
    rows = connection.execute(
        "SELECT memory_id, counted, total, used_at FROM uses WHERE user_id = ? ORDER BY memory_id LIMIT ?",
        (user_id, limit),
    )
    return {memory_id: UsageCount(counted, total or 0, used_at) for memory_id, counted, total, used_at in rows}


def _settled(connection: sqlite3.Connection, *, user_id: str, stored: Mapping[str, int]) -> None:
    connection.executemany(
        "UPDATE uses SET total = max(?, ifnull(total, 0)) + counted, counted = 0 WHERE user_id = ? AND memory_id = ?",
        [(count, user_id, memory_id) for memory_id, count in stored.items()],
    )


def _written(connection: sqlite3.Connection, *, user_id: str, memory_ids: Collection[str]) -> None:
    ids = json.dumps(list(memory_ids))
    own = "user_id = ? AND memory_id IN (SELECT value FROM json_each(?))"
    connection.execute(f"DELETE FROM uses WHERE {own} AND counted = 0", (user_id, ids))  # noqa: S608 - our own words
    connection.execute(f"UPDATE uses SET total = NULL WHERE {own}", (user_id, ids))  # noqa: S608 - likewise


def _dropped(connection: sqlite3.Connection, *, user_id: str, memory_ids: Collection[str]) -> None:
    connection.execute(
        "DELETE FROM uses WHERE user_id = ?1 AND (?2 = '[]' OR memory_id IN (SELECT value FROM json_each(?2)))",
        (user_id, json.dumps(list(memory_ids))),
    )
