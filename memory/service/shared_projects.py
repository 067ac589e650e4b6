"""Shared projects, for callers of the library: their members, their memories, and what becomes of both with a user.

A memory gets a new id when it moves between its author's own and those of a project: ids are unique in the whole store,
and its two rows stand side by side for a moment. Until the move has ended only its author sees it, wherever it was
interrupted; the same call completes it. Locks are taken in one order: the user's, then the project's.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection
from dataclasses import replace

import numpy as np

from memory.errors import BadInput
from memory.model import Change, ChangeKind, Memory, MemoryStatus, Record
from memory.model.memories import MemoryVisibility
from memory.model.projects import SharedMemory, as_authored, as_seen_by, row_of, shared_id
from memory.service.locked_writes import write_rows
from memory.service.memory_scan import own_record
from memory.service.project_members import ProjectMembership, RightMissing
from memory.service.project_memories import FoundShared, ProjectMemories
from memory.service.requests import MemoryEdit
from memory.service.service_parts import Service, ServiceParts
from memory.service.shared_rows import SharedRows

_IDS = uuid.UUID("8a1f6a5e-6b0b-4a0c-9a63-7d0e1f3c2b35")


class SharedProjects(Service):
    """Methods raise `BadInput` (`NotFound`, `RightMissing`, `VersionChanged`), `Unavailable` or `Conflict`."""

    def __init__(self, parts: ServiceParts) -> None:
        super().__init__(parts)
        self.rows = SharedRows(parts.memories, parts.stores, clock=parts.intake.clock)
        self.tenancy = parts.intake.tenancy
        self.membership = ProjectMembership(parts, self.rows)
        self.memories = ProjectMemories(parts, self.rows)

    async def edit(
        self, user_id: str, memory_id: str, edit: MemoryEdit, *, expected: Collection[str] | None
    ) -> Memory | None:
        """None if neither the memory is shared nor the edit shares it."""
        if edit.visibility is not None or edit.project_id is not None:
            return await self._make_visible(user_id, memory_id, edit, expected)
        return await self.memories.edit(user_id, memory_id, edit, expected=expected)

    async def forget_user(self, user_id: str, project_id: str) -> int:
        """What the user authored in projects of that id, also after they left; "": in all, and the user leaves them.

        Returns how many memories.
        """
        if not project_id:
            await self.membership.leave_all(user_id)  # first: whoever has left shares nothing more
        return await self.rows.forget_authored(user_id, project_id=project_id)

    async def _make_visible(
        self, user_id: str, memory_id: str, edit: MemoryEdit, expected: Collection[str] | None
    ) -> Memory:
        """As `edit` says. Returns the memory, with a new id if it has moved."""
        wanted = edit.visibility
        if wanted is None or edit != MemoryEdit(visibility=wanted, project_id=edit.project_id):
            raise BadInput("visibility, and with it project_id, are changed in a call of their own")
        found = await self.memories.changeable(user_id, memory_id, expected)
        if found is None:
            return await self._share(user_id, memory_id, wanted, edit.project_id or "", expected)
        if edit.project_id not in (None, found.access.project.project_id):
            raise BadInput("a shared memory stays in its project: take it back first")
        if wanted is MemoryVisibility.OWNER_ONLY:
            return await self._take_back(user_id, memory_id, expected)
        return await self._show(user_id, memory_id, wanted, expected)

    async def _share(
        self, user_id: str, memory_id: str, wanted: MemoryVisibility, project_id: str, expected: Collection[str] | None
    ) -> Memory:
        own = (await self._own(user_id, memory_id, expected)).memory
        if wanted is MemoryVisibility.OWNER_ONLY:
            return own
        epoch = await self._writes.begin(user_id)
        project_id = project_id or own.project_id
        if not project_id:
            raise BadInput("this memory belongs to no project: name the one to share it in as project_id")
        project = (await self.rows.access(user_id, project_id)).project
        number = uuid.uuid5(_IDS, repr((user_id, memory_id)))  # the same if the call is repeated
        entry = SharedMemory(shared_id(project.key, str(number)), project.key, user_id, wanted, self._clock())
        async with self._writes.lock(epoch) as held:
            record = await self._own(user_id, memory_id, expected)
            async with self._ledger.write(project.owner_id) as held_project:
                if not (await self.rows.access(user_id, project_id)).may_add:
                    raise RightMissing("your role in this project does not allow to add memories")
                vectors = record.vector[np.newaxis]
                await self.rows.store_hidden(project, held_project, [entry], [record.memory], vectors)
                await self._erasure.erase_rows(user_id, held, [memory_id])
                await self.rows.show([entry])
        await self._erasure.drop_notes(user_id, [memory_id])
        row = row_of(record.memory, entry, project)
        return as_seen_by(user_id, row, entry, project_id)

    async def _take_back(self, user_id: str, memory_id: str, expected: Collection[str] | None) -> Memory:
        async with self._ledger.write(user_id) as held:
            found = await self.memories.still(user_id, memory_id, expected)
            if user_id != found.entry.author_id:
                raise RightMissing("only its author can take a memory back; you can forget it")
            project = found.access.project
            async with self._ledger.write(project.owner_id) as held_project:
                found = await self.memories.still(user_id, memory_id, expected)
                await self._set(found, MemoryVisibility.OWNER_ONLY)
                own = _own_again(found)
                changes = [Change(ChangeKind.CREATE, own)]
                await write_rows(self._store, held, user_id, changes, found.record.vector[np.newaxis])
                await self.rows.remove(project, held_project, [found.entry])
        return own

    async def _show(
        self, user_id: str, memory_id: str, wanted: MemoryVisibility, expected: Collection[str] | None
    ) -> Memory:
        epoch = await self._writes.begin(user_id)
        project = (await self.memories.still(user_id, memory_id, expected)).access.project
        async with self._writes.lock(epoch), self._ledger.write(project.owner_id) as held:
            found = await self.memories.still(user_id, memory_id, expected)
            if found.entry.visibility is MemoryVisibility.PUBLIC:  # narrower first
                await self._set(found, wanted)
            entry = replace(found.entry, visibility=wanted)
            row = row_of(found.record.memory, entry, project)
            await self.rows.write(project, held, [entry], [row], found.record.vector[np.newaxis])
            await self.rows.show([entry])
        return as_seen_by(user_id, row, entry, project.project_id)

    async def _set(self, found: FoundShared, visibility: MemoryVisibility) -> None:
        """To be narrower: whoever may not read it any more keeps no note with it."""
        await self.rows.show([replace(found.entry, visibility=visibility)])
        await self.rows.drop_notes(found.access.project, [found.entry.memory_id])

    async def _own(self, user_id: str, memory_id: str, expected: Collection[str] | None) -> Record:
        found = await own_record(self._store, user_id, memory_id, expected=expected)
        if found.memory.status is not MemoryStatus.ACTIVE:
            raise BadInput("only active memories can be shared")
        return found


def _own_again(found: FoundShared) -> Memory:
    """The author's own memory again, under a new id."""
    own = as_authored(found.record.memory, found.entry, found.access.project.project_id)
    own_id = str(uuid.uuid5(_IDS, found.entry.memory_id))
    return replace(own, id=own_id, visibility=MemoryVisibility.OWNER_ONLY)
