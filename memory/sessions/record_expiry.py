"""Deletes what the conversation record has kept for long enough, in the background of the worker."""

from __future__ import annotations

import asyncio

import structlog

from memory.errors import Unavailable
from memory.ports import Clock, RecordedMessages
from memory.runtime.task_groups import pause_before

EXPIRED_AT_ONCE = 200  # turns, and messages, deleted in one transaction: others wait a few milliseconds

log = structlog.get_logger(__name__)


class RecordExpiry:
    """Deletes turns and messages that are older than `keep_seconds` until told to stop. Any number of workers may run
    it.
    """

    def __init__(self, record: RecordedMessages, *, clock: Clock, keep_seconds: float, look: float = 600.0) -> None:
        self._record = record
        self._clock = clock
        self._keep_seconds = keep_seconds
        self._look = look

    async def run(self, until: asyncio.Event) -> None:
        while not until.is_set():
            await self.expire()
            await pause_before(until, self._look)

    async def expire(self) -> int:
        """Delete all that has expired by now, as far as the turn log is available. Returns how many."""
        before, expired = self._clock() - self._keep_seconds, 0
        try:
            while found := await self._record.expire(before=before, limit=EXPIRED_AT_ONCE):
                expired += found
        except Unavailable:  # the next look continues
            pass
        if expired:
            log.info("expired parts of the conversation record were deleted", count=expired)
        return expired
