"""What a user may read of shared projects, for chats: roles at most two seconds old, visibilities as they are now.

A role that is read once serves a user's chats for `ROLE_SECONDS_MAX`, in each process. What single memories are visible
to whom is read each time, by key, so that what was forgotten or taken back is gone at once.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Collection, Sequence
from dataclasses import replace

from memory.errors import Unavailable
from memory.model import Candidate, Scope
from memory.model.projects import ProjectAccess, project_key_of
from memory.ports import ChatState
from memory.ports.projects import Projects
from memory.runtime.recent import Recent

ROLE_SECONDS_MAX = 2.0  # a removed member's chats lose access within it
ROLES_MAX = 20_000  # remembered: some MB


class ReadableProjects:
    """One per process. Raises `Unavailable`."""

    def __init__(self, projects: Projects) -> None:
        self._projects = projects
        self._readers: Recent[tuple[str, str], None] = Recent(ROLES_MAX)  # that have been added
        self._known: Recent[tuple[str, str], tuple[float, ProjectAccess | None]] = Recent(ROLES_MAX)

    def glance(self, scope: Scope) -> ProjectAccess | None:
        """As `access`, without waiting: None also if it is not known."""
        at, access = self._known.get((scope.user_id, scope.project_id), (-math.inf, None))
        return access if _now() - at < ROLE_SECONDS_MAX else None

    async def access(self, scope: Scope) -> ProjectAccess | None:
        """What the user is in the project of their request; None if they are no member of a shared one."""
        if not scope.project_id:
            return None
        name, now = (scope.user_id, scope.project_id), _now()
        at, found = self._known.get(name, (-math.inf, None))
        if now - at >= ROLE_SECONDS_MAX:
            found = await self._projects.access(*name)
            self._known[name] = now, found
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
        """Whether the user may read what the shared ones of these memories said then. Without an entry, one is gone."""
        marked = set(filter(project_key_of, memory_ids))
        if not marked:
            return True
        entries = await self._projects.entries(marked)
        if len(entries) < len(marked):
            return False
        keys = {entry.project_key for entry in entries.values()}
        roles = {key: await self._projects.access_by_key(key, user_id) for key in keys}
        return all(
            (access := roles[entry.project_key]) is not None
            and made_at > entry.changed_at
            and entry.may_be_recalled(user_id, access.role)
            for entry in entries.values()
        )

    async def readable_notes(self, user_id: str, state: ChatState) -> ChatState:
        """The state without notes that the user may not read any more. Never raises."""
        if not any(project_key_of(one) for note in state.notes.values() for one in note.memory_ids):
            return state
        try:
            readable = {
                key: note
                for key, note in state.notes.items()
                if await self.is_readable(user_id, note.memory_ids, made_at=note.made_at)
            }
        except Unavailable:  # nobody can say which
            readable = {}
        return replace(state, notes=readable)

    async def add_reader(self, user_id: str, memory_ids: Collection[str]) -> None:
        """Before a note with these memories is kept: whoever deletes one of them has to find the note."""
        for key in sorted({key for one in memory_ids if (key := project_key_of(one))}):
            if (key, user_id) not in self._readers:
                await self._projects.add_reader(key, user_id)
                self._readers[key, user_id] = None


def _now() -> float:
    return asyncio.get_running_loop().time()
