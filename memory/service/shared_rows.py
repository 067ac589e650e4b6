"""The rows of shared projects in the store, and their entries: written and deleted under the project's lock.

A row without an entry is invisible, and an entry that is `owner_only` shows it to its author alone. So entries are
narrowed before a row changes or goes, and widened after it stands: an interruption leaves too little visible, never too
much. A row that is left behind is found by its author, with whom it is erased.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

import numpy as np

from memory.errors import NotFound
from memory.model import Change, ChangeKind, Memory, Vector
from memory.model.memories import MemoryVisibility
from memory.model.projects import ProjectAccess, SharedMemory, SharedProject, as_authored, row_of
from memory.ports import Clock, LedgerWrite, MemoryBank, MemoryFilter, RequestStores
from memory.ports.paging import batched
from memory.service.locked_writes import write_rows

ROWS_AT_ONCE = 200  # deleted in one step, before which the lock is renewed


class SharedRows:
    """Methods raise `NotFound`, `Unavailable` or `Conflict`; each may be repeated safely."""

    def __init__(self, memories: MemoryBank, stores: RequestStores, *, clock: Clock) -> None:
        self._store = memories.store
        self._ledger = memories.ledger
        self._projects = stores.projects
        self._notes = stores.notes
        self._clock = clock

    async def access(self, user_id: str, project_id: str) -> ProjectAccess:
        """Of a member. Raises `NotFound` for everybody else, whether there is such a project or not."""
        access = await self._projects.access(user_id, project_id)
        if access is None:
            raise NotFound("there is no such project")
        return access

    async def store_hidden(
        self, project: SharedProject, held: LedgerWrite, entries: Sequence[SharedMemory], memories: Sequence[Memory],
        vectors: Vector,
    ) -> None:  # fmt: skip
        """Store the memories, visible to their authors alone until `show`."""
        await self._projects.put([replace(entry, visibility=MemoryVisibility.OWNER_ONLY) for entry in entries])
        await self.write(project, held, entries, memories, vectors)

    async def write(
        self, project: SharedProject, held: LedgerWrite, entries: Sequence[SharedMemory], memories: Sequence[Memory],
        vectors: Vector,
    ) -> None:  # fmt: skip
        rows = [row_of(memory, entry, project) for memory, entry in zip(memories, entries, strict=True)]
        changes = [Change(ChangeKind.UPDATE, row) for row in rows]
        await write_rows(self._store, held, project.owner_id, changes, vectors)

    async def show(self, entries: Sequence[SharedMemory]) -> None:
        """From now on they are visible as their entries say, and notes made until now are void."""
        now = self._clock()
        await self._projects.put([replace(entry, changed_at=now) for entry in entries])

    async def drop_notes(self, project: SharedProject, memory_ids: Sequence[str], *, of: Collection[str] = ()) -> None:
        """Delete the notes of all readers that hold these memories, or those of the readers `of` alone.

        None is put back as soon as the entries say so; this removes their text.
        """
        if memory_ids:
            for reader in of or await self._projects.readers(project.key):
                await self._notes.drop(reader, memory_ids, now=self._clock())

    async def drop_notes_of(self, project: SharedProject, user_id: str) -> None:
        """All notes of somebody who leaves the project that hold memories of it."""
        ids = await self._store.ids(MemoryFilter(project.owner_id, status=None))
        for batch in batched(ids, ROWS_AT_ONCE):
            await self.drop_notes(project, batch, of=[user_id])

    async def remove(self, project: SharedProject, held: LedgerWrite, entries: Collection[SharedMemory]) -> None:
        """Delete rows and entries; nothing restores them."""
        for batch in batched(list(entries), ROWS_AT_ONCE):
            await self.show([replace(entry, visibility=MemoryVisibility.OWNER_ONLY) for entry in batch])
            ids = [entry.memory_id for entry in batch]
            await self._delete(project.owner_id, held, ids)
            await self.drop_notes(project, ids)
            await self._projects.drop(ids)

    async def clear(self, project: SharedProject) -> None:
        """Delete all of the project, and the project itself."""
        where = MemoryFilter(project.owner_id, status=None, with_raw=True)
        is_left = True
        while is_left:
            async with self._ledger.write(project.owner_id) as held:
                ids = await self._store.ids(where)
                is_left = bool(ids)
                for batch in batched(ids, ROWS_AT_ONCE):
                    entries = await self._projects.entries(batch)
                    await self.remove(project, held, entries.values())
                    await self._delete(project.owner_id, held, [one for one in batch if one not in entries])
                if not is_left:
                    await self._projects.delete(project.key)

    async def forget_authored(self, user_id: str, *, project_id: str = "") -> int:
        """Delete what the user authored, in projects of that id or in all. Returns how many memories."""
        forgotten = 0
        for project, entries in await self._authored(user_id):
            if project_id in ("", project.project_id):
                async with self._ledger.write(project.owner_id) as held:
                    await self.remove(project, held, entries)
                forgotten += len(entries)
        return forgotten

    async def forget_sources(
        self, user_id: str, turn_ids: Collection[str], without: Callable[[Memory], Memory | None]
    ) -> tuple[list[str], list[str]]:
        """Take these turns out of what the user shared. `without`: the memory without them, None if nothing is left.

        Returns the ids of the memories that are forgotten, and of those that other evidence supports.
        """
        gone, kept = [], []
        for project, entries in await self._authored(user_id):
            async with self._ledger.write(project.owner_id) as held:
                by_id = {entry.memory_id: entry for entry in entries}
                for record in await self._store.get(project.owner_id, list(by_id)):
                    if not any(quoted.turn_id in turn_ids for quoted in record.memory.evidence):
                        continue
                    entry = by_id[record.memory.id]
                    left = without(as_authored(record.memory, entry, project.project_id))
                    if left is None:
                        await self.remove(project, held, [entry])
                        gone.append(entry.memory_id)
                    else:
                        await self.write(project, held, [entry], [left], record.vector[np.newaxis])
                        kept.append(entry.memory_id)
        return gone, kept

    async def authored(self, user_id: str) -> list[Memory]:
        """What the user shared, as they see it."""
        found = []
        for project, entries in await self._authored(user_id):
            by_id = {entry.memory_id: entry for entry in entries}
            for ids in batched(list(by_id), ROWS_AT_ONCE):
                rows = await self._store.memories(project.owner_id, ids)
                found += [as_authored(row, by_id[row.id], project.project_id) for row in rows]
        return found

    async def _authored(self, user_id: str) -> list[tuple[SharedProject, list[SharedMemory]]]:
        grouped: dict[str, list[SharedMemory]] = {}
        for entry in await self._projects.authored(user_id):
            grouped.setdefault(entry.project_key, []).append(entry)
        found = []
        for key, those in grouped.items():
            access = await self._projects.access_by_key(key, user_id)
            if access is not None:
                found.append((access.project, those))
        return found

    async def _delete(self, owner_id: str, held: LedgerWrite, memory_ids: Sequence[str]) -> None:
        if memory_ids:
            await held.forget(memory_ids)
            await held.renew()
            await self._store.delete(owner_id, memory_ids)
