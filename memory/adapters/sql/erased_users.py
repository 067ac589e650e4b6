"""Users who were erased, as digests of their ids: what began before is not stored, and revisions never come twice.

The row of a user is their erase epoch. Its time refuses notes, receipts, states, counts and links of requests that
began before it. Its revision is where the ledger goes on when the user returns: higher than any that a reader of the
user's earlier memories has seen, so that a cached working set is never taken for a current one. On a connection.
"""

from __future__ import annotations

import math
import sqlite3

from memory.adapters.sql import filling_in, recorded_changes
from memory.adapters.sql.user_digests import user_hash

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


def first_revision(connection: sqlite3.Connection, user_id: str) -> int:
    """That of a user whom the ledger does not know: 0, or after an erasure a higher, even one."""
    row = connection.execute("SELECT revision FROM erased_users WHERE user_hash = ?", (user_hash(user_id),)).fetchone()
    return 0 if row is None else int(row[0])


def forget_unknown(connection: sqlite3.Connection, user_id: str) -> None:
    """Delete the row of a free lock if it says no more than none would: nothing was ever written under it."""
    connection.execute(
        "DELETE FROM users WHERE user_id = ?1 AND revision = ?2 AND known_since = ?2 AND lock_token IS NULL",
        (user_id, first_revision(connection, user_id)),
    )


def lives_ended(connection: sqlite3.Connection, *, user_id: str) -> int:
    """How often the user was erased."""
    row = connection.execute("SELECT times FROM erased_users WHERE user_hash = ?", (user_hash(user_id),)).fetchone()
    return 0 if row is None else int(row[0])


def was_erased_since(connection: sqlite3.Connection, user_id: str, at: float) -> bool:
    """Whether what began at that time belongs to a user who was erased meanwhile."""
    found = connection.execute(
        "SELECT 1 FROM erased_users WHERE user_hash = ? AND erased_at >= ?", (user_hash(user_id), at)
    ).fetchone()
    return found is not None


def end_life(connection: sqlite3.Connection, *, user_id: str, token: str, now: float) -> bool:
    """Delete all rows that hold the user's id, the lock with them. False, and nothing, if the lock was lost."""
    row = connection.execute(
        "SELECT revision FROM users WHERE user_id = ? AND lock_token = ?", (user_id, token)
    ).fetchone()
    if row is None:
        return False
    revision = int(row[0])
    _erase_record(connection, user_id)
    connection.execute(
        "INSERT INTO erased_users (user_hash, erased_at, times, revision) VALUES (?1, ?2, 1, ?3) "
        "ON CONFLICT DO UPDATE SET erased_at = max(erased_at, ?2), times = times + 1, revision = max(revision, ?3)",
        (user_hash(user_id), now, revision + 2 + revision % 2),
    )
    connection.execute("DELETE FROM receipts WHERE user_id = ? AND kept_at <= ?", (user_id, now))
    connection.execute("DELETE FROM chains WHERE user_id = ? AND kept_at <= ?", (user_id, now))
    connection.execute("DELETE FROM profiles WHERE user_id = ? AND updated_at <= ?", (user_id, now))
    for table in BOOKKEEPING:
        connection.execute(f"DELETE FROM {table} WHERE user_id = ?", (user_id,))  # noqa: S608 - our own constants
    return True


def _erase_record(connection: sqlite3.Connection, user_id: str) -> None:
    """Delete what was recorded since the erasure of the record began: it was asked for before this life ended."""
    while recorded_changes.erase(connection, user_id=user_id, project_id="", before=math.inf, limit=TURNS_PER_DELETION):
        continue
    connection.execute("DELETE FROM turn_branches WHERE user_id = ?", (user_id,))
    filling_in.erase(connection, user_id)


__all__ = ["BOOKKEEPING", "end_life", "first_revision", "forget_unknown", "lives_ended", "was_erased_since"]
