"""Deletes the rows with the raw words of turns that left the conversation record: trimmed, expired, deleted, rewritten.

The notes that hold one of them are dropped.

Under the user's lock: a window that was being learnt when its turn was deleted has then either written its rows or lost
its lease. Interrupted anywhere, it is repeated. Logs no content.
"""

from __future__ import annotations

from memory.model.raw_words import raw_row_ids
from memory.ports import MemoryBank, NoteBook, RemovedWords
from memory.runtime.telemetry import Telemetry
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
        """Delete all rows of removed turns. Raises the error of the first user for whom that fails, whom the next run
        leaves out for a while.
        """
        while user_id := await self._removed.next_user(without=self._back_off.waiting()):
            self._back_off.begin(user_id)
            await self._delete(user_id)
            self._back_off.succeed(user_id)

    async def _delete(self, user_id: str) -> None:
        async with self._ledger.write(user_id) as held:
            turn_ids = await self._removed.turn_ids(user_id, limit=TURNS_AT_ONCE)
            await held.renew()
            row_ids = [one for turn_id in turn_ids for one in raw_row_ids(user_id, turn_id)]
            await self._store.delete(user_id, row_ids)
            await self._notes.drop(user_id, row_ids, now=self._clock())
        await self._removed.settle(user_id, turn_ids)
