"""The table of idempotency keys: a hash of each call, and the ids that it returned."""

from __future__ import annotations

IDEMPOTENCY_TABLES = (
    """
    CREATE TABLE idempotency_keys (
        position INTEGER PRIMARY KEY,
        user_id TEXT NOT NULL,
        key TEXT NOT NULL,
        fingerprint BLOB NOT NULL,
        claimed_at REAL NOT NULL,
        answer TEXT,
        UNIQUE (user_id, key)
    )
    """,
    "CREATE UNIQUE INDEX idempotency_keys_of_user ON idempotency_keys (user_id, position)",
    "CREATE INDEX idempotency_keys_by_age ON idempotency_keys (claimed_at)",
)
