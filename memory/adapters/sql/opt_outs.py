"""Opt-outs in SQL, in the turn log's database, by the digest of the user's id.

Read by key on the event loop: a thread switch takes longer, and a copy in each process would be late or unbounded.
"""

from __future__ import annotations

from memory.adapters.sql.jobs import OnDatabase, reads, reads_now, writes
from memory.adapters.sql.statements import Connection, statements
from memory.adapters.sql.user_digests import user_hash

SQL = statements("opt_outs")


class SqlOptOuts(OnDatabase):
    """`memory.ports.OptOuts` in an open `SqlDatabase`."""

    @reads_now
    def since(self, connection: Connection, user_id: str) -> float | None:
        return opted_out_at(connection, user_id)

    @writes
    def set(self, connection: Connection, user_id: str, *, at: float) -> float:
        SQL.insert_opt_out(connection, user=user_hash(user_id), at=at)
        since = opted_out_at(connection, user_id)
        assert since is not None
        return since

    @writes
    def clear(self, connection: Connection, user_id: str) -> None:
        SQL.delete_opt_out(connection, user=user_hash(user_id))

    @reads
    def count(self, connection: Connection) -> int:
        return int(SQL.count_opt_outs(connection).fetchone()[0])


def opted_out_at(connection: Connection, user_id: str) -> float | None:
    row = SQL.opted_out_at(connection, user=user_hash(user_id)).fetchone()
    return None if row is None else float(row[0])
