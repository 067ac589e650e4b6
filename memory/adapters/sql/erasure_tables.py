"""The tables about users as digests of their ids: opt-outs, erase epochs, and erasures with their proof."""

from __future__ import annotations

ERASURE_TABLES = (
    # Users who opted out; kept when a user is erased.
    "CREATE TABLE opted_out_users (user_hash TEXT PRIMARY KEY, opted_out_at REAL NOT NULL) WITHOUT ROWID",
    # The erase epoch of a user: when they were erased last, how often, and the revision from which the ledger goes on.
    """
    CREATE TABLE erased_users (
        user_hash TEXT PRIMARY KEY,
        erased_at REAL NOT NULL,
        times INTEGER NOT NULL,
        revision INTEGER NOT NULL
    ) WITHOUT ROWID
    """,
    # `deleted` and `scan` are JSON. `rewritten_at`: NULL while files may hold deleted bytes. `user_hash` is followed by
    # the digest of what of the user was erased, unless that is everything.
    """
    CREATE TABLE erasures (
        position INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        user_hash TEXT NOT NULL,
        asked_at REAL NOT NULL,
        deleted_at REAL NOT NULL,
        deleted BLOB NOT NULL,
        rewritten_at REAL,
        scan BLOB
    )
    """,
    # While a row is there, until that time: "writers" keeps everybody from users' locks, "alone" is one process's work.
    """
    CREATE TABLE barriers (
        name TEXT PRIMARY KEY,
        token TEXT NOT NULL,
        owner TEXT NOT NULL,
        until REAL NOT NULL
    ) WITHOUT ROWID
    """,
    # Users whose locks were held while one process is alone at its work.
    "CREATE TABLE written_meanwhile (user_id TEXT PRIMARY KEY) WITHOUT ROWID",
    "CREATE INDEX erasures_pending ON erasures (position) WHERE rewritten_at IS NULL",
    "CREATE INDEX erasures_of_user ON erasures (user_hash)",
)

__all__ = ["ERASURE_TABLES"]
