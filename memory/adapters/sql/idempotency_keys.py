"""Idempotency keys in the turn log's database. A row holds a hash of the call and the ids that it returned."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from memory.adapters.retention import CALL_SECONDS, USER_CALLS_MAX
from memory.adapters.sql.jobs import OnDatabase, writes
from memory.adapters.sql.statements import Connection, statements
from memory.ports.idempotency import KeyClaim

SQL = statements("idempotency_keys")


class SqlIdempotencyKeys(OnDatabase):
    """`memory.ports.IdempotencyKeys` in an open `SqlDatabase`."""

    @writes
    def claim(self, connection: Connection, user_id: str, key: str, *, fingerprint: bytes, now: float) -> KeyClaim:
        SQL.delete_older(connection, now=now - CALL_SECONDS)
        inserted = SQL.insert_key(connection, user_id=user_id, key=key, fingerprint=fingerprint, now=now)
        if inserted.rowcount == 1:
            SQL.delete_beyond_limit(connection, user_id=user_id, user_calls_max=USER_CALLS_MAX)
        first, claimed_at, answer = SQL.call_of_key(connection, user_id=user_id, key=key).fetchone()
        ids = None if answer is None else tuple(msgspec.json.decode(answer, type=list[str]))
        return KeyClaim(first, claimed_at, ids)

    @writes
    def answered(self, connection: Connection, user_id: str, key: str, answer: Sequence[str]) -> None:
        SQL.set_answer(connection, answer=msgspec.json.encode(list(answer)).decode(), user_id=user_id, key=key)

    @writes
    def erase(self, connection: Connection, user_id: str) -> None:
        SQL.delete_keys(connection, user_id=user_id)
