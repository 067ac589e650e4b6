"""Keeps writers of memories out, in all processes that share the turn log's database."""

from __future__ import annotations

import asyncio
import secrets
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial

from memory.adapters.sql.database import SqlDatabase
from memory.errors import Conflict, Unavailable
from memory.ports import Clock

WRITERS, ALONE = "writers", "alone"
RELEASED_SECONDS_MAX = 5.0  # within which the locks that are held are released
PAUSE_SECONDS = 0.01


class SqlWriteBarrier:
    """`memory.ports.WriteBarrier` in an open `SqlDatabase`, that of the ledger."""

    def __init__(self, database: SqlDatabase, *, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    def alone(self, *, seconds: float) -> AbstractAsyncContextManager[None]:
        return self._raised(ALONE, seconds)

    @asynccontextmanager
    async def closed(self, *, seconds: float) -> AsyncIterator[None]:
        async with self._raised(WRITERS, seconds):
            give_up_at = asyncio.get_running_loop().time() + RELEASED_SECONDS_MAX
            while await self._database.read(partial(_is_held, now=self._clock())):
                if asyncio.get_running_loop().time() > give_up_at:
                    raise Unavailable("turn_log", "users' locks are held for long")
                await asyncio.sleep(PAUSE_SECONDS)
            yield

    async def writers(self) -> Sequence[str]:
        return await self._database.read(_writers)

    @asynccontextmanager
    async def _raised(self, name: str, seconds: float) -> AsyncIterator[None]:
        now, token = self._clock(), secrets.token_hex(16)
        standing = await self._database.read(partial(_standing, name=name))
        if standing is not None and self._database.owners.is_dead(standing[1]):
            await self._database.write(partial(_lower, token=standing[0]))
        raising = partial(
            _raise, name=name, token=token, owner=self._database.owners.name, now=now, until=now + seconds
        )
        try:
            if not await self._database.write(raising):
                raise Conflict("another process is at it")
            yield
        finally:
            await self._database.write(partial(_lower, token=token))


def is_closed(connection: sqlite3.Connection, *, now: float) -> bool:
    """Whether nobody may take a user's lock now."""
    found = connection.execute("SELECT 1 FROM barriers WHERE name = ? AND until > ?", (WRITERS, now)).fetchone()
    return found is not None


def note_writer(connection: sqlite3.Connection, user_id: str) -> None:
    """The user's lock has been taken."""
    connection.execute(
        "INSERT OR IGNORE INTO written_meanwhile SELECT ? WHERE EXISTS (SELECT 1 FROM barriers WHERE name = ?)",
        (user_id, ALONE),
    )


def _standing(connection: sqlite3.Connection, *, name: str) -> tuple[str, str] | None:
    """Token and owner."""
    row: tuple[str, str] | None = connection.execute(
        "SELECT token, owner FROM barriers WHERE name = ?", (name,)
    ).fetchone()
    return row


def _raise(connection: sqlite3.Connection, *, name: str, token: str, owner: str, now: float, until: float) -> bool:
    connection.execute("DELETE FROM barriers WHERE until <= ?", (now,))
    raised = connection.execute("INSERT OR IGNORE INTO barriers VALUES (?, ?, ?, ?)", (name, token, owner, until))
    if raised.rowcount == 1 and name == ALONE:
        connection.execute("DELETE FROM written_meanwhile")
        connection.execute("INSERT INTO written_meanwhile SELECT user_id FROM users WHERE lock_token IS NOT NULL")
    return raised.rowcount == 1


def _lower(connection: sqlite3.Connection, *, token: str) -> None:
    connection.execute("DELETE FROM barriers WHERE token = ?", (token,))
    connection.execute(
        "DELETE FROM written_meanwhile WHERE NOT EXISTS (SELECT 1 FROM barriers WHERE name = ?)", (ALONE,)
    )


def _is_held(connection: sqlite3.Connection, *, now: float) -> bool:
    found = connection.execute(
        "SELECT 1 FROM users WHERE lock_token IS NOT NULL AND lock_expires_at > ? LIMIT 1", (now,)
    ).fetchone()
    return found is not None


def _writers(connection: sqlite3.Connection) -> list[str]:
    return [str(user_id) for (user_id,) in connection.execute("SELECT user_id FROM written_meanwhile ORDER BY user_id")]
