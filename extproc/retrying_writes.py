"""Writes to the turn log: bounded, repeated during an outage until it is over, and the beats that make a gap visible.

Repeated one at a time, in the order in which they came, because a turn whose conversation is known must not be written
before those that it continues.
"""

from __future__ import annotations

import asyncio
import math
import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import suppress
from typing import TypeVar

from prometheus_client import Gauge

from extproc.exchange import CloseTurn, LeaveOut, Observed, OpenTurn
from extproc.turn_links import ContinueTurn
from memory.errors import Late, Unavailable, Unusable
from memory.model import SentExchange
from memory.ports import Clock, RecordingTimes
from memory.runtime.task_groups import pause_before

PAUSE_SECONDS_MIN, PAUSE_SECONDS_MAX = 0.05, 2.0  # between two tries of the first in line
REFUSED_SECONDS_MAX = 120.0  # for the first in line, if it alone may be refused, and for ever
PENDING_MAX = 10_000  # tasks: of small turns, whose texts are the smaller part of what waits
PENDING_BYTES_MAX = 256 << 20  # of texts: a turn has some KB, but the conversation that it came in has up to 16 MiB
BEAT_SECONDS = 5.0  # a crash is a gap from the last beat on; each costs one small commit

T = TypeVar("T")


class RetryingWrites:
    """Of one process. `on_outage` is told of each first failure, `waiting` shows how many wait.

    Nothing is given up for an outage, however long. What is `Unusable` or `Late` is, after a while: others wait for it.
    """

    def __init__(self, on_outage: Callable[[Unavailable], None], waiting: Gauge) -> None:
        self._on_outage = on_outage
        self._waiting_shown = waiting
        self._line = asyncio.Lock()  # lets in by order of arrival
        self._waiting = 0
        self._is_over = asyncio.Event()

    @property
    def is_waiting(self) -> bool:
        """Whether a write waits for the log, so that others have to come after it."""
        return self._waiting > 0

    async def write(self, work: Callable[[], Awaitable[T]]) -> T:
        """What `work` returns, which may be called again. Raises `Unusable`, `Late`; `Unavailable` after `give_up`."""
        if not self._waiting:
            try:
                return await work()
            except Unavailable as error:
                if self._is_over.is_set():
                    raise
                self._on_outage(error)
        self._waiting += 1
        self._waiting_shown.inc()
        try:
            async with self._line:
                return await self._repeated(work)
        finally:
            self._waiting -= 1
            self._waiting_shown.dec()

    def give_up(self) -> None:
        """From now on every write is tried once only, those in line as well."""
        self._is_over.set()

    async def _repeated(self, work: Callable[[], Awaitable[T]]) -> T:
        loop = asyncio.get_running_loop()
        ends_at, pause = math.inf, PAUSE_SECONDS_MIN  # the end is set while this alone is refused
        while True:
            try:
                return await work()
            except Unavailable as error:
                is_refused = isinstance(error, Late | Unusable)
                ends_at = min(ends_at, loop.time() + REFUSED_SECONDS_MAX) if is_refused else math.inf
                if self._is_over.is_set() or loop.time() >= ends_at:
                    raise
            await pause_before(self._is_over, pause)
            pause = min(2 * pause, PAUSE_SECONDS_MAX)


class PendingWrites:
    """How much waits for the turn log, by number and by bytes: a log that hangs must not fill the filter's memory.

    `size`: bytes of its texts, as `text_bytes` says.
    """

    def __init__(self) -> None:
        self._count = 0
        self._bytes = 0

    def has_room(self, size: int = 0) -> bool:
        return self._count < PENDING_MAX and self.has_room_for_bytes(size)

    def has_room_for_bytes(self, size: int) -> bool:
        return self._bytes + size <= PENDING_BYTES_MAX

    def add(self, size: int) -> None:
        self._count += 1
        self._bytes += size

    def remove(self, size: int) -> None:
        self._count -= 1
        self._bytes -= size


def text_bytes(command: Observed) -> int:
    """The memory that the texts of this command take."""
    return sum(map(sys.getsizeof, _texts(command)))


def _texts(command: Observed) -> Iterator[str]:
    match command:
        case OpenTurn(turn, _, sent):
            yield from (message.content for message in turn.messages)
            yield from _said(sent.earlier)
        case LeaveOut(_, exchange):
            yield from _said((exchange,))
        case CloseTurn():
            yield command.answer
        case ContinueTurn():
            yield command.answer
            yield from (message.content for message in command.tools)


def _said(exchanges: Iterable[SentExchange]) -> Iterator[str]:
    for exchange in exchanges:
        yield from (message.content for message in exchange.said)
        yield exchange.answer


class RecordingBeats:
    """Says regularly that this process records turns, so that a gap shows when turns may have been missed.

    Never fails: a turn log that is down shows as a gap once it is back.
    """

    def __init__(self, times: RecordingTimes, clock: Clock) -> None:
        self._times = times
        self._clock = clock
        self._missed_since: float | None = None

    def miss(self) -> None:
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
