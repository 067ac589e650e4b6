"""What a user may read of shared projects, for chats: roles at most two seconds old, visibilities as they are now.

A role that is read once serves a user's chats for `ROLE_SECONDS_MAX`, in each process. What single memories are visible
to whom is read each time, by key, so that what was forgotten or taken back is gone at once.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Collection, Sequence
from dataclasses import replace

from memory.errors import Unavailable
from memory.model import Candidate, PastNote, Scope
from memory.model.projects import ProjectAccess, project_key_of
from memory.ports import ChatState, ChatStateQuery, ChatStates, NoteBook
from memory.ports.projects import Projects

ROLE_SECONDS_MAX = 2.0  # a removed member's chats lose access within it
ROLES_MAX = 20_000  # remembered: some MB


class ReadableProjects:
    """One per process. Raises `Unavailable`."""

    def __init__(self, projects: Projects, *, role_seconds_max: float = ROLE_SECONDS_MAX) -> None:
        self._projects = projects
        self._role_seconds_max = role_seconds_max
        self._readers: OrderedDict[tuple[str, str], None] = OrderedDict()  # that have been added
        self._known: OrderedDict[tuple[str, str], tuple[float, ProjectAccess | None]] = OrderedDict()

    def glance(self, scope: Scope) -> ProjectAccess | None:
        """As `access`, without waiting: None also if it is not known."""
        at, access = self._known.get((scope.user_id, scope.project_id), (-self._role_seconds_max, None))
        return access if _now() - at < self._role_seconds_max else None

    async def access(self, scope: Scope) -> ProjectAccess | None:
        """What the user is in the project of their request; None if they are no member of a shared one."""
        if not scope.project_id:
            return None
        name, now = (scope.user_id, scope.project_id), _now()
        if name in self._known and now - self._known[name][0] < self._role_seconds_max:
            return self._known[name][1]
        found = await self._projects.access(scope.user_id, scope.project_id)
        self._known[name] = now, found
        self._known.move_to_end(name)
        if len(self._known) > ROLES_MAX:
            self._known.popitem(last=False)
        return found

    async def readable(
        self, user_id: str, access: ProjectAccess, candidates: Sequence[Candidate]
    ) -> dict[str, Candidate]:
        """Those that the user may read now, by memory id."""
        entries = await self._projects.entries([candidate.memory.id for candidate in candidates])
        kept: dict[str, Candidate] = {}
        for candidate in candidates:
            row, entry = candidate.memory, entries.get(candidate.memory.id)
            if entry is None or entry.project_key != access.project.key or row.user_id != access.project.owner_id:
                continue
            if entry.may_be_recalled(user_id, access.role):
                kept[row.id] = replace(candidate, shared=entry)
        return kept

    async def is_readable(self, user_id: str, memory_ids: Collection[str], *, made_at: float) -> bool:
        """Whether the user may read what these memories said at that time, as far as they are shared ones.

        Without an entry, a shared memory was forgotten.
        """
        marked = set(filter(project_key_of, memory_ids))
        if not marked:
            return True
        entries = await self._projects.entries(marked)
        if len(entries) < len(marked):
            return False
        roles = {
            key: await self._projects.access_by_key(key, user_id)
            for key in {entry.project_key for entry in entries.values()}
        }
        return all(
            (access := roles[entry.project_key]) is not None
            and made_at > entry.changed_at
            and entry.may_be_recalled(user_id, access.role)
            for entry in entries.values()
        )

    async def add_reader(self, user_id: str, memory_ids: Collection[str]) -> None:
        """Before a note with these memories is kept: whoever deletes one of them has to find the note."""
        for key in sorted({key for one in memory_ids if (key := project_key_of(one))}):
            if (key, user_id) not in self._readers:
                await self._projects.add_reader(key, user_id)
                self._readers[key, user_id] = None
                if len(self._readers) > ROLES_MAX:
                    self._readers.popitem(last=False)


class ReadableChatStates:
    """`memory.ports.ChatStates` without notes that their reader may not read any more."""

    def __init__(self, states: ChatStates, projects: ReadableProjects) -> None:
        self._states = states
        self._projects = projects

    async def read(self, query: ChatStateQuery) -> ChatState:
        state = await self._states.read(query)
        if not any(project_key_of(one) for note in state.notes.values() for one in note.memory_ids):
            return state
        try:
            readable = {
                key: note
                for key, note in state.notes.items()
                if await self._projects.is_readable(query.user_id, note.memory_ids, made_at=note.made_at)
            }
        except Unavailable:  # nobody can say which
            readable = {}
        return replace(state, notes=readable)


class SharedNotes:
    """`memory.ports.NoteBook` of notes that whoever deletes a shared memory in them has to find."""

    def __init__(self, notes: NoteBook, projects: ReadableProjects) -> None:
        self._notes = notes
        self._projects = projects

    async def keep(self, user_id: str, key: str, note: PastNote, *, made_at: float) -> None:
        await self._projects.add_reader(user_id, note.memory_ids)
        await self._notes.keep(user_id, key, note, made_at=made_at)

    async def drop(self, user_id: str, memory_ids: Collection[str], *, now: float) -> None:
        await self._notes.drop(user_id, memory_ids, now=now)


def _now() -> float:
    return asyncio.get_running_loop().time()
