"""Users who were erased, as digests of their ids: what began before is not stored, and revisions never come twice.

The row of a user is their erase epoch. Its time refuses notes, receipts, states, counts and links of requests that
began before it. Its revision is where the ledger goes on when the user returns: higher than any that a reader of the
user's earlier memories has seen, so that a cached working set is never taken for a current one. On a connection.
"""

from __future__ import annotations

import math

from memory.adapters.sql import backfill, recorded_changes
from memory.adapters.sql.statements import Connection, statements
from memory.adapters.sql.user_digests import user_hash

SQL = statements("erased_users")

TURNS_PER_DELETION = 500  # those of a moment: the others were deleted before

# All tables with a user's id that hold no content. Those with content are erased by their own adapters before.
BOOKKEEPING = (
    "users",
    "changes",
    "forgotten",
    "uses",
    "notes_dropped",
    "compacted_states_dropped",
    "profiles_built",
    "stale_profiles",
    "rounds",
    "removed_words",
)


def first_revision(connection: Connection, user_id: str) -> int:
    """That of a user whom the ledger does not know: 0, or after an erasure a higher, even one."""
    row = SQL.revision_after_erasure(connection, user_hash=user_hash(user_id)).fetchone()
    return 0 if row is None else int(row[0])


def forget_unknown(connection: Connection, user_id: str) -> None:
    """Delete the row of a free lock if it says no more than none would: nothing was ever written under it."""
    SQL.delete_untouched(connection, user_id=user_id, revision=first_revision(connection, user_id))


def erase_epoch(connection: Connection, user_id: str) -> int:
    """How often the user was erased."""
    row = SQL.times_erased(connection, user_hash=user_hash(user_id)).fetchone()
    return 0 if row is None else int(row[0])


def was_erased_since(connection: Connection, user_id: str, at: float) -> bool:
    """Whether what began at that time belongs to a user who was erased meanwhile."""
    found = SQL.erased_since(connection, user_hash=user_hash(user_id), at=at).fetchone()
    return found is not None


def advance_erase_epoch(connection: Connection, user_id: str, token: str, *, now: float) -> bool:
    """Delete all rows that hold the user's id, the lock with them. False, and nothing, if the lock was lost."""
    row = SQL.held_revision(connection, user_id=user_id, token=token).fetchone()
    if row is None:
        return False
    revision = int(row[0])
    _erase_record(connection, user_id)
    SQL.put_epoch(connection, user_hash=user_hash(user_id), now=now, revision=revision + 2 + revision % 2)
    SQL.delete_receipts(connection, user_id=user_id, now=now)
    SQL.delete_links(connection, user_id=user_id, now=now)
    SQL.delete_profiles(connection, user_id=user_id, now=now)
    for table in BOOKKEEPING:
        getattr(SQL, f"delete_from_{table}")(connection, user_id=user_id)
    return True


def _erase_record(connection: Connection, user_id: str) -> None:
    """Delete what was recorded since the erasure of the record began: it was asked for before this epoch ended."""
    while recorded_changes.erase(connection, user_id, "", before=math.inf, limit=TURNS_PER_DELETION):
        continue
    SQL.delete_positions(connection, user_id=user_id)
    backfill.erase(connection, user_id)
