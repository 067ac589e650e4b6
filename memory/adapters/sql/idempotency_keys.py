"""Idempotency keys in the turn log's database. A row holds a hash of the call and the ids that it returned."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import msgspec

from memory.adapters.retention import CALL_SECONDS, USER_CALLS_MAX
from memory.adapters.sql.database import SqlDatabase
from memory.adapters.sql.statements import Connection, statements
from memory.ports.idempotency import KeyClaim

SQL = statements("idempotency_keys")


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


def _claimed(connection: Connection, *, user_id: str, key: str, fingerprint: bytes, now: float) -> KeyClaim:
    SQL.delete_older(connection, now=now - CALL_SECONDS)
    inserted = SQL.insert_key(connection, user_id=user_id, key=key, fingerprint=fingerprint, now=now)
    if inserted.rowcount == 1:
        SQL.delete_beyond_limit(connection, user_id=user_id, user_calls_max=USER_CALLS_MAX)
    first, claimed_at, answer = SQL.call_of_key(connection, user_id=user_id, key=key).fetchone()
    return KeyClaim(first, claimed_at, None if answer is None else tuple(msgspec.json.decode(answer, type=list[str])))


def _answered(connection: Connection, *, user_id: str, key: str, answer: Sequence[str]) -> None:
    SQL.set_answer(connection, answer=msgspec.json.encode(list(answer)).decode(), user_id=user_id, key=key)


def _erased(connection: Connection, *, user_id: str) -> None:
    SQL.delete_keys(connection, user_id=user_id)
