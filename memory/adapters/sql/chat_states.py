"""What a chat needs, read with one statement by key; where it continues an exchange, with one more for that.

What this process has not written yet is added: notes and links that are on their way.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from memory.adapters.sql.database import SqlDatabase
from memory.adapters.sql.model_capabilities import LESSON_SECONDS_MAX, named
from memory.adapters.sql.notes import KEYS_AT_A_GLANCE, SqlNoteBook, note_of
from memory.adapters.sql.profiles import profile_of, without_written
from memory.adapters.sql.requests_by_name import SqlResponseChains, link_of
from memory.adapters.sql.statements import Connection, listed, statements, user_hash
from memory.model import ChainLink, PastNote, Placement, Profile
from memory.ports import ChatState, ChatStateQuery, Clock, Revision

SQL = statements("chat_states")

NOTE_KEYS_ASKED_MAX = 2_000  # of one lookup: longer conversations keep their latest notes


@dataclass(frozen=True, slots=True)
class SqlChatStates:
    """`memory.ports.ChatStates` in an open `SqlDatabase`, with the books of this process on it."""

    database: SqlDatabase
    notes: SqlNoteBook
    chains: SqlResponseChains
    clock: Clock

    async def read(self, query: ChatStateQuery) -> ChatState:
        link = self.chains.unwritten(query.user_id, query.link_name) if query.link_name else None
        job = partial(self._state, query=query, link=link, after=self.clock() - LESSON_SECONDS_MAX)
        is_short = len(query.note_keys) <= KEYS_AT_A_GLANCE
        return await (self.database.read_now(job) if is_short else self.database.read(job))

    def _state(
        self, connection: Connection, *, query: ChatStateQuery, link: ChainLink | None, after: float
    ) -> ChatState:
        if query.link_name and link is None:
            link = link_of(connection, query.user_id, query.link_name)
        keys = [*(link.note_keys if link is not None else ()), *query.note_keys][-NOTE_KEYS_ASKED_MAX:]
        rows = SQL.chat_state(
            connection,
            user_id=query.user_id,
            user_hash=user_hash(query.user_id),
            model=named(query.model),
            after=after,
            note_keys=listed(keys),
            project_ids=listed(query.project_ids),
        )
        notes: dict[str, PastNote] = {}
        profiles: dict[str, Profile] = {}
        written: set[str] = set()
        user: tuple[int, float | None, str | None] = 0, None, None
        for part, key, number, at, text, memory_ids, pinned, lines in rows:
            match part:
                case "user":
                    user = number, at, text
                case "note":
                    notes[key] = note_of(text, memory_ids, number, at)
                case "written":
                    written.add(key)
                case _:
                    profiles[key] = profile_of(query.user_id, (key, number, pinned, lines, part == "profile", at))
        revision, opted_out_at, placement = user
        return ChatState(
            opted_out_at,
            Revision(revision),
            self.notes.with_unwritten(connection, query.user_id, keys, notes),
            link,
            {key: without_written(profile, written) for key, profile in profiles.items()},
            None if placement is None else Placement(placement),
        )
