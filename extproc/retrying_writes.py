"""Repeats writes while the turn log is unavailable, one at a time, in the order in which they came.

In order, because a turn whose conversation is known must not be written before those that it continues. How much may
wait is not decided here (`PendingWrites`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from memory.errors import Unavailable
from memory.runtime.task_groups import pause_before

PAUSE_SECONDS_MIN, PAUSE_SECONDS_MAX = 0.05, 2.0  # between two tries of the first in line
FIRST_SECONDS_MAX = 120.0  # for the first in line, after which the next is tried: a write may be impossible for ever

T = TypeVar("T")


class RetryingWrites:
    """Of one process. `on_outage` is told of each first failure."""

    def __init__(self, on_outage: Callable[[Unavailable], None]) -> None:
        self._on_outage = on_outage
        self._line = asyncio.Lock()  # lets in by order of arrival
        self._waiting = 0
        self._is_over = asyncio.Event()

    @property
    def is_waiting(self) -> bool:
        """Whether a write waits for the log, so that others have to come after it."""
        return self._waiting > 0

    async def write(self, work: Callable[[], Awaitable[T]]) -> T:
        """What `work` returns, which may be called again. Raises `Unavailable` at the end of patience."""
        if not self._waiting:
            try:
                return await work()
            except Unavailable as error:
                if self._is_over.is_set():
                    raise
                self._on_outage(error)
        self._waiting += 1
        try:
            async with self._line:
                return await self._repeated(work)
        finally:
            self._waiting -= 1

    def give_up(self) -> None:
        """From now on every write is tried once only, those in line as well."""
        self._is_over.set()

    async def _repeated(self, work: Callable[[], Awaitable[T]]) -> T:
        loop = asyncio.get_running_loop()
        ends_at, pause = loop.time() + FIRST_SECONDS_MAX, PAUSE_SECONDS_MIN
        while True:
            try:
                return await work()
            except Unavailable:
                if self._is_over.is_set() or loop.time() >= ends_at:
                    raise
            await pause_before(self._is_over, pause)
            pause = min(2 * pause, PAUSE_SECONDS_MAX)
