"""After a rewriting the database's file holds no bytes of rows that were deleted."""

from __future__ import annotations

import random
import sqlite3
from functools import partial
from pathlib import Path

import pytest

from memory.adapters.file_scan import scanned
from memory.adapters.sqlite.database import SqliteDatabase
from memory.errors import Unavailable

DIMENSION = 8
MARK = "Quetzalbimxford"


async def test_the_database_keeps_no_copy_of_what_is_deleted(tmp_path: Path) -> None:
    path, draw = tmp_path / "turns.sqlite", random.Random(7)
    users = [f"user-{number:03}-zq" for number in range(40)]
    gone = users[::3]

    async with SqliteDatabase(path) as database, SqliteDatabase(path) as other:

        def fill(connection: sqlite3.Connection) -> None:
            for _ in range(3_000):
                user, text = draw.choice(users), f"{MARK} " * draw.randrange(1, 40)
                connection.execute(
                    "INSERT INTO messages (id, user_id, project_id, conversation_id, turn_id, at, added_at, seq, "
                    "ordinal, trace_id, source_type, source, target_type, target, direction, visibility, content) "
                    "VALUES (hex(randomblob(8)), ?, '', '', '', 0, 0, 0, 0, '', '', '', '', '', '', '', ?)",
                    (user, f"{user} {text}"),
                )

        def leave(connection: sqlite3.Connection, *, user: str) -> None:
            connection.execute("DELETE FROM messages WHERE user_id = ?", (user,))

        for _ in range(5):
            await database.write(fill)
        for user in gone:
            await database.write(partial(leave, user=user))
        assert scanned([tmp_path], gone)[2]
        await database.rewrite()
        assert scanned([tmp_path], gone)[2] == []
        assert scanned([tmp_path], users[1:2])[2] == ["turns.sqlite"]
        rows = await other.read(lambda connection: connection.execute("SELECT count(*) FROM messages").fetchone())
        assert rows[0] > 100
        await other.write(fill)


async def test_a_database_that_is_too_large_is_not_rewritten_while_others_write(tmp_path: Path) -> None:
    async with SqliteDatabase(tmp_path / "turns.sqlite", rewrite_bytes_max=1_000) as database:
        with pytest.raises(Unavailable, match="rewrite_mib_max"):
            await database.rewrite()
