"""The memories of shared projects: added, read, corrected and forgotten by those who may.

What the caller may not see is `NotFound`, as if it did not exist; what they see and may not change is `RightMissing`.
Rights are read at each call, and again under the project's lock before anything is written. What the author says in
chats stays in their own memories (`shared_projects` moves them).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from memory.errors import BadInput, NotFound
from memory.model import Candidate, Memory, MemoryStatus, Record, Scope
from memory.model.memories import refuse_changed
from memory.model.projects import ProjectAccess, SharedMemory, as_authored, as_seen_by, project_key_of, shared_id
from memory.model.wordings import Corrector
from memory.ports import MemoryFilter, Page
from memory.service.idempotency import NewId
from memory.service.memory_scan import chosen_page, scanned
from memory.service.project_members import RightMissing
from memory.service.requests import MemoryEdit, NewMemory, memory_to_store
from memory.service.service_parts import Service, ServiceParts
from memory.service.shared_rows import SharedRows
from memory.service.user_writes import EraseEpoch

NOT_YOURS = "your role in this project does not allow to change this memory"
NO_SUCH_MEMORY = "there is no such memory"


@dataclass(frozen=True, slots=True)
class FoundShared:
    """A shared memory, its row, and what the caller is in its project."""

    entry: SharedMemory
    access: ProjectAccess
    record: Record

    def seen_by(self, user_id: str) -> Memory:
        return as_seen_by(user_id, self.record.memory, self.entry, self.access.project.project_id)


class ProjectMemories(Service):
    """Methods raise `BadInput` (`NotFound`, `RightMissing`), `Unavailable` or `Conflict`."""

    def __init__(self, parts: ServiceParts, rows: SharedRows) -> None:
        super().__init__(parts)
        self._projects = parts.stores.projects
        self._rows = rows

    async def add(self, scope: Scope, items: Sequence[NewMemory], new_id: NewId, *, epoch: EraseEpoch) -> list[str]:
        """Store memories of one project and visibility as given, one id per item, in order.

        A repeated call stores what an earlier attempt did not come to, and changes nothing of what it stored.
        """
        visibility = items[0].visibility
        project_id = items[0].project_id or scope.project_id
        if any((item.project_id or scope.project_id, item.visibility) != (project_id, visibility) for item in items):
            raise BadInput("memories that are shared come in a call of their own, all of one project and visibility")
        access, now = await self._writable(scope.user_id, project_id), self._clock()
        key = access.project.key
        memories = [
            memory_to_store(scope, item, index, now=now, memory_id=shared_id(key, new_id()))
            for index, item in enumerate(items)
        ]
        vectors = await self._embedder.embed([memory.content for memory in memories], is_urgent=False)
        ids = [memory.id for memory in memories]
        async with self._writes.lock(epoch), self._ledger.write(access.project.owner_id) as held:
            await self._writable(scope.user_id, project_id)
            shown = {one.memory_id for one in (await self._projects.entries(ids)).values() if not one.is_hidden}
            written = shown | await held.forgotten(ids)
            kept = [index for index, memory_id in enumerate(ids) if memory_id not in written]
            entries = [SharedMemory(ids[index], key, scope.user_id, visibility, now) for index in kept]
            if entries:
                left = [memories[index] for index in kept]
                await self._rows.store_hidden(access.project, held, entries, left, vectors[kept])
                await self._rows.show(entries)
        return ids

    async def page(self, user_id: str, project_id: str, *, limit: int, cursor: str = "") -> Page[Memory]:
        """One page of what the caller may see as a member, newest first."""
        access = await self._rows.access(user_id, project_id)

        async def seen(rows: Sequence[Memory]) -> list[Memory]:
            return [memory for _, memory in await self._seen(user_id, access, rows)]

        where = MemoryFilter(access.project.owner_id)
        return await chosen_page(self._store, where, seen, limit=limit, cursor=cursor)

    async def shared_by_others(self, user_id: str, project_id: str) -> AsyncIterator[Memory]:
        """What members see of each other's, whatever its status, newest first; nothing for whoever is no member."""
        access = await self._projects.access(user_id, project_id)
        if access is None:
            return
        where = MemoryFilter(access.project.owner_id, status=None)
        async for rows in scanned(self._store, where):
            for author_id, memory in await self._seen(user_id, access, rows):
                if author_id != user_id:
                    yield memory

    async def _seen(self, user_id: str, access: ProjectAccess, rows: Sequence[Memory]) -> list[tuple[str, Memory]]:
        """Those that the user may read, as they see them, each with its author."""
        entries = await self._projects.entries([row.id for row in rows])
        shared = ((row, entries[row.id]) for row in rows if row.id in entries)
        return [
            (entry.author_id, as_seen_by(user_id, row, entry, access.project.project_id))
            for row, entry in shared
            if entry.may_be_read(user_id, access.role)
        ]

    async def get(self, user_id: str, memory_id: str) -> Memory | None:
        """None if this id is not of a shared memory."""
        found = await self.found(user_id, memory_id)
        return None if found is None else found.seen_by(user_id)

    async def edit(
        self, user_id: str, memory_id: str, edit: MemoryEdit, *, expected: Collection[str] | None = None
    ) -> Memory | None:
        """Change a shared memory in place. None if this id is not of one."""
        found = await self.changeable(user_id, memory_id, expected)
        if found is None:
            return None
        by = Corrector.USER if found.entry.author_id == user_id else Corrector.MEMBER
        edit.applied_to(found.record.memory, now=self._clock())  # refuses invalid edits before embedding
        vectors = await self._embedder.embed([edit.content], is_urgent=False) if edit.content is not None else None
        async with self._ledger.write(found.access.project.owner_id) as held:
            found = await self.still(user_id, memory_id, expected)
            project = found.access.project
            row = edit.applied_to(found.record.memory, now=self._clock(), by=by)
            vectors = found.record.vector[np.newaxis] if vectors is None else vectors
            await self._rows.write(project, held, [found.entry], [row], vectors)
            await self._rows.show([found.entry])
        await self._rows.drop_notes(project, [memory_id])
        return replace(found, record=Record(row, vectors[0])).seen_by(user_id)

    async def delete(self, user_id: str, memory_id: str, *, expected: Collection[str] | None = None) -> bool:
        """Forget a shared memory. False if this id is not of one."""
        found = await self.changeable(user_id, memory_id, expected)
        if found is None:
            return False
        async with self._ledger.write(found.access.project.owner_id) as held:
            found = await self.still(user_id, memory_id, expected)
            await self._rows.remove(found.access.project, held, [found.entry])
        if user_id == found.entry.author_id and found.record.memory.evidence:
            await self._forget_raw_words(found)
        return True

    async def _forget_raw_words(self, found: FoundShared) -> None:
        """Those of the turns that the author's memory quotes, as if it had never been shared."""
        memory = as_authored(found.record.memory, found.entry, found.access.project.project_id)
        async with self._ledger.write(memory.user_id) as held:
            gone = await self._erasure.forget_held(memory.user_id, held, [memory.id], known=[memory])
        await self._erasure.drop_notes(memory.user_id, gone)

    async def presented(self, user_id: str, project_id: str, found: Sequence[Candidate]) -> list[Candidate]:
        """Results of a search as the caller may see them now: the search may have gone by an older role."""
        if not any(one.shared for one in found):
            return list(found)
        access = await self._projects.access(user_id, project_id)
        return [
            replace(one, memory=as_seen_by(user_id, one.memory, one.shared, project_id)) if one.shared else one
            for one in found
            if one.shared is None
            or (
                access is not None
                and one.shared.project_key == access.project.key
                and one.shared.may_be_recalled(user_id, access.role)
            )
        ]

    # For sharing

    async def found(self, user_id: str, memory_id: str) -> FoundShared | None:
        """None if this id is not of a shared memory. Raises `NotFound` for one that the user may not read."""
        entries = await self._projects.entries([memory_id]) if project_key_of(memory_id) else {}
        entry = entries.get(memory_id)
        if entry is None:
            return None
        access = await self._projects.access_by_key(entry.project_key, user_id)
        if access is None or access.project.tenant != self._intake.tenancy.tenant_of(user_id):
            raise NotFound(NO_SUCH_MEMORY)
        if not entry.may_be_read(user_id, access.role):
            raise NotFound(NO_SUCH_MEMORY)
        records = await self._store.get(access.project.owner_id, [memory_id])
        if not records or records[0].memory.status is MemoryStatus.RAW:
            raise NotFound(NO_SUCH_MEMORY)
        return FoundShared(entry, access, records[0])

    async def changeable(self, user_id: str, memory_id: str, expected: Collection[str] | None) -> FoundShared | None:
        """As `found`. Raises `RightMissing` or `VersionChanged` too."""
        found = await self.found(user_id, memory_id)
        if found is None:
            return None
        if not found.entry.may_be_changed(user_id, found.access):
            raise RightMissing(NOT_YOURS)
        refuse_changed(found.seen_by(user_id), expected)
        return found

    async def still(self, user_id: str, memory_id: str, expected: Collection[str] | None) -> FoundShared:
        """The same under the project's lock."""
        found = await self.changeable(user_id, memory_id, expected)
        if found is None:
            raise NotFound(NO_SUCH_MEMORY)
        return found

    async def _writable(self, user_id: str, project_id: str) -> ProjectAccess:
        if not project_id:
            raise BadInput("only memories of a shared project can be shared: name it as project_id")
        access = await self._rows.access(user_id, project_id)
        if not access.may_add:
            raise RightMissing("your role in this project does not allow to add memories")
        return access
