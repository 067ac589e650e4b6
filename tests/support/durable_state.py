"""What a crash leaves behind, as a value: two that left the same are one crash to whoever takes over.

Random marks of who held what (tokens, owners) count only for being there.
"""

from __future__ import annotations

import hashlib
import sqlite3
from contextlib import closing
from pathlib import Path

from memory.adapters.in_memory import InMemoryStore

RANDOM = frozenset(("token", "owner", "lock_token", "lock_owner"))


def durable_state(database: Path, store: InMemoryStore) -> str:
    """Of a file that nobody has open, and of a store."""
    digest = hashlib.sha256()
    with closing(sqlite3.connect(database)) as connection:
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall()
        for (table,) in tables:
            cursor = connection.execute(f"SELECT * FROM {table}")
            named = [column[0] for column in cursor.description]
            rows = [
                repr([bool(value) if name in RANDOM else value for name, value in zip(named, row, strict=True)])
                for row in cursor
            ]
            digest.update("\n".join([table, *sorted(rows)]).encode("utf-8", "surrogatepass"))
    for memory_id, record in sorted(store._records.items()):
        digest.update(f"{memory_id} {record.memory!r}".encode("utf-8", "surrogatepass") + record.vector.tobytes())
    return digest.hexdigest()
