"""Chats whose body is still on its way: in a crowd, slow uploads give up their slots.

Envoy lets only so many chats in at a time, and a chat takes its slot with its first byte. Uploads that take long, or
never end, would keep all slots from chats that are here. Where most slots are taken, a chat whose body takes longer
than its length explains goes on without memory, as Envoy would have let it go on without a slot.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

PATIENCE_SECONDS = 1.0  # bodies of usual chats arrive with their headers
BYTES_PER_SECOND_MIN = 1 << 20  # of a body whose length is known: pasted documents and pictures take longer
MORE_SECONDS_MAX = 4.0  # for its length: a client may announce what it never sends
CROWD_SHARE = 0.75  # of the slots
LOOK_SECONDS = 0.25  # as long as there is a crowd


@dataclass(eq=False, slots=True)
class Upload:
    """The body of one chat. `late_at`: by the loop's clock, while it has not arrived; None otherwise."""

    limit: asyncio.Timeout
    late_at: float | None = None

    def wait(self, length: int = 0) -> None:
        """From now on its body is waited for. `length`: its bytes; 0 where nobody knows."""
        self.late_at = asyncio.get_running_loop().time() + PATIENCE_SECONDS
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
