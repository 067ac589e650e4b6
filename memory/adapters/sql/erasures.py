"""Erasures in SQL, in the turn log's database, by the digest of the user's id.

That of an erased part of a user begins with the same digest, so that all of a user are counted together.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import msgspec

from memory.adapters.sql.database import SqlDatabase
from memory.adapters.sql.statements import Connection, statements
from memory.adapters.sql.user_digests import user_hash
from memory.model.erasures import ErasureRecord, ErasureRequest
from memory.ports.erasures import ERASURES_PER_USER_MAX

SQL = statements("erasures")

PENDING_MAX = 500
SUBJECT_SEPARATOR = "."  # between the digests of a user and of an erased part
_LAST = "\U0010ffff"  # after every digest of a part
_COUNTS = msgspec.json.Decoder(dict[str, int])


class SqlErasures:
    """`memory.ports.erasures.Erasures` in an open `SqlDatabase`."""

    def __init__(self, database: SqlDatabase) -> None:
        self._database = database

    async def begun(self, user_id: str, request: ErasureRequest, *, part: str = "") -> None:
        user, subject = user_hash(user_id), _subject(user_id, part)
        await self._database.write(partial(_begun, user=user, subject=subject, request=request))

    async def get(self, user_id: str, erasure_id: str, *, part: str = "") -> ErasureRecord | None:
        return await self._database.read(partial(_got, subject=_subject(user_id, part), erasure_id=erasure_id))

    async def latest(self, *, limit: int) -> Sequence[ErasureRecord]:
        return await self._database.read(partial(_latest, limit=limit))

    async def pending(self) -> Sequence[ErasureRequest]:
        return await self._database.read(_pending)

    async def rewritten(self, erasures: Sequence[ErasureRequest], *, at: float) -> None:
        await self._database.write(partial(_rewritten, erasures=erasures, at=at))

    async def expire(self, *, before: float) -> None:
        await self._database.write(partial(_expired, before=before))


def _subject(user_id: str, part: str) -> str:
    return f"{user_hash(user_id)}{SUBJECT_SEPARATOR}{user_hash(part)}" if part else user_hash(user_id)


def _begun(connection: Connection, *, user: str, subject: str, request: ErasureRequest) -> None:
    SQL.put_erasure(
        connection,
        id=request.id,
        subject=subject,
        asked_at=request.asked_at,
        deleted_at=request.deleted_at,
        deleted=msgspec.json.encode(request.deleted),
    )
    SQL.delete_beyond_limit(connection, first=user, last=user + _LAST, kept=ERASURES_PER_USER_MAX)


def _got(connection: Connection, *, subject: str, erasure_id: str) -> ErasureRecord | None:
    row = SQL.erasure_by_id(connection, erasure_id=erasure_id, subject=subject).fetchone()
    return None if row is None else _record(row)


def _latest(connection: Connection, *, limit: int) -> list[ErasureRecord]:
    rows = SQL.latest_erasures(connection, limit=limit)
    return [_record(row) for row in rows]


def _pending(connection: Connection) -> list[ErasureRequest]:
    rows = SQL.pending_erasures(connection, limit=PENDING_MAX)
    return [_record(row).request for row in rows]


def _record(row: tuple[str, float, float, bytes, float | None]) -> ErasureRecord:
    erasure_id, asked_at, deleted_at, deleted, rewritten_at = row
    return ErasureRecord(ErasureRequest(erasure_id, asked_at, deleted_at, _COUNTS.decode(deleted)), rewritten_at)


def _rewritten(connection: Connection, *, erasures: Sequence[ErasureRequest], at: float) -> None:
    SQL.set_rewritten.many(connection, [{"at": at, "id": one.id, "deleted_at": one.deleted_at} for one in erasures])


def _expired(connection: Connection, *, before: float) -> None:
    SQL.delete_older(connection, before=before)
