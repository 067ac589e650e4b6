"""Large bodies take turns, so that their work leaves most of this process's core to other chats; slow ones give way.

All threads share the interpreter: whoever reads 1 MB holds the others up, wherever it is done. So one exchange with a
large body is worked on at a time, and after it there is a rest in proportion to the time that it took. Others wait for
their turn, within bounds: a chat that goes on without the notes of its history costs the upstream its prefix cache,
which is longer than a wait. Small bodies take no turns.

Envoy lets only so many chats in at a time, and a chat takes its slot with its first byte. Uploads of any size that take
long, or never end, would keep all slots from chats that are here. Where most slots are taken, a chat whose body takes
longer than its length explains goes on without memory, as Envoy would have let it go on without a slot.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import TypeAlias

RESTS = 3.0  # as long as the work: large bodies then take a quarter of the core
REST_SECONDS_MAX = 0.75  # less than what the next one waits, so that who sends one after the other keeps memory
WAIT_SECONDS_MAX = 1.0  # envoy.yaml grants a large body two seconds in all
WAITING_MAX = 8  # each is up to 32 MiB of memory; further ones are not even sent to us

UPLOAD_PATIENCE_SECONDS = 1.0  # bodies of usual chats arrive with their headers
BYTES_PER_SECOND_MIN = 1 << 20  # of a body whose length is known: pasted documents and pictures take longer
MORE_SECONDS_MAX = 4.0  # for its length: a client may announce what it never sends
CROWD_SHARE = 0.75  # of the slots
LOOK_SECONDS = 0.25  # as long as there is a crowd

Work: TypeAlias = Callable[[], AbstractContextManager[None]]  # each call is around a work on one body
LIGHT: Work = nullcontext


class LargeBodies:
    """One per process. An exchange has an id, which both of its streams know."""

    def __init__(self, *, rests: float = RESTS, wait_seconds_max: float = WAIT_SECONDS_MAX) -> None:
        self._rests, self._wait_seconds_max = rests, wait_seconds_max
        self._exchange = ""  # the one that works, or did so last
        self._works = self._waiting = 0
        self._began_at = self._rest_owed = 0.0
        self._rest: asyncio.TimerHandle | None = None
        self._changed = asyncio.Event()

    def has_room(self, exchange: str) -> bool:
        """Whether it is worth waiting."""
        return self._waiting < WAITING_MAX or self._is_turn_of(exchange)

    async def has_turn(self, exchange: str) -> bool:
        """Wait for a turn, which must be used at once; False: there was none in time."""
        if not self.has_room(exchange):
            return False
        self._waiting += 1
        try:
            async with asyncio.timeout(self._wait_seconds_max):
                while not self._is_turn_of(exchange):
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            return False
        finally:
            self._waiting -= 1
        return True

    @contextmanager
    def work(self, exchange: str) -> Iterator[None]:
        """Around each work on a large body of this exchange, which may overlap."""
        self._begin(exchange)
        try:
            yield
        finally:
            self._end()

    def _begin(self, exchange: str) -> None:
        if not self._works:
            self._exchange = exchange
            self._began_at = asyncio.get_running_loop().time()
        self._works += 1
        if self._rest is not None:
            self._rest_owed = max(0.0, self._rest.when() - self._began_at)
            self._rest.cancel()
            self._rest = None
        self._changed.set()  # for the other stream of this exchange

    def _end(self) -> None:
        self._works -= 1
        if not self._works:
            loop = asyncio.get_running_loop()
            rest = self._rest_owed + self._rests * (loop.time() - self._began_at)
            self._rest = loop.call_later(min(rest, REST_SECONDS_MAX), self._rested)

    def _rested(self) -> None:
        self._rest, self._rest_owed = None, 0.0
        self._changed.set()

    def _is_turn_of(self, exchange: str) -> bool:
        is_same = bool(exchange) and exchange == self._exchange
        return is_same or (not self._works and self._rest is None)


@dataclass(eq=False, slots=True)
class Upload:
    """The body of one chat. `late_at`: by the loop's clock, while it has not arrived; None otherwise."""

    limit: asyncio.Timeout
    late_at: float | None = None

    def wait(self, length: int = 0) -> None:
        """From now on its body is waited for. `length`: its bytes; 0 where nobody knows."""
        self.late_at = asyncio.get_running_loop().time() + UPLOAD_PATIENCE_SECONDS
        self.late_at += min(length / BYTES_PER_SECOND_MIN, MORE_SECONDS_MAX)

    @property
    def has_given_up(self) -> bool:
        return self.limit.expired()

    def arrived(self) -> None:
        self.late_at = None


class Uploads:
    """One per process. `slots`: how many chats Envoy lets in at a time."""

    def __init__(self, slots: int) -> None:
        self._crowd = max(1, int(slots * CROWD_SHARE))
        self._streams: dict[Upload, None] = {}  # in the order in which they came
        self._looking: asyncio.TimerHandle | None = None

    @asynccontextmanager
    async def stream(self) -> AsyncIterator[Upload]:
        """The block ends, without an error, where the upload gives up its slot."""
        upload = Upload(asyncio.timeout(None))
        self._streams[upload] = None
        self._look()
        try:
            async with upload.limit:
                yield upload
        except TimeoutError:
            if not upload.has_given_up:
                raise
        finally:
            del self._streams[upload]

    def _look(self) -> None:
        if self._looking is None and len(self._streams) >= self._crowd:
            self._looking = asyncio.get_running_loop().call_later(LOOK_SECONDS, self._thin_out)

    def _thin_out(self) -> None:
        self._looking = None
        loop = asyncio.get_running_loop()
        if len(self._streams) >= self._crowd:
            for upload in self._streams:
                if upload.late_at is not None and loop.time() >= upload.late_at:
                    upload.arrived()
                    upload.limit.reschedule(loop.time())
        self._look()
