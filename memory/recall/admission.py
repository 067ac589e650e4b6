"""Admission control: how many questions are embedded concurrently, so that each search ends within the deadline.

The CPU cores are few, so a question waits behind the embeddings that were started before it. `Admission` estimates the
time of one embedding from those that completed, and derives from it how many may run at a time. A chat that gets no
slot waits for one while enough of its deadline is left; otherwise it continues without memory, before it costs an
embedding. Only embeddings occupy a slot, so that requests that wait for the store do not block the others.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

RUN_SHARE = 0.3  # share of the deadline that an embedding may be expected to take: the slowest take twice as long
LEFT_MIN = 0.5  # share of the deadline; with less of it left no search starts, because the slowest would be late
SMOOTHING = 0.15  # weight of the newest measurement in the moving average, which spans about ten of them
OUTLIER = 2.0  # a measurement counts as at most this multiple of the estimate: a single slow one is not a trend
ALWAYS = 2  # embeddings that may run whatever the estimate says
WAITING_MAX = 256  # chats; each holds a body of some KB, and not all of so many would get a slot in time


@dataclass(slots=True)
class AdmissionSlot:
    """The slot of one question, held until it is embedded."""

    in_flight_at_start: int  # this one included
    on_release: Callable[..., None]
    is_released: bool = False

    def release(self, seconds: float, *, is_complete: bool) -> None:
        """`seconds`: how long embedding took. `is_complete`: it ended by itself. Later calls do nothing."""
        if not self.is_released:
            self.is_released = True
            self.on_release(self, seconds, is_complete=is_complete)


class Admission:
    """One per process, used from one event loop."""

    def __init__(self, *, at_once_max: int, deadline_seconds: float) -> None:
        self._at_once_max = at_once_max
        self._deadline_seconds = deadline_seconds
        self._seconds_each = 0.0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self.in_flight = 0

    @asynccontextmanager
    async def slot(self, seconds_left: float) -> AsyncIterator[AdmissionSlot | None]:
        """Held until it is released, at the latest when the block ends. None: none was free early enough to search.

        `seconds_left`: until the deadline; part of it may pass waiting.
        """
        if not await self._acquired(seconds_left - LEFT_MIN * self._deadline_seconds):
            yield None
            return
        slot = AdmissionSlot(self.in_flight, self._released)
        try:
            yield slot
        finally:
            slot.release(0.0, is_complete=False)

    @property
    def _has_room(self) -> bool:
        """Whether one more embedding may run concurrently."""
        if self.in_flight >= self._at_once_max:
            return False
        each = self._seconds_each
        return self.in_flight < ALWAYS or (self.in_flight + 1) * each <= RUN_SHARE * self._deadline_seconds

    async def _acquired(self, seconds: float) -> bool:
        """Whether a slot was free within that time; it is then counted as in use."""
        if seconds < 0:
            return False
        if self._has_room and not self._waiting:
            self.in_flight += 1
            return True
        if len(self._waiting) >= WAITING_MAX:
            return False
        called: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(called)
        try:
            await asyncio.wait((called,), timeout=seconds)
        except asyncio.CancelledError:
            if called.done():
                self._free_slot()  # it was given a slot at the same moment
            raise
        finally:
            with suppress(ValueError):
                self._waiting.remove(called)
        return called.done()

    def _released(self, slot: AdmissionSlot, seconds: float, *, is_complete: bool) -> None:
        each, known = seconds / max(slot.in_flight_at_start, self.in_flight), self._seconds_each
        if not known:
            self._seconds_each = each
        elif is_complete or each > known:  # one that failed quickly says nothing about the time that an embedding takes
            self._seconds_each += SMOOTHING * (min(each, OUTLIER * known) - known)
        self._free_slot()

    def _free_slot(self) -> None:
        """Return a slot and hand it to whoever has waited longest."""
        self.in_flight -= 1
        while self._waiting and self._has_room:
            self.in_flight += 1
            self._waiting.popleft().set_result(None)
