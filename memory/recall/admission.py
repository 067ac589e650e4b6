"""How many questions are embedded at a time, so that each search ends within the deadline, and who waits for a place.

The cores are few, and a question waits for the embedding of whoever came before. How long one takes of the time of all
is learnt from those that ran; from that follows how many may be under way. A chat that finds no place waits for one,
since a crowd that comes at once is soon over, and a chat that goes on without memory is soon back. What cannot end in
time any more goes on without: before it costs an embedding, and before it makes the others late. Only embedding is
counted: whoever waits for the store must not keep those out who need nothing of it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

RUN_SHARE = 0.3  # of the deadline that an embedding may be expected to take: the slowest take twice as long
LEFT_MIN = 0.5  # of the deadline; with less of it left no search begins, as the slowest would be late
SMOOTHING = 0.15  # weight of the newest; about ten of them make the estimate
OUTLIER = 2.0  # one that takes longer than so many times the estimate counts as that: it is no trend yet
ALWAYS = 2  # that may run whatever the estimate says
WAITING_MAX = 256  # chats; each holds a body of some KB, and so many do not all get a place in time


@dataclass(slots=True)
class AdmissionSlot:
    """One question's, until it is embedded. `beside`: how many were under way when it began, itself included."""

    in_flight_at_start: int
    on_release: Callable[..., None]
    is_released: bool = False

    def release(self, seconds: float, *, is_complete: bool) -> None:
        """Give it to the next, and say how long embedding took, and whether it got to its end. Only once."""
        if not self.is_released:
            self.is_released = True
            self.on_release(self, seconds, is_complete=is_complete)


class Admission:
    """One per process; used from one loop."""

    def __init__(self, *, at_once_max: int, deadline_seconds: float) -> None:
        self._at_once_max = at_once_max
        self._deadline_seconds = deadline_seconds
        self._seconds_each = 0.0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self.in_flight = 0

    @asynccontextmanager
    async def slot(self, seconds_left: float) -> AsyncIterator[AdmissionSlot | None]:
        """Hold a place until it is left, at the latest at the end. None: there is none in time.

        `seconds_left` until the deadline; a part of them may be spent waiting.
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
        """Whether one more may run beside those that do."""
        if self.in_flight >= self._at_once_max:
            return False
        each = self._seconds_each
        return self.in_flight < ALWAYS or (self.in_flight + 1) * each <= RUN_SHARE * self._deadline_seconds

    async def _acquired(self, seconds: float) -> bool:
        """Whether a place was found within that time; it is counted as taken then."""
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
                self._free_slot()  # it was given a place in the same moment
            raise
        finally:
            with suppress(ValueError):
                self._waiting.remove(called)
        return called.done()

    def _released(self, slot: AdmissionSlot, seconds: float, *, is_complete: bool) -> None:
        each, known = seconds / max(slot.in_flight_at_start, self.in_flight), self._seconds_each
        if not known:
            self._seconds_each = each
        elif is_complete or each > known:  # one that failed quickly tells nothing
            self._seconds_each += SMOOTHING * (min(each, OUTLIER * known) - known)
        self._free_slot()

    def _free_slot(self) -> None:
        """Give the place up, to those who wait longest."""
        self.in_flight -= 1
        while self._waiting and self._has_room:
            self.in_flight += 1
            self._waiting.popleft().set_result(None)
