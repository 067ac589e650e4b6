"""Drops the notes that hold summaries which are gone, so that no later request repeats them.

Whoever forgets something does it at once; a worker does it for all other changes of turns, whether or not summaries are
still made. Interrupted anywhere, it is repeated.
"""

from __future__ import annotations

import asyncio

from memory.ports import Clock, NoteBook, SessionSummaries
from memory.runtime.task_groups import pause_before

POLL_SECONDS = 1.0
WITHDRAWN_BATCH = 200  # summaries


class WithdrawnSummaries:
    """Methods raise `Unavailable`. Several processes may run it: they only repeat each other's work."""

    def __init__(self, *, summaries: SessionSummaries, notes: NoteBook, clock: Clock) -> None:
        self._summaries = summaries
        self._notes = notes
        self._clock = clock

    async def run(self, until: asyncio.Event) -> None:
        while not until.is_set():
            await self.drop()
            await pause_before(until, POLL_SECONDS)

    async def drop(self, user_id: str = "") -> int:
        """Of this user, or of all; returns the number of summaries."""
        dropped = 0
        while gone := await self._summaries.withdrawn(user_id, limit=WITHDRAWN_BATCH):
            for user in dict.fromkeys(one.user_id for one in gone):
                ids = [summary_id for one in gone if one.user_id == user for summary_id in one.ids()]
                await self._notes.drop(user, ids, now=self._clock())
            await self._summaries.settle(gone)
            dropped += len(gone)
        return dropped
