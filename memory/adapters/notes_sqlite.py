"""The note book on SQLite: past notes by conversation key, in the turn log's database, so that all filters share them.

Bounded per user: the notes that were written longest ago go first. A lost note costs a prompt's prefix, never an answer.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Sequence
from functools import partial

import msgspec

from memory.adapters.sqlite_database import SqliteDatabase
from memory.model import PastNote

USER_NOTES_MAX = 2_000  # at 3 KB each 6 MB: some hundred conversations of one user
KEYS_MAX = 2_000  # of one look-up: a conversation with more user messages keeps its latest notes

_IDS = msgspec.json.Decoder(tuple[str, ...])


class SqliteNoteBook:
    """`memory.ports.NoteBook` in an open `SqliteDatabase`."""

    def __init__(self, database: SqliteDatabase, *, user_notes_max: int = USER_NOTES_MAX) -> None:
        self._database = database
        self._user_notes_max = user_notes_max

    async def find(self, user_id: str, keys: Sequence[str]) -> dict[str, PastNote]:
        if not keys:
            return {}
        return await self._database.read(partial(_found, user_id=user_id, keys=keys[-KEYS_MAX:]))

    async def keep(self, user_id: str, key: str, note: PastNote, *, now: float) -> None:
        await self._database.write(
            partial(_kept, user_id=user_id, key=key, note=note, now=now, notes_max=self._user_notes_max)
        )

    async def drop(self, user_id: str, memory_ids: Collection[str]) -> None:
        await self._database.write(partial(_dropped, user_id=user_id, memory_ids=memory_ids))


def _found(connection: sqlite3.Connection, *, user_id: str, keys: Sequence[str]) -> dict[str, PastNote]:
    rows = connection.execute(
        "SELECT key, text, memory_ids, tokens FROM notes "
        "WHERE user_id = ?1 AND key IN (SELECT value FROM json_each(?2))",
        (user_id, msgspec.json.encode(list(keys)).decode()),
    )
    return {key: PastNote(text, _IDS.decode(ids), tokens) for key, text, ids, tokens in rows}


def _kept(
    connection: sqlite3.Connection, *, user_id: str, key: str, note: PastNote, now: float, notes_max: int
) -> None:
    inserted = connection.execute(
        "INSERT OR IGNORE INTO notes (user_id, key, text, memory_ids, tokens, kept_at) VALUES (?, ?, ?, ?, ?, ?)",
        (user_id, key, note.text, msgspec.json.encode(note.memory_ids).decode(), note.tokens, now),
    )
    if inserted.rowcount:
        connection.execute(
            "DELETE FROM notes WHERE user_id = ?1 AND key IN "
            "(SELECT key FROM notes WHERE user_id = ?1 ORDER BY kept_at DESC, key LIMIT -1 OFFSET ?2)",
            (user_id, notes_max),
        )


def _dropped(connection: sqlite3.Connection, *, user_id: str, memory_ids: Collection[str]) -> None:
    if not memory_ids:
        connection.execute("DELETE FROM notes WHERE user_id = ?", (user_id,))
        return
    connection.execute(
        "DELETE FROM notes WHERE user_id = ?1 AND EXISTS "
        "(SELECT 1 FROM json_each(notes.memory_ids) WHERE value IN (SELECT value FROM json_each(?2)))",
        (user_id, msgspec.json.encode(list(memory_ids)).decode()),
    )
