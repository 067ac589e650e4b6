"""Opt-outs in SQL, in the turn log's database, by the digest of the user's id.

Read by key on the event loop: a thread switch takes longer, and a copy in each process would be late or unbounded.
"""

from __future__ import annotations

from functools import partial

from memory.adapters.sql.database import SqlDatabase
from memory.adapters.sql.statements import Connection, statements
from memory.adapters.sql.user_digests import user_hash

SQL = statements("opt_outs")


class SqlOptOuts:
    """`memory.ports.OptOuts` in an open `SqlDatabase`."""

    def __init__(self, database: SqlDatabase) -> None:
        self._database = database

    async def since(self, user_id: str) -> float | None:
        return await self._database.read_now(partial(opted_out_at, user=user_hash(user_id)))

    async def set(self, user_id: str, *, at: float) -> float:
        return await self._database.write(partial(_set, user=user_hash(user_id), at=at))

    async def clear(self, user_id: str) -> None:
        await self._database.write(partial(_clear, user=user_hash(user_id)))

    async def count(self) -> int:
        return await self._database.read(_count)


def opted_out_at(connection: Connection, *, user: str) -> float | None:
    row = SQL.opted_out_at(connection, user=user).fetchone()
    return None if row is None else float(row[0])


def _set(connection: Connection, *, user: str, at: float) -> float:
    SQL.insert_opt_out(connection, user=user, at=at)
    since = opted_out_at(connection, user=user)
    assert since is not None
    return since


def _clear(connection: Connection, *, user: str) -> None:
    SQL.delete_opt_out(connection, user=user)


def _count(connection: Connection) -> int:
    return int(SQL.count_opt_outs(connection).fetchone()[0])
