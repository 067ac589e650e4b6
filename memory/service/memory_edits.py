"""Changes single memories in place, under the user's lock.

The version that a caller expects is compared while the lock is held: of two callers that have read the same version,
one changes the memory, and the other is refused.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from memory.model import Change, ChangeKind, Memory, MemoryStatus
from memory.model.raw_words import embedded_text
from memory.ports import MemoryFilter
from memory.service.locked_writes import write_rows
from memory.service.memory_scan import own_record, scanned
from memory.service.requests import MemoryEdit
from memory.service.service_parts import Service

EXAMINED_MAX = 5_000  # superseded memories, the newest, for one history: limits its cost


class MemoryEdits(Service):
    """Methods raise `BadInput` (`NotFound`, `VersionChanged`), `Unavailable` or `Conflict`."""

    async def edit(
        self, user_id: str, memory_id: str, edit: MemoryEdit, *, expected: Collection[str] | None = None
    ) -> Memory:
        """The changed memory, with its id and times of saying. Changed content is embedded again."""
        # with another version, or an invalid edit, it ends before embedding, which takes longer
        before = await own_record(self._store, user_id, memory_id, expected=expected)
        text = embedded_text(edit.applied_to(before.memory, now=self._clock()))
        vectors = await self._embedder.embed([text], is_urgent=False) if edit.content is not None else None
        async with self._ledger.write(user_id) as held:
            record = await own_record(self._store, user_id, memory_id, expected=expected)
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
        newest = (await own_record(self._store, user_id, memory_id)).memory
        by_successor: dict[str, list[Memory]] = {}
        superseded, examined = MemoryFilter(user_id, status=MemoryStatus.SUPERSEDED), 0
        async for memories in scanned(self._store, superseded):
            for memory in memories:
                by_successor.setdefault(memory.superseded_by, []).append(memory)
            examined += len(memories)
            if examined >= EXAMINED_MAX:
                break
        chain = {newest.id: newest}
        waiting = [newest.id]
        while waiting:
            older = [m for m in by_successor.get(waiting.pop(), ()) if m.id not in chain]
            chain |= {memory.id: memory for memory in older}
            waiting += [memory.id for memory in older]
        return sorted(chain.values(), key=lambda memory: (memory.id == newest.id, memory.said_at), reverse=True)
