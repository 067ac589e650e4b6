"""Erasures in SQL, in the turn log's database, by the digest of the user's id.

That of an erased part of a user begins with the same digest, so that all of a user are counted together.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from memory.adapters.sql.jobs import OnDatabase, reads, writes
from memory.adapters.sql.statements import Connection, statements
from memory.adapters.sql.user_digests import user_hash
from memory.model.erasures import ErasureRecord, ErasureRequest
from memory.ports.erasures import ERASURES_PER_USER_MAX

SQL = statements("erasures")

PENDING_MAX = 500
SUBJECT_SEPARATOR = "."  # between the digests of a user and of an erased part
_LAST = "\U0010ffff"  # after every digest of a part
_COUNTS = msgspec.json.Decoder(dict[str, int])


class SqlErasures(OnDatabase):
    """`memory.ports.erasures.Erasures` in an open `SqlDatabase`."""

    @writes
    def begun(self, connection: Connection, user_id: str, request: ErasureRequest, *, part: str = "") -> None:
        SQL.put_erasure(
            connection,
            id=request.id,
            subject=_subject(user_id, part),
            asked_at=request.asked_at,
            deleted_at=request.deleted_at,
            deleted=msgspec.json.encode(request.deleted),
        )
        user = user_hash(user_id)
        SQL.delete_beyond_limit(connection, first=user, last=user + _LAST, kept=ERASURES_PER_USER_MAX)

    @reads
    def get(self, connection: Connection, user_id: str, erasure_id: str, *, part: str = "") -> ErasureRecord | None:
        row = SQL.erasure_by_id(connection, erasure_id=erasure_id, subject=_subject(user_id, part)).fetchone()
        return None if row is None else _record(row)

    @reads
    def latest(self, connection: Connection, *, limit: int) -> Sequence[ErasureRecord]:
        return [_record(row) for row in SQL.latest_erasures(connection, limit=limit)]

    @reads
    def pending(self, connection: Connection) -> Sequence[ErasureRequest]:
        return [_record(row).request for row in SQL.pending_erasures(connection, limit=PENDING_MAX)]

    @writes
    def rewritten(self, connection: Connection, erasures: Sequence[ErasureRequest], *, at: float) -> None:
        SQL.set_rewritten.many(connection, [{"at": at, "id": one.id, "deleted_at": one.deleted_at} for one in erasures])

    @writes
    def expire(self, connection: Connection, *, before: float) -> None:
        SQL.delete_older(connection, before=before)


def _subject(user_id: str, part: str) -> str:
    return f"{user_hash(user_id)}{SUBJECT_SEPARATOR}{user_hash(part)}" if part else user_hash(user_id)


def _record(row: tuple[str, float, float, bytes, float | None]) -> ErasureRecord:
    erasure_id, asked_at, deleted_at, deleted, rewritten_at = row
    return ErasureRecord(ErasureRequest(erasure_id, asked_at, deleted_at, _COUNTS.decode(deleted)), rewritten_at)
