"""Says regularly that this process records turns, so that a gap shows when turns may have been missed."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from memory.errors import Unavailable
from memory.ports import Clock, RecordingTimes

BEAT_SECONDS = 5.0  # a crash is a gap from the last beat on; each costs one small commit


class RecordingBeats:
    """Of one recorder. Never fails: a turn log that is down shows as a gap once it is back."""

    def __init__(self, times: RecordingTimes, clock: Clock) -> None:
        self._times = times
        self._clock = clock
        self._missed_since: float | None = None

    def miss(self) -> None:
        """A turn was lost now."""
        if self._missed_since is None:
            self._missed_since = self._clock()

    async def beat(self) -> None:
        missed, self._missed_since = self._missed_since, None
        try:
            await self._times.beat(missed_since=missed)
        except Unavailable:
            self._missed_since = self._missed_since if missed is None else missed

    async def run(self) -> None:
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            await self.beat()

    async def end(self) -> None:
        with suppress(Unavailable):
            await self._times.end()
