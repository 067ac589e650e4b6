"""Idempotency keys in the turn log's database. A row holds a hash of the call and the ids that it returned."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from functools import partial

import msgspec

from memory.adapters.retention import CALL_SECONDS, USER_CALLS_MAX
from memory.adapters.sql.database import SqlDatabase
from memory.ports.idempotency import KeyClaim


class SqlIdempotencyKeys:
    """`memory.ports.IdempotencyKeys` in an open `SqlDatabase`."""

    def __init__(self, database: SqlDatabase) -> None:
        self._database = database

    async def claim(self, user_id: str, key: str, *, fingerprint: bytes, now: float) -> KeyClaim:
        job = partial(_claimed, user_id=user_id, key=key, fingerprint=fingerprint, now=now)
        return await self._database.write(job)

    async def answered(self, user_id: str, key: str, answer: Sequence[str]) -> None:
        await self._database.write(partial(_answered, user_id=user_id, key=key, answer=answer))

    async def erase(self, user_id: str) -> None:
        await self._database.write(partial(_erased, user_id=user_id))


def _claimed(connection: sqlite3.Connection, *, user_id: str, key: str, fingerprint: bytes, now: float) -> KeyClaim:
    connection.execute("DELETE FROM idempotency_keys WHERE claimed_at < ?", (now - CALL_SECONDS,))
    inserted = connection.execute(
        "INSERT OR IGNORE INTO idempotency_keys (user_id, key, fingerprint, claimed_at) VALUES (?, ?, ?, ?)",
        (user_id, key, fingerprint, now),
    )
    if inserted.rowcount == 1:
        connection.execute(
            "DELETE FROM idempotency_keys WHERE user_id = ?1 AND position <= ("
            "SELECT position FROM idempotency_keys WHERE user_id = ?1 ORDER BY position DESC LIMIT 1 OFFSET ?2)",
            (user_id, USER_CALLS_MAX),
        )
    first, claimed_at, answer = connection.execute(
        "SELECT fingerprint, claimed_at, answer FROM idempotency_keys WHERE user_id = ? AND key = ?", (user_id, key)
    ).fetchone()
    return KeyClaim(first, claimed_at, None if answer is None else tuple(msgspec.json.decode(answer, type=list[str])))


def _answered(connection: sqlite3.Connection, *, user_id: str, key: str, answer: Sequence[str]) -> None:
    connection.execute(
        "UPDATE idempotency_keys SET answer = ? WHERE user_id = ? AND key = ?",
        (msgspec.json.encode(list(answer)).decode(), user_id, key),
    )


def _erased(connection: sqlite3.Connection, *, user_id: str) -> None:
    connection.execute("DELETE FROM idempotency_keys WHERE user_id = ?", (user_id,))
