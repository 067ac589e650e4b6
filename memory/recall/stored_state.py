"""Reads what is stored for a chat, once and in time. Users of whom that cannot be known in time get no memory."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from memory.errors import Unavailable
from memory.ports import ChatState, ChatStateQuery, ChatStates
from memory.recall.project_access import ReadableProjects

READ_SECONDS_MAX = 0.05  # of the request's deadline; usually some microseconds, on PostgreSQL a round trip
RETURN_SECONDS_MAX = 0.3  # since a read failed first: a server that was killed is back by then, if it comes back soon
PAUSE_SECONDS = 0.01


@dataclass(frozen=True, slots=True)
class StoredState:
    """`state`: None if it could not be read. `waited`: seconds of waiting for a server that starts again, which a
    request's deadline does not include.
    """

    state: ChatState | None
    waited: float = 0.0


class StateReader:
    """One per process."""

    def __init__(self, states: ChatStates, projects: ReadableProjects) -> None:
        """`projects`: whose memories in earlier notes the user may read."""
        self._states = states
        self._projects = projects
        self._unknown_since: float | None = None  # the loop's time; None while reads succeed

    async def read(self, query: ChatStateQuery) -> StoredState:
        """A server that starts again is waited for; one that stays away delays nobody else."""
        state = await self._in_time(query)
        if state is not None:
            return StoredState(state)
        loop = asyncio.get_running_loop()
        began_at = loop.time()
        ends_at = (self._unknown_since or began_at) + RETURN_SECONDS_MAX
        while state is None and loop.time() < ends_at:
            await asyncio.sleep(PAUSE_SECONDS)
            state = await self._in_time(query)
        return StoredState(state, loop.time() - began_at)

    async def _in_time(self, query: ChatStateQuery) -> ChatState | None:
        try:
            async with asyncio.timeout(READ_SECONDS_MAX):
                stored = await self._states.read(query)
                stored = await self._projects.readable_notes(query.user_id, stored)
        except (Unavailable, TimeoutError):
            if self._unknown_since is None:
                self._unknown_since = asyncio.get_running_loop().time()
            return None
        self._unknown_since = None
        return stored
