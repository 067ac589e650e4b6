"""Changes single memories in place, under the user's lock.

The version that a caller expects is compared while the lock is held: of two callers that have read the same version,
one changes the memory, and the other is refused.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from memory.errors import NotFound
from memory.model import Change, ChangeKind, Memory, MemoryStatus, Record, is_valid_id
from memory.model.raw_words import embedded_text
from memory.model.versions import refuse_changed
from memory.ports import Clock, MemoryBank, MemoryFilter
from memory.service.erasure import Erasure
from memory.service.locked_writes import write_rows
from memory.service.requests import MemoryEdit

PAGE = 100  # rows read at a time
PAGES_PER_LOOK_MAX = 50  # for one history: limits its cost


class MemoryEdits:
    """Methods raise `BadInput` (`NotFound`, `VersionChanged`), `Unavailable` or `Conflict`."""

    def __init__(self, memories: MemoryBank, *, erasure: Erasure, clock: Clock) -> None:
        self._store = memories.store
        self._ledger = memories.ledger
        self._embedder = memories.embedder
        self._erasure = erasure
        self._clock = clock

    async def edit(
        self, user_id: str, memory_id: str, edit: MemoryEdit, *, expected: Collection[str] | None = None
    ) -> Memory:
        """The changed memory, with its id and times of saying. Changed content is embedded again."""
        before = (await self.record(user_id, memory_id)).memory
        refuse_changed(before, expected)  # with invalid edits: before embedding, which takes longer
        text = embedded_text(edit.applied_to(before, now=self._clock()))
        vectors = await self._embedder.embed([text], is_urgent=False) if edit.content is not None else None
        async with self._ledger.write(user_id) as held:
            record = await self.record(user_id, memory_id)
            refuse_changed(record.memory, expected)
            if edit.content is not None:
                await self._erasure.drop_notes(user_id, [memory_id])
            memory = edit.applied_to(record.memory, now=self._clock())
            vectors = record.vector[np.newaxis] if vectors is None else vectors
            await write_rows(self._store, held, user_id, [Change(ChangeKind.UPDATE, memory)], vectors)
        if edit.content is not None:
            await self._erasure.drop_notes(user_id, [memory_id])
        return memory

    async def history(self, user_id: str, memory_id: str) -> list[Memory]:
        """The memory and those that it superseded, directly or through others, latest first."""
        newest = (await self.record(user_id, memory_id)).memory
        by_successor: dict[str, list[Memory]] = {}
        where, cursor = MemoryFilter(user_id, status=MemoryStatus.SUPERSEDED), ""
        for _ in range(PAGES_PER_LOOK_MAX):
            page = await self._store.page(where, limit=PAGE, cursor=cursor)
            for memory in page.memories:
                by_successor.setdefault(memory.superseded_by, []).append(memory)
            cursor = page.next_cursor
            if not cursor:
                break
        chain = {newest.id: newest}
        waiting = [newest.id]
        while waiting:
            older = [m for m in by_successor.get(waiting.pop(), ()) if m.id not in chain]
            chain |= {memory.id: memory for memory in older}
            waiting += [memory.id for memory in older]
        return sorted(chain.values(), key=lambda memory: (memory.id == newest.id, memory.said_at), reverse=True)

    async def record(self, user_id: str, memory_id: str) -> Record:
        found = await self._store.get(user_id, [memory_id]) if is_valid_id(memory_id) else []
        if not found:
            raise NotFound("there is no such memory")
        return found[0]
