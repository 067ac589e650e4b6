"""The note book in SQL: past notes by conversation key, in the turn log's database, shared by all filters.

A request with a new note does not wait until it is written: this process finds the note at once, the others when the
turn has ended, with whose end it is written, or a second later.

The size is limited without counting: `position` and `user_position` grow by the bytes of each note, over all users and
per user, so that notes beyond the limit are those with the lowest positions. A lost note costs a prefix-cache hit,
never an answer.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial

import msgspec

from memory.adapters.retention import DEFAULT_NOTE_LIMITS, NOTE_BYTES_MAX, NOTE_DROP_SECONDS, NoteLimits
from memory.adapters.sql.database import IN_PASSING_SECONDS, SqlDatabase
from memory.adapters.sql.erased_users import was_erased_since
from memory.adapters.sql.jobs import OnDatabase, writes
from memory.adapters.sql.statements import Connection, statements
from memory.model import PastNote

SQL = statements("notes")

KEYS_AT_A_GLANCE = 20  # looked up in 0.1 ms

_IDS = msgspec.json.Decoder(tuple[str, ...])
_EVERY_MEMORY = ""  # in place of a memory's id: all notes of that user were dropped


class SqlNoteBook(OnDatabase):
    """`memory.ports.NoteBook` in an open `SqlDatabase`."""

    def __init__(self, database: SqlDatabase, *, limits: NoteLimits = DEFAULT_NOTE_LIMITS) -> None:
        super().__init__(database)
        self._on_their_way: dict[tuple[str, str], PastNote] = {}
        self._limits = limits

    async def keep(self, user_id: str, key: str, note: PastNote, *, made_at: float) -> None:
        coming = self._on_their_way[user_id, key] = replace(note, made_at=made_at)

        def written() -> None:
            if self._on_their_way.get((user_id, key)) is coming:
                del self._on_their_way[user_id, key]

        job = partial(self._kept, user_id=user_id, key=key, note=coming)
        self._database.post(job, within=IN_PASSING_SECONDS, then=written)

    @writes
    def drop(self, connection: Connection, user_id: str, memory_ids: Collection[str], *, now: float) -> None:
        dropped = _json(list(memory_ids) or [_EVERY_MEMORY])
        SQL.forget_drops(connection, now=now - NOTE_DROP_SECONDS)
        SQL.note_drops(connection, user_id=user_id, now=now, dropped=dropped)
        if memory_ids:
            SQL.delete_with_memories(connection, user_id=user_id, dropped=dropped)
        else:
            SQL.delete_notes(connection, user_id=user_id)

    def with_unwritten(
        self, connection: Connection, user_id: str, keys: Sequence[str], found: dict[str, PastNote]
    ) -> dict[str, PastNote]:
        """`found`, and what of `keys` this process has not written yet."""
        coming = {key: one for key in keys if (one := self._on_their_way.get((user_id, key))) is not None}
        return found | {  # replaces an older one, unless it will be refused
            key: one
            for key, one in coming.items()
            if not _was_dropped(connection, user_id, _json(one.memory_ids), one.made_at)
        }

    def _kept(self, connection: Connection, *, user_id: str, key: str, note: PastNote) -> None:
        memory_ids = _json(note.memory_ids)
        size = len(note.text.encode(errors="replace")) + len(memory_ids)
        if size > NOTE_BYTES_MAX or _was_dropped(connection, user_id, memory_ids, note.made_at):
            return
        SQL.delete_note(connection, user_id=user_id, key=key)
        position, user_position = SQL.last_positions(connection, user_id=user_id).fetchone()
        position, user_position = (position or 0) + size, (user_position or 0) + size
        SQL.insert_note(
            connection,
            position=position,
            user_id=user_id,
            user_position=user_position,
            key=key,
            text=note.text,
            memory_ids=memory_ids,
            made_at=note.made_at,
            tokens=note.tokens,
        )
        SQL.delete_up_to(connection, position=position - self._limits.total_bytes_max)
        SQL.delete_of_user_up_to(connection, user_id=user_id, user_position=user_position - self._limits.user_bytes_max)


def note_of(text: str, memory_ids: str, tokens: int, made_at: float) -> PastNote:
    return PastNote(text, _IDS.decode(memory_ids), tokens, made_at)


def _was_dropped(connection: Connection, user_id: str, memory_ids: str, made_at: float) -> bool:
    found = SQL.dropped_since(
        connection, user_id=user_id, memory_ids=memory_ids, made_at=made_at, every_memory=_EVERY_MEMORY
    ).fetchone()
    return found is not None or was_erased_since(connection, user_id, made_at)


def _json(values: Sequence[str]) -> str:
    return msgspec.json.encode(values).decode()
