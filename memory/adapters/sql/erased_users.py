"""Users who were erased, or opted out, as digests: what began before is not stored, and revisions never come twice.

The row of a user is their erase epoch. Its time refuses notes, receipts, states, counts and links of requests that
began before it. Its revision is where the ledger goes on when the user returns: higher than any that a reader of the
user's earlier memories has seen, so that a cached working set is never taken for a current one. On a connection.

Opt-outs are read by key on the event loop: a thread switch takes longer, and a copy in each process would be late or
unbounded.
"""

from __future__ import annotations

import math

from memory.adapters.sql import known_exchanges, recorded_messages
from memory.adapters.sql.database import OnDatabase, reads, reads_now, writes
from memory.adapters.sql.statements import Connection, statements, user_hash

SQL = statements("erased_users")

TURNS_PER_DELETION = 500  # those of a moment: the others were deleted before

# All tables with a user's id that hold no content. Those with content are erased by their own adapters before.
BOOKKEEPING = (
    "users changes forgotten uses notes_dropped compacted_states_dropped profiles_built stale_profiles rounds "
    "removed_words"
).split()


def first_revision(connection: Connection, user_id: str) -> int:
    """That of a user whom the ledger does not know: 0, or after an erasure a higher, even one."""
    return SQL.revision_after_erasure.value(connection, int, user_hash=user_hash(user_id)) or 0


def forget_unknown(connection: Connection, user_id: str) -> None:
    """Delete the row of a free lock if it says no more than none would: nothing was ever written under it."""
    SQL.delete_untouched(connection, user_id=user_id, revision=first_revision(connection, user_id))


def erase_epoch(connection: Connection, user_id: str) -> int:
    """How often the user was erased."""
    return SQL.times_erased.value(connection, int, user_hash=user_hash(user_id)) or 0


def was_erased_since(connection: Connection, user_id: str, at: float) -> bool:
    """Whether what began at that time belongs to a user who was erased meanwhile."""
    return SQL.erased_since.exists(connection, user_hash=user_hash(user_id), at=at)


def advance_erase_epoch(connection: Connection, user_id: str, token: str, *, now: float) -> bool:
    """Delete all rows that hold the user's id, the lock with them. False, and nothing, if the lock was lost."""
    revision = SQL.held_revision.value(connection, int, user_id=user_id, token=token)
    if revision is None:
        return False
    while recorded_messages.erase(connection, user_id, "", before=math.inf, limit=TURNS_PER_DELETION):
        continue  # what was recorded since the erasure of the record began: it was asked for before this epoch ended
    known_exchanges.erase(connection, user_id)
    SQL.put_epoch(connection, user_hash=user_hash(user_id), now=now, revision=revision + 2 + revision % 2)
    SQL.delete_receipts(connection, user_id=user_id, now=now)
    SQL.delete_links(connection, user_id=user_id, now=now)
    SQL.delete_profiles(connection, user_id=user_id, now=now)
    for table in BOOKKEEPING:
        getattr(SQL, f"delete_from_{table}")(connection, user_id=user_id)
    return True


class SqlOptOuts(OnDatabase):
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
    return SQL.opted_out_at.value(connection, float, user=user_hash(user_id))
