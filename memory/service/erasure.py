"""Deletes memories permanently: the only code that does so, for REST, command line and requests in a chat.

The ids are first recorded as forgotten, so that no stored plan restores them; then all notes that hold them are
dropped, so that no later request carries them; then the rows are deleted. Deleting a memory never restores one that it
superseded. The conversation record is kept, but not learnt from again.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from memory.errors import NotFound
from memory.model import (
    Change,
    ChangeKind,
    Evidence,
    Memory,
    MemoryStatus,
    Record,
    Role,
    Scope,
    is_valid_id,
    statement_key,
)
from memory.model.derived import hanging_on
from memory.model.memories import CONFIDENCE_STEP
from memory.model.raw_words import raw_row_ids
from memory.ports import Clock, ConversationRecord, LedgerWrite, MemoryBank, MemoryFilter, RequestTraces
from memory.service.locked_writes import write_rows

DELETE_BATCH = 200  # rows deleted under one hold of the user's lock: well within its expiry
SOURCE_PAGE = 100
HANGING_PAGE = 1_000


@dataclass(frozen=True, slots=True)
class SourceForgotten:
    """`forgotten`: memories based on that turn alone. `kept`: those that have other evidence of the user."""

    forgotten: tuple[str, ...]
    kept: tuple[str, ...]


class Erasure:
    """Methods raise `NotFound`, `Unavailable` or `Conflict`; each may be repeated safely."""

    def __init__(
        self, *, memories: MemoryBank, turn_log: ConversationRecord, traces: RequestTraces, clock: Clock
    ) -> None:
        self._store = memories.store
        self._ledger = memories.ledger
        self._turn_log = turn_log
        self._notes = traces.notes
        self._receipts = traces.receipts
        self._usage_counts = traces.usage_counts
        self._clock = clock

    async def forget_held(self, user_id: str, held: LedgerWrite, memory_ids: Collection[str]) -> list[str]:
        """Delete under the user's lock, which the caller holds. Returns all deleted ids, with duplicates, reflections
        and the raw words of the turns that they quote.

        The caller calls `drop_notes` with them again after releasing the lock.
        """
        dependent = [*await self._hanging_on(user_id, memory_ids), *await self._raw_words_of(user_id, memory_ids)]
        gone = list(dict.fromkeys([*memory_ids, *dependent]))
        await self._erase_held(user_id, held, gone)
        return gone

    async def _erase_held(self, user_id: str, held: LedgerWrite, memory_ids: Collection[str]) -> None:
        await held.forget(memory_ids)  # first: if we die in between, no stored plan restores them
        await self.drop_notes(user_id, memory_ids)
        await self._usage_counts.drop(user_id, memory_ids)
        await held.renew()  # the steps before may have taken long
        await self._store.delete(user_id, memory_ids)

    async def _hanging_on(self, user_id: str, memory_ids: Collection[str]) -> list[str]:
        """Archived duplicates of these memories, and reflections derived from them."""
        if not memory_ids:
            return []
        wheres = (
            MemoryFilter(user_id, status=MemoryStatus.ARCHIVED),
            MemoryFilter(user_id, status=None, memory_types=("reflective",)),
        )
        possible: dict[str, Memory] = {}
        for where in wheres:
            cursor, seen = "", False
            while not seen or cursor:
                page = await self._store.page(where, limit=HANGING_PAGE, cursor=cursor)
                cursor, seen = page.next_cursor, True
                possible |= {memory.id: memory for memory in page.memories}
        return hanging_on(possible.values(), memory_ids)

    async def _raw_words_of(self, user_id: str, memory_ids: Collection[str]) -> list[str]:
        """The rows with the words of the turns that these memories quote."""
        known = await self._store.get(user_id, list(memory_ids))
        turn_ids = {quoted.turn_id for record in known for quoted in record.memory.evidence if quoted.turn_id}
        possible = [row_id for turn_id in sorted(turn_ids) for row_id in raw_row_ids(user_id, turn_id)]
        return [record.memory.id for record in await self._store.get(user_id, possible)] if possible else []

    async def drop_notes(self, user_id: str, memory_ids: Collection[str]) -> None:
        """Drop all notes that hold these memories, so that no later request repeats them.

        Called before the deletion, since nobody would repeat it after a crash; and after releasing the lock, since
        until then a request in progress may read the old contents and store a note with them.
        """
        if memory_ids:
            await self._notes.drop(user_id, memory_ids, now=self._clock())

    async def memory(self, user_id: str, memory_id: str) -> None:
        async with self._ledger.write(user_id) as held:
            if not is_valid_id(memory_id) or not await self._store.get(user_id, [memory_id]):
                raise NotFound("there is no such memory")
            gone = await self.forget_held(user_id, held, [memory_id])
        await self.drop_notes(user_id, gone)

    async def scope(self, user_id: str, project_id: str) -> tuple[int, int]:
        """Delete all memories of the user, or of exactly that project, and withdraw turns not learnt before this call.

        Without a project, also deletes the user's receipts and links between exchanges. Returns the numbers of memories
        and turns.
        """
        Scope(user_id, project_id)  # refuses invalid ids
        called_at = self._clock()
        where = MemoryFilter(user_id, project_id, status=None, with_raw=True, exact_project=bool(project_id))
        memories = turns = 0
        while True:
            async with self._ledger.write(user_id) as held:
                turns += await self._turn_log.withdraw(user_id, project_id=project_id, opened_before=called_at)
                page = await self._store.page(where, limit=DELETE_BATCH, cursor="")
                ids = [memory.id for memory in page.memories]
                if not ids:
                    break
                await self._erase_held(user_id, held, ids)  # dependent memories are of the same scope
                memories += len(ids)
            await self.drop_notes(user_id, ids)
        if not project_id:
            await self._receipts.erase(user_id)  # they contain the user's queries
            await self._turn_log.chains.erase(user_id)
        return memories, turns

    async def source(self, user_id: str, turn_id: str) -> SourceForgotten:
        """Forget what is based on that turn alone, and remove its text from the evidence of everything else.

        Includes superseded and archived memories; a turn not learnt yet never will be. Raises `NotFound` if there is
        neither such a turn to learn nor a memory based on it.
        """
        async with self._ledger.write(user_id):
            is_withdrawn = await self._turn_log.withdraw(user_id, opened_before=math.inf, only=[turn_id]) > 0
        forgotten: list[str] = []
        kept: list[str] = []
        cursor, seen = "", False
        while not seen or cursor:
            everything = MemoryFilter(user_id, status=None, with_raw=True)
            page = await self._store.page(everything, limit=SOURCE_PAGE, cursor=cursor)
            cursor, seen = page.next_cursor, True
            ids = [memory.id for memory in page.memories if _stands_on(memory, turn_id)]
            if ids:
                gone, left = await self._take_out(user_id, ids, turn_id)
                forgotten += gone
                kept += left
        if not (forgotten or kept or is_withdrawn):
            raise NotFound("no memory stands on such a turn")
        return SourceForgotten(tuple(forgotten), tuple(kept))

    async def _take_out(self, user_id: str, memory_ids: Sequence[str], turn_id: str) -> tuple[list[str], list[str]]:
        async with self._ledger.write(user_id) as held:
            records = [r for r in await self._store.get(user_id, memory_ids) if _stands_on(r.memory, turn_id)]
            now = self._clock()
            rows = {record.memory.id: without_source(record.memory, turn_id, now=now) for record in records}
            gone = [memory_id for memory_id, row in rows.items() if row is None]
            left = [row for row in rows.values() if row is not None]
            if left:
                changes = [Change(ChangeKind.UPDATE, row) for row in left]
                await write_rows(self._store, held, user_id, changes, _vectors(records, left))
            if gone:
                gone = await self.forget_held(user_id, held, gone)
        await self.drop_notes(user_id, gone)
        return gone, [row.id for row in left]


def without_source(memory: Memory, turn_id: str, *, now: float) -> Memory | None:
    """The memory without that turn's evidence; None if no other statement of the user supports it."""
    left = tuple(quoted for quoted in memory.evidence if quoted.turn_id != turn_id)
    if not any(_holds_up(quoted, memory) for quoted in left):
        return None
    confidence = max(0.0, 1.0 - (1.0 - memory.confidence) / (1.0 - CONFIDENCE_STEP))
    return replace(memory, evidence=left, confidence=confidence, updated_at=now)


def _stands_on(memory: Memory, turn_id: str) -> bool:
    return any(quoted.turn_id == turn_id for quoted in memory.evidence)


def _holds_up(quoted: Evidence, memory: Memory) -> bool:
    """Whether this quote alone says what the memory says, so that it was added as a repetition.

    For a memory worded by a model, or with a date, the first evidence counts as its source.
    """
    if quoted.role == Role.TOOL:
        return False
    says_it = statement_key(quoted.quote) == statement_key(memory.content) or quoted.quote in memory.content
    return says_it or quoted == memory.evidence[0] or _is_repetition(quoted, memory)


def _is_repetition(quoted: Evidence, memory: Memory) -> bool:
    """Whether it repeats the text that the memory was made from."""
    return statement_key(quoted.quote) == statement_key(memory.evidence[0].quote)


def _vectors(records: Sequence[Record], rows: Sequence[Memory]) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    by_id = {record.memory.id: record.vector for record in records}
    return np.stack([by_id[row.id] for row in rows])


__all__ = ["Erasure", "SourceForgotten", "without_source"]
