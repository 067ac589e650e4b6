"""Deletes the rows with the raw words of turns that left the conversation record: trimmed, expired, deleted, rewritten.

The notes that hold one of them are dropped.

Under the user's lock: a window that was being learnt when its turn was deleted has then either written its rows or lost
its lease. Interrupted anywhere, it is repeated. Logs no content.
"""

from __future__ import annotations

from memory.ports import MemoryBank, NoteBook, RemovedWords
from memory.runtime.telemetry import Telemetry
from memory.service.locked_writes import delete_raw_words
from memory.service.user_back_off import UserBackOff

TURNS_AT_ONCE = 100  # under one hold of the user's lock: 25 possible rows each


class WordRemoval:
    """Several workers may run it: they only delay each other."""

    def __init__(self, removed: RemovedWords, memories: MemoryBank, notes: NoteBook, telemetry: Telemetry) -> None:
        self._removed = removed
        self._notes = notes
        self._clock = telemetry.clock
        self._store = memories.store
        self._ledger = memories.ledger
        self._back_off = UserBackOff(telemetry.clock)

    async def run(self) -> None:
        """Delete all rows of removed turns. Raises as `UserBackOff.work_off`."""
        await self._back_off.work_off(self._removed.next_user, self._delete)

    async def _delete(self, user_id: str) -> None:
        async with self._ledger.write(user_id) as held:
            turn_ids = await self._removed.turn_ids(user_id, limit=TURNS_AT_ONCE)
            await held.renew()
            await delete_raw_words(self._store, self._notes, user_id, turn_ids, now=self._clock())
        await self._removed.settle(user_id, turn_ids)
