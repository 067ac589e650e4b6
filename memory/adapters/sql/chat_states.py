"""What a chat needs, read with one statement by key; where it continues an exchange, with one more for that.

What this process has not written yet is added: notes and links that are on their way.

While the database cannot be read, the state that this process read last has to do. Once a second it learns who opted
out, was erased or had something dropped from notes, and forgets their states. The others hold when an outage begins.
"""

from __future__ import annotations

import asyncio
import math
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial

from memory.adapters.sql.database import SqlDatabase
from memory.adapters.sql.model_capabilities import LESSON_SECONDS_MAX, named
from memory.adapters.sql.notes import KEYS_AT_A_GLANCE, NOTE_DROP_SECONDS, SqlNoteBook, note_of, without_dropped
from memory.adapters.sql.profiles import profile_of, without_written
from memory.adapters.sql.requests_by_name import SqlResponseChains, link_of
from memory.adapters.sql.statements import Connection, listed, statements, user_hash
from memory.errors import Unavailable
from memory.model import ChainLink, PastNote, Placement, Profile
from memory.ports import ChatState, ChatStateQuery, Clock, Revision
from memory.runtime.recent import Recent

SQL = statements("chat_states")

NOTE_KEYS_ASKED_MAX = 2_000  # of one lookup: longer conversations keep their latest notes
KNOWN_MAX = 10_000  # last states, of a user and a model: some KB each where there is a profile
LOOK_SECONDS = 1.0  # between two looks at what was withdrawn
# Since the look before, or all is forgotten: drops of notes are on record for twice that, for slow writes and clocks.
UNSEEN_SECONDS_MAX = NOTE_DROP_SECONDS / 2
# Since the last look: as long as a failover takes. Where only this process is cut off, others opt out meanwhile.
KNOWN_SECONDS_MAX = 120.0


@dataclass(slots=True, eq=False)
class SqlChatStates:
    """`memory.ports.ChatStates` in an open `SqlDatabase`, with the books of this process on it."""

    database: SqlDatabase
    notes: SqlNoteBook
    chains: SqlResponseChains
    clock: Clock
    _known: Recent[tuple[str, str], ChatState] = field(init=False, default_factory=lambda: Recent(KNOWN_MAX))
    _looked_at: float = field(init=False, default=-math.inf)
    _seen: tuple[set[tuple[str, float]], ...] = field(init=False, default=(set(), set()))  # at the last two looks

    async def read(self, query: ChatStateQuery) -> ChatState:
        link = self.chains.unwritten(query.user_id, query.link_name) if query.link_name else None
        job = partial(self._state, query=query, link=link, after=self.clock() - LESSON_SECONDS_MAX)
        is_short = len(query.note_keys) <= KEYS_AT_A_GLANCE
        state = await (self.database.read_now(job) if is_short else self.database.read(job))
        self._known[user_hash(query.user_id), named(query.model)] = replace(state, notes={}, link=None)
        return state

    def last_known(self, query: ChatStateQuery) -> ChatState | None:
        if self.clock() - self._looked_at > KNOWN_SECONDS_MAX:
            return None
        return self._known.get((user_hash(query.user_id), named(query.model)))

    async def follow_withdrawals(self) -> None:
        while True:
            with suppress(Unavailable):
                await self.forget_withdrawn()
            await asyncio.sleep(LOOK_SECONDS)

    async def forget_withdrawn(self) -> None:
        """Each at two looks, since a state may be on its way during the first. Raises `Unavailable`."""
        now, (before, latest) = self.clock(), self._seen
        rows: list[tuple[str, str, float]] = await self.database.read_now(
            lambda connection: SQL.withdrawn_since(connection, at=now - NOTE_DROP_SECONDS).fetchall()
        )
        found = {(digest or user_hash(user_id), at) for user_id, digest, at in rows}
        users = {user for user, _ in found - before}
        for key in list(self._known):
            if key[0] in users or now - self._looked_at > UNSEEN_SECONDS_MAX:
                del self._known[key]
        self._seen, self._looked_at = (latest, found), now

    def _state(
        self, connection: Connection, *, query: ChatStateQuery, link: ChainLink | None, after: float
    ) -> ChatState:
        if query.link_name and link is None:
            link = link_of(connection, query.user_id, query.link_name)
        keys = [*(link.note_keys if link is not None else ()), *query.note_keys][-NOTE_KEYS_ASKED_MAX:]
        coming = self.notes.unwritten(query.user_id, keys)
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
            notes | without_dropped(connection, query.user_id, coming),  # newer than what is written
            link,
            {key: without_written(profile, written) for key, profile in profiles.items()},
            None if placement is None else Placement(placement),
        )
