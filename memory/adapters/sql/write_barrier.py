"""Keeps writers of memories out, in all processes that share the turn log's database."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from memory.adapters.sql.database import SqlDatabase
from memory.adapters.sql.jobs import OnDatabase, reads, writes
from memory.adapters.sql.statements import Connection, statements
from memory.errors import Conflict, Unavailable
from memory.ports import Clock

SQL = statements("write_barrier")

WRITERS, ALONE = "writers", "alone"
RELEASED_SECONDS_MAX = 5.0  # within which the locks that are held are released
PAUSE_SECONDS = 0.01


class SqlWriteBarrier(OnDatabase):
    """`memory.ports.WriteBarrier` in an open `SqlDatabase`, that of the ledger."""

    def __init__(self, database: SqlDatabase, *, clock: Clock) -> None:
        super().__init__(database)
        self._clock = clock

    def alone(self, *, seconds: float) -> AbstractAsyncContextManager[None]:
        return self._raised(ALONE, seconds)

    @asynccontextmanager
    async def closed(self, *, seconds: float) -> AsyncIterator[None]:
        async with self._raised(WRITERS, seconds):
            give_up_at = asyncio.get_running_loop().time() + RELEASED_SECONDS_MAX
            while await self._is_held(now=self._clock()):
                if asyncio.get_running_loop().time() > give_up_at:
                    raise Unavailable("turn_log", "users' locks are held for long")
                await asyncio.sleep(PAUSE_SECONDS)
            yield

    @reads
    def writers(self, connection: Connection) -> Sequence[str]:
        return [str(user_id) for (user_id,) in SQL.writers_meanwhile(connection)]

    @asynccontextmanager
    async def _raised(self, name: str, seconds: float) -> AsyncIterator[None]:
        now, token = self._clock(), secrets.token_hex(16)
        abandoned = await self._abandoned(name)
        if abandoned:
            await self._lower(abandoned)
        try:
            if not await self._raise(name, token, now=now, until=now + seconds):
                raise Conflict("another process is at it")
            yield
        finally:
            await self._lower(token)

    @reads
    def _abandoned(self, connection: Connection, name: str) -> str:
        """The token of a barrier whose owner is dead; "" if there is none."""
        row = SQL.barrier_by_name(connection, name=name).fetchone()
        return str(row[0]) if row is not None and self._database.owners.is_dead(connection, row[1]) else ""

    @writes
    def _raise(self, connection: Connection, name: str, token: str, *, now: float, until: float) -> bool:
        SQL.delete_expired(connection, now=now)
        owner = self._database.owners.name
        raised = SQL.insert_barrier(connection, name=name, token=token, owner=owner, until=until)
        if raised.rowcount == 1 and name == ALONE:
            SQL.forget_writers(connection)
            SQL.note_holders(connection)
        return raised.rowcount == 1

    @writes
    def _lower(self, connection: Connection, token: str) -> None:
        SQL.delete_barrier(connection, token=token)
        SQL.forget_writers_if_lowered(connection, alone=ALONE)

    @reads
    def _is_held(self, connection: Connection, *, now: float) -> bool:
        return SQL.held_lock(connection, now=now).fetchone() is not None


def is_closed(connection: Connection, *, now: float) -> bool:
    """Whether nobody may take a user's lock now."""
    found = SQL.standing_barrier(connection, writers=WRITERS, now=now).fetchone()
    return found is not None


def note_writer(connection: Connection, user_id: str) -> None:
    """The user's lock has been taken."""
    SQL.note_writer(connection, user_id=user_id, alone=ALONE)
