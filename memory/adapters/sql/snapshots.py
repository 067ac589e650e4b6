"""Snapshots of working sets in the database, for filters on several machines: a row per user, of limited size together.

The table is not logged, so a write costs no more than its bytes: a crash of the server empties it, which costs the next
chat of each user time, nothing else. The least recently used go first. Users are digests here.
"""

from __future__ import annotations

import hashlib
from functools import partial

from memory.adapters.sql.database import SqlDatabase
from memory.adapters.sql.statements import Connection, statements
from memory.ports import Clock

SQL = statements("snapshots")
SNAPSHOT_BYTES_MAX = 64 << 20  # a row may have 1 GB; it goes over the network in one piece
USED_AGAIN_SECONDS = 60.0  # precision of the time of last use: each update is a write
CHECKED_SHARE = 0.02  # of the limit: after so many bytes of its own a process looks at the sum of all


class SqlSnapshots:
    """`memory.ports.Snapshots` in an open `SqlDatabase`."""

    def __init__(self, database: SqlDatabase, *, bytes_max: int, clock: Clock) -> None:
        """`bytes_max`: of all snapshots together, about."""
        self._database = database
        self._bytes_max = bytes_max
        self._clock = clock
        self._unchecked = 0  # bytes that were written since the last look at the sum

    async def read(self, user_id: str) -> bytes | None:
        user, now = snapshot_key(user_id), self._clock()
        found = await self._database.read_now(partial(_found, user=user))
        if found is None:
            return None
        snapshot, used_at = found
        if now - used_at > USED_AGAIN_SECONDS:  # a chat waits for the snapshot, not for this
            self._database.post(partial(_note_use, user=user, now=now))
        return snapshot

    async def write(self, user_id: str, snapshot: bytes) -> None:
        if len(snapshot) > min(self._bytes_max, SNAPSHOT_BYTES_MAX):
            await self.erase(user_id)  # otherwise an old one would remain
            return
        await self._database.write(partial(_put, user=snapshot_key(user_id), snapshot=snapshot, now=self._clock()))
        self._unchecked += len(snapshot)
        if self._unchecked > CHECKED_SHARE * self._bytes_max:
            self._unchecked = 0
            await self._database.write(partial(_make_room, bytes_max=self._bytes_max))

    async def erase(self, user_id: str) -> None:
        await self._database.write(partial(_erase, user=snapshot_key(user_id)))

    async def erase_all(self) -> None:
        await self._database.write(_erase_all)


def snapshot_key(user_id: str) -> str:
    """What stands for the user in the table."""
    return hashlib.sha256(user_id.encode(errors="surrogatepass")).hexdigest()


def _found(connection: Connection, *, user: str) -> tuple[bytes, float] | None:
    row = SQL.snapshot_of(connection, user_hash=user).fetchone()
    return None if row is None else (bytes(row[0]), float(row[1]))


def _note_use(connection: Connection, *, user: str, now: float) -> None:
    SQL.note_use(connection, user_hash=user, now=now)


def _put(connection: Connection, *, user: str, snapshot: bytes, now: float) -> None:
    SQL.put_snapshot(connection, user_hash=user, snapshot=snapshot, size=len(snapshot), now=now)


def _make_room(connection: Connection, *, bytes_max: int) -> None:
    SQL.delete_least_used(connection, bytes_max=bytes_max)


def _erase(connection: Connection, *, user: str) -> None:
    SQL.delete_snapshot(connection, user_hash=user)


def _erase_all(connection: Connection) -> None:
    SQL.delete_snapshots(connection)
