"""Erasures on SQLite, in the turn log's database, by the digest of the user's id."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from functools import partial

import msgspec

from memory.adapters.sqlite.database import SqliteDatabase
from memory.adapters.sqlite.user_digests import user_hash
from memory.ports.erasures import ErasureRecord, ErasureRequest, ScanReport

PENDING_MAX = 500
_COLUMNS = "id, asked_at, deleted_at, deleted, rewritten_at, scan"
_COUNTS = msgspec.json.Decoder(dict[str, int])
_SCAN = msgspec.json.Decoder(ScanReport)


class SqliteErasures:
    """`memory.ports.erasures.Erasures` in an open `SqliteDatabase`."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database

    async def begun(self, user_id: str, request: ErasureRequest) -> None:
        await self._database.write(partial(_begun, user=user_hash(user_id), request=request))

    async def get(self, user_id: str, erasure_id: str) -> ErasureRecord | None:
        return await self._database.read(partial(_got, user=user_hash(user_id), erasure_id=erasure_id))

    async def latest(self, *, limit: int) -> Sequence[ErasureRecord]:
        return await self._database.read(partial(_latest, limit=limit))

    async def pending(self) -> Sequence[ErasureRequest]:
        return await self._database.read(_pending)

    async def rewritten(self, erasures: Sequence[ErasureRequest], *, at: float) -> None:
        await self._database.write(partial(_rewritten, erasures=erasures, at=at))

    async def scanned(self, erasure_id: str, report: ScanReport) -> None:
        await self._database.write(partial(_scanned, erasure_id=erasure_id, report=msgspec.json.encode(report)))


def _begun(connection: sqlite3.Connection, *, user: str, request: ErasureRequest) -> None:
    connection.execute(
        "INSERT INTO erasures (id, user_hash, asked_at, deleted_at, deleted) VALUES (?, ?, ?, ?, ?) "
        "ON CONFLICT (id) DO UPDATE "
        "SET deleted_at = excluded.deleted_at, deleted = excluded.deleted, rewritten_at = NULL",
        (request.id, user, request.asked_at, request.deleted_at, msgspec.json.encode(request.deleted)),
    )


def _got(connection: sqlite3.Connection, *, user: str, erasure_id: str) -> ErasureRecord | None:
    row = connection.execute(
        f"SELECT {_COLUMNS} FROM erasures WHERE id = ? AND user_hash = ?",  # noqa: S608 - our own constant
        (erasure_id, user),
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


__all__ = ["SqliteErasures"]
