"""Reads what is stored for a chat, once and in time. Users who have opted out get no memory, nor do users of whom that
cannot be known in time.
"""

from __future__ import annotations

import asyncio

from memory.errors import Unavailable
from memory.model import RecallStatus
from memory.ports import ChatState, ChatStateQuery, ChatStates
from memory.recall.trace import RecallOutcome, Trace

READ_SECONDS_MAX = 0.05  # of the request's deadline; usually some microseconds, on PostgreSQL a round trip
RETURN_SECONDS_MAX = 0.3  # since a read failed first: a server that was killed is back by then, if it comes back soon
PAUSE_SECONDS = 0.01

OPTED_OUT = RecallOutcome(RecallStatus.DISABLED, "opted_out")
UNKNOWN = RecallOutcome(RecallStatus.UNAVAILABLE, "opt_out_unknown")


class StateReader:
    """One per process."""

    def __init__(self, states: ChatStates) -> None:
        self._states = states
        self._unknown_since: float | None = None  # the loop's time; None while reads succeed

    async def read(self, query: ChatStateQuery, trace: Trace) -> ChatState | RecallOutcome:
        """The state, or how the request ends without memory.

        A server that starts again is waited for, beyond the deadline; one that stays away delays nobody else.
        """
        stored = await self._in_time(query)
        if stored is None:
            loop = asyncio.get_running_loop()
            began_at = loop.time()
            ends_at = (self._unknown_since or began_at) + RETURN_SECONDS_MAX
            while stored is None and loop.time() < ends_at:
                await asyncio.sleep(PAUSE_SECONDS)
                stored = await self._in_time(query)
            trace.ends_at += loop.time() - began_at
        if stored is None:
            return UNKNOWN
        return stored if stored.opted_out_at is None else OPTED_OUT

    async def _in_time(self, query: ChatStateQuery) -> ChatState | None:
        try:
            async with asyncio.timeout(READ_SECONDS_MAX):
                stored = await self._states.read(query)
        except (Unavailable, TimeoutError):
            if self._unknown_since is None:
                self._unknown_since = asyncio.get_running_loop().time()
            return None
        self._unknown_since = None
        return stored
