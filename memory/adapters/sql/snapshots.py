"""Snapshots of working sets in the database, for filters on several machines: a row per user, of limited size together.

The table is not logged, so a write costs no more than its bytes: a crash of the server empties it, which costs the next
chat of each user time, nothing else. The least recently used go first. Users are digests here.
"""

from __future__ import annotations

from memory.adapters.sql.database import DatedOnDatabase, SqlDatabase, reads, writes
from memory.adapters.sql.statements import Connection, statements, user_hash
from memory.ports import Clock

SQL = statements("snapshots")
SNAPSHOT_BYTES_MAX = 64 << 20  # a row may have 1 GB; it goes over the network in one piece
USED_AGAIN_SECONDS = 60.0  # precision of the time of last use: each update is a write
CHECKED_SHARE = 0.02  # of the limit: after so many bytes of its own a process looks at the sum of all


class SqlSnapshots(DatedOnDatabase):
    def __init__(self, database: SqlDatabase, *, bytes_max: int, clock: Clock) -> None:
        """`bytes_max`: of all snapshots together, about."""
        super().__init__(database, clock=clock)
        self._bytes_max = bytes_max
        self._unchecked = 0  # bytes that were written since the last look at the sum

    async def read(self, user_id: str) -> bytes | None:
        now, found = self._clock(), await self._found(user_id)
        if found is None:
            return None
        snapshot, used_at = found
        if now - used_at > USED_AGAIN_SECONDS:  # a chat waits for the snapshot, not for this
            self._database.post(lambda connection: SQL.note_use(connection, user_hash=user_hash(user_id), now=now))
        return snapshot

    async def write(self, user_id: str, snapshot: bytes) -> None:
        if len(snapshot) > min(self._bytes_max, SNAPSHOT_BYTES_MAX):
            await self.erase(user_id)  # otherwise an old one would remain
            return
        await self._put(user_id, snapshot)
        self._unchecked += len(snapshot)
        if self._unchecked > CHECKED_SHARE * self._bytes_max:
            self._unchecked = 0
            await self._make_room()

    @writes
    def erase(self, connection: Connection, user_id: str) -> None:
        SQL.delete_snapshot(connection, user_hash=user_hash(user_id))

    @writes
    def erase_all(self, connection: Connection) -> None:
        SQL.delete_snapshots(connection)

    @reads  # megabytes take longer than what is read by key
    def _found(self, connection: Connection, user_id: str) -> tuple[bytes, float] | None:
        return SQL.snapshot_of.one(connection, lambda row: (bytes(row[0]), float(row[1])), user_hash=user_hash(user_id))

    @writes
    def _put(self, connection: Connection, user_id: str, snapshot: bytes) -> None:
        user, now = user_hash(user_id), self._clock()
        SQL.put_snapshot(connection, user_hash=user, snapshot=snapshot, size=len(snapshot), now=now)

    @writes
    def _make_room(self, connection: Connection) -> None:
        SQL.delete_least_used(connection, bytes_max=self._bytes_max)
