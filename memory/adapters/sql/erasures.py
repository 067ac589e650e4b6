"""What erasing users takes, in the turn log's database: the erasures on record, and what keeps writers out meanwhile.

Erasures are found by the digest of the user's id. That of an erased part of a user begins with the same digest, so that
all of a user are counted together. Writers of memories are kept out in all processes that share the database.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import msgspec

from memory.adapters.sql.database import DatedOnDatabase, OnDatabase, reads, writes
from memory.adapters.sql.statements import Connection, statements, user_hash
from memory.errors import Conflict, Unavailable
from memory.model.erasures import ErasureRecord, ErasureRequest
from memory.ports.erasures import ERASURES_PER_USER_MAX

SQL = statements("erasures")

PENDING_MAX = 500
_LAST = "\U0010ffff"  # after every digest of a part
_COUNTS = msgspec.json.Decoder(dict[str, int])


class SqlErasures(OnDatabase):
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
        return SQL.erasure_by_id.one(connection, _record, erasure_id=erasure_id, subject=_subject(user_id, part))

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
    return f"{user_hash(user_id)}.{user_hash(part)}" if part else user_hash(user_id)


def _record(row: tuple[str, float, float, bytes, float | None]) -> ErasureRecord:
    erasure_id, asked_at, deleted_at, deleted, rewritten_at = row
    return ErasureRecord(ErasureRequest(erasure_id, asked_at, deleted_at, _COUNTS.decode(deleted)), rewritten_at)


WRITERS, ALONE = "writers", "alone"
RELEASED_SECONDS_MAX = 5.0  # within which the locks that are held are released
PAUSE_SECONDS = 0.01


class SqlWriteBarrier(DatedOnDatabase):
    """`memory.ports.erasures.WriteBarrier` in an open `SqlDatabase`, that of the ledger."""

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
        return SQL.writers_meanwhile.column(connection)

    @asynccontextmanager
    async def _raised(self, name: str, seconds: float) -> AsyncIterator[None]:
        now, token = self._clock(), secrets.token_hex(16)
        try:
            if not await self._raise(name, token, now=now, until=now + seconds):
                raise Conflict("another process is at it")
            yield
        finally:
            await self._lower(token)

    @writes
    def _raise(self, connection: Connection, name: str, token: str, *, now: float, until: float) -> bool:
        owners = self._database.owners
        SQL.delete_expired_barriers(connection, now=now)
        abandoned = SQL.barrier_by_name(connection, name=name).fetchone()
        if abandoned is not None and owners.is_dead(connection, abandoned[1]):
            SQL.delete_barrier(connection, token=abandoned[0])
        raised = SQL.insert_barrier(connection, name=name, token=token, owner=owners.name, until=until)
        if raised.rowcount == 1 and name == ALONE:
            SQL.forget_writers(connection)
            SQL.note_holders(connection)
        return raised.rowcount == 1

    @writes
    def _lower(self, connection: Connection, token: str) -> None:
        SQL.delete_barrier(connection, token=token)
        SQL.forget_writers_if_lowered(connection, alone=ALONE)

    @writes  # as if alone: a snapshot may miss a lock that is taken by whoever has not seen the barrier
    def _is_held(self, connection: Connection, *, now: float) -> bool:
        return SQL.held_lock.exists(connection, now=now)


def is_closed(connection: Connection, *, now: float) -> bool:
    """Whether nobody may take a user's lock now."""
    return SQL.standing_barrier.exists(connection, writers=WRITERS, now=now)


def note_writer(connection: Connection, user_id: str) -> None:
    """The user's lock has been taken."""
    SQL.note_writer(connection, user_id=user_id, alone=ALONE)
