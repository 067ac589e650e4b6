"""Erasures on SQLite, in the turn log's database, by the digest of the user's id.

That of an erased part of a user begins with the same digest, so that all of a user are found by it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from functools import partial

import msgspec

from memory.adapters.sql.database import SqlDatabase
from memory.adapters.sql.user_digests import user_hash
from memory.ports.erasures import ERASURES_PER_USER_MAX, ErasureRecord, ErasureRequest, ScanReport

PENDING_MAX = 500
SUBJECT_SEPARATOR = "."  # between the digests of a user and of an erased part
_LAST = "\U0010ffff"  # after every digest of a part
_COLUMNS = "id, asked_at, deleted_at, deleted, rewritten_at, scan"
_DELETE_TOO_MANY = """
DELETE FROM erasures WHERE position IN (
    SELECT position FROM erasures WHERE user_hash BETWEEN ? AND ? ORDER BY position DESC LIMIT -1 OFFSET ?
) AND position NOT IN (
    SELECT position FROM erasures WHERE user_hash BETWEEN ? AND ? AND scan IS NOT NULL
    ORDER BY json_extract(CAST(scan AS TEXT), '$.scanned_at') DESC LIMIT 1
)
"""
_COUNTS = msgspec.json.Decoder(dict[str, int])
_SCAN = msgspec.json.Decoder(ScanReport)


class SqlErasures:
    """`memory.ports.erasures.Erasures` in an open `SqlDatabase`."""

    def __init__(self, database: SqlDatabase) -> None:
        self._database = database

    async def begun(self, user_id: str, request: ErasureRequest, *, part: str = "") -> None:
        user, subject = user_hash(user_id), _subject(user_id, part)
        await self._database.write(partial(_begun, user=user, subject=subject, request=request))

    async def get(self, user_id: str, erasure_id: str, *, part: str = "") -> ErasureRecord | None:
        return await self._database.read(partial(_got, subject=_subject(user_id, part), erasure_id=erasure_id))

    async def last_scan(self, user_id: str, *, part: str | None = None) -> ScanReport | None:
        subjects = _all_of(user_hash(user_id)) if part is None else (_subject(user_id, part),) * 2
        reports = await self._database.read(partial(_scans, subjects=subjects))
        return max(reports, key=lambda report: report.scanned_at, default=None)

    async def latest(self, *, limit: int) -> Sequence[ErasureRecord]:
        return await self._database.read(partial(_latest, limit=limit))

    async def pending(self) -> Sequence[ErasureRequest]:
        return await self._database.read(_pending)

    async def rewritten(self, erasures: Sequence[ErasureRequest], *, at: float) -> None:
        await self._database.write(partial(_rewritten, erasures=erasures, at=at))

    async def scanned(self, erasure_id: str, report: ScanReport) -> None:
        await self._database.write(partial(_scanned, erasure_id=erasure_id, report=msgspec.json.encode(report)))

    async def expire(self, *, before: float) -> None:
        await self._database.write(partial(_expired, before=before))


def _subject(user_id: str, part: str) -> str:
    return f"{user_hash(user_id)}{SUBJECT_SEPARATOR}{user_hash(part)}" if part else user_hash(user_id)


def _all_of(user: str) -> tuple[str, str]:
    """The first and the last subject of a user."""
    return user, user + _LAST


def _begun(connection: sqlite3.Connection, *, user: str, subject: str, request: ErasureRequest) -> None:
    connection.execute(
        "INSERT INTO erasures (id, user_hash, asked_at, deleted_at, deleted) VALUES (?, ?, ?, ?, ?) "
        "ON CONFLICT (id) DO UPDATE "
        "SET deleted_at = excluded.deleted_at, deleted = excluded.deleted, rewritten_at = NULL",
        (request.id, subject, request.asked_at, request.deleted_at, msgspec.json.encode(request.deleted)),
    )
    connection.execute(_DELETE_TOO_MANY, (*_all_of(user), ERASURES_PER_USER_MAX, *_all_of(user)))


def _scans(connection: sqlite3.Connection, *, subjects: tuple[str, str]) -> list[ScanReport]:
    """From the first of these subjects to the last."""
    chosen = "SELECT scan FROM erasures WHERE user_hash BETWEEN ? AND ? AND scan IS NOT NULL"
    rows = connection.execute(chosen, subjects)
    return [_SCAN.decode(scan) for (scan,) in rows]


def _got(connection: sqlite3.Connection, *, subject: str, erasure_id: str) -> ErasureRecord | None:
    row = connection.execute(
        f"SELECT {_COLUMNS} FROM erasures WHERE id = ? AND user_hash = ?",  # noqa: S608 - our own constant
        (erasure_id, subject),
    ).fetchone()
    return None if row is None else _record(row)


def _latest(connection: sqlite3.Connection, *, limit: int) -> list[ErasureRecord]:
    rows = connection.execute(f"SELECT {_COLUMNS} FROM erasures ORDER BY position DESC LIMIT ?", (limit,))  # noqa: S608
    return [_record(row) for row in rows]


def _pending(connection: sqlite3.Connection) -> list[ErasureRequest]:
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM erasures WHERE rewritten_at IS NULL ORDER BY position LIMIT {PENDING_MAX}"  # noqa: S608
    )
    return [_record(row).request for row in rows]


def _record(row: tuple[str, float, float, bytes, float | None, bytes | None]) -> ErasureRecord:
    erasure_id, asked_at, deleted_at, deleted, rewritten_at, scan = row
    request = ErasureRequest(erasure_id, asked_at, deleted_at, _COUNTS.decode(deleted))
    return ErasureRecord(request, rewritten_at, None if scan is None else _SCAN.decode(scan))


def _rewritten(connection: sqlite3.Connection, *, erasures: Sequence[ErasureRequest], at: float) -> None:
    connection.executemany(
        "UPDATE erasures SET rewritten_at = ? WHERE id = ? AND deleted_at = ? AND rewritten_at IS NULL",
        [(at, one.id, one.deleted_at) for one in erasures],
    )


def _scanned(connection: sqlite3.Connection, *, erasure_id: str, report: bytes) -> None:
    connection.execute("UPDATE erasures SET scan = ? WHERE id = ?", (report, erasure_id))


def _expired(connection: sqlite3.Connection, *, before: float) -> None:
    connection.execute("DELETE FROM erasures WHERE rewritten_at < ?", (before,))


__all__ = ["SqlErasures"]
