"""What later requests find by the keys of a conversation, in the turn log's database: notes, states; of all filters.

A request with a new note does not wait until it is written: this process finds the note at once, the others when the
turn has ended, with whose end it is written, or a second later.

Notes are limited without counting: `position` and `user_position` grow by the bytes of each note, over all users and
per user, so that notes beyond the limit are those with the lowest positions. A lost note costs a prefix-cache hit,
never an answer. States of long conversations are limited per user, in total and in age; their `position` only grows, so
that those below the limit are the oldest. The state of a conversation is usually found among its newest keys; only
otherwise are all of them looked up.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import msgspec

from memory.adapters.sql.database import IN_PASSING_SECONDS, OnDatabase, SqlDatabase, writes
from memory.adapters.sql.erased_users import was_erased_since
from memory.adapters.sql.statements import Connection, listed, statements
from memory.model import CompactedState, PastNote
from memory.settings import NoteSettings

SQL = statements("notes")

KEYS_AT_A_GLANCE = 20  # looked up in 0.1 ms
NOTE_BYTES_MAX = 64 << 10  # 1,600 tokens are 8 KB of prose; a larger note consists of endless words
NOTE_DROP_SECONDS = 60.0  # longer than any request, and any wait for a lock
USER_NOTE_BYTES_MAX = 4 << 20  # about a hundred long conversations

_IDS = msgspec.json.Decoder(tuple[str, ...])
_EVERY_MEMORY = ""  # in place of a memory's id: all notes of that user were dropped


@dataclass(frozen=True, slots=True)
class NoteLimits:
    """Bytes of all notes, and of one user's."""

    total_bytes_max: int = NoteSettings().total_mib << 20
    user_bytes_max: int = USER_NOTE_BYTES_MAX


class SqlNoteBook(OnDatabase):
    def __init__(self, database: SqlDatabase, *, limits: NoteLimits | None = None) -> None:
        super().__init__(database)
        self._on_their_way: dict[tuple[str, str], PastNote] = {}
        self._limits = limits or NoteLimits()

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

    def unwritten(self, user_id: str, keys: Sequence[str]) -> dict[str, PastNote]:
        """What of `keys` this process has not written yet. Ask before reading what is written, not to miss both."""
        return {key: one for key in keys if (one := self._on_their_way.get((user_id, key))) is not None}

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


def without_dropped(connection: Connection, user_id: str, coming: Mapping[str, PastNote]) -> dict[str, PastNote]:
    """Those that will not be refused when they are written."""
    return {
        key: one
        for key, one in coming.items()
        if not _was_dropped(connection, user_id, _json(one.memory_ids), one.made_at)
    }


def _was_dropped(connection: Connection, user_id: str, memory_ids: str, made_at: float) -> bool:
    is_dropped = SQL.dropped_since.exists(
        connection, user_id=user_id, memory_ids=memory_ids, made_at=made_at, every_memory=_EVERY_MEMORY
    )
    return is_dropped or was_erased_since(connection, user_id, made_at)


def _json(values: Sequence[str]) -> str:
    return msgspec.json.encode(values).decode()


STATE_KEYS_ASKED_MAX = 2_000  # of one lookup
USER_STATES_MAX = 100  # some conversations at a time, and several states of each
STATES_MAX = 20_000  # of all users; a few KB each
STATE_BYTES_MAX = 64 << 10  # a larger one is not stored: it could not be short
STATE_SECONDS_MAX = 30 * 86_400.0
STATE_DROP_SECONDS = 3_600.0  # longer than any state is in the making

_STATE = msgspec.json.Decoder(CompactedState)


class SqlCompactedStates(OnDatabase):
    async def find(self, user_id: str, keys: Sequence[str]) -> tuple[str, CompactedState] | None:
        newest, earlier = keys[-KEYS_AT_A_GLANCE:], keys[-STATE_KEYS_ASKED_MAX:-KEYS_AT_A_GLANCE]
        found = await self._database.read_now(partial(_found, user_id=user_id, keys=newest)) if newest else None
        if found is None and earlier:
            found = await self._database.read(partial(_found, user_id=user_id, keys=earlier))
        return found

    @writes
    def keep(self, connection: Connection, user_id: str, key: str, state: CompactedState, *, made_at: float) -> None:
        encoded = msgspec.json.encode(state)
        is_dropped = SQL.states_dropped_since.exists(connection, user_id=user_id, made_at=made_at)
        if len(encoded) > STATE_BYTES_MAX or is_dropped or was_erased_since(connection, user_id, made_at):
            return
        kept = SQL.insert_state(connection, user_id=user_id, key=key, state=encoded, made_at=made_at).fetchone()
        if kept is None:  # the key has a state
            return
        SQL.delete_states_up_to(connection, position=kept[0] - STATES_MAX)
        SQL.delete_older_states(connection, made_at=made_at - STATE_SECONDS_MAX)
        SQL.delete_states_beyond_limit(connection, user_id=user_id, user_states_max=USER_STATES_MAX)

    @writes
    def drop(self, connection: Connection, user_id: str, *, now: float) -> None:
        SQL.forget_state_drops(connection, now=now - STATE_DROP_SECONDS)
        SQL.note_state_drop(connection, user_id=user_id, now=now)
        SQL.delete_states(connection, user_id=user_id)


def _found(connection: Connection, *, user_id: str, keys: Sequence[str]) -> tuple[str, CompactedState] | None:
    stored = set(SQL.keys_with_state.column(connection, user_id=user_id, keys=listed(keys)))
    newest = next((key for key in reversed(keys) if key in stored), None)
    if newest is None:
        return None
    (state,) = SQL.state_of_key(connection, user_id=user_id, key=newest).fetchone()
    return newest, _STATE.decode(state)
