"""Builds the profiles of users whose memories have changed, soon after and in the background.

It never fails and never delays learning. A user whose memories change all the time is built every few seconds. Never
logs content.
"""

from __future__ import annotations

import asyncio

import structlog

from memory.errors import MemproxyError
from memory.ports import MemoryBank, Profiles, Tokens
from memory.runtime.task_groups import pause_before
from memory.runtime.telemetry import Telemetry
from memory.service.profiles import ProfileBuilder

POLL_SECONDS = 0.25
REST_SECONDS = 2.0  # between two builds of one user
STALE_USERS_MAX = 50  # looked at per poll

log = structlog.get_logger(__name__)


class ProfileRefresher:
    """Any number of processes may run one: they only repeat each other's work."""

    def __init__(self, *, memories: MemoryBank, profiles: Profiles, tokens: Tokens, telemetry: Telemetry) -> None:
        self._builder = ProfileBuilder(memories=memories, profiles=profiles, clock=telemetry.clock, tokens=tokens)
        self._profiles = profiles
        self._metrics = telemetry.metrics
        self._resting: dict[str, float] = {}  # users, and when they were built by the event loop's clock
        self._is_broken = False

    async def run(self, until: asyncio.Event) -> None:
        while not until.is_set():
            await self.refresh()
            await pause_before(until, POLL_SECONDS)

    async def refresh(self) -> int:
        """Build the profiles that are due; returns for how many users."""
        built, now = 0, asyncio.get_running_loop().time()
        self._resting = {user_id: at for user_id, at in self._resting.items() if now - at < REST_SECONDS}
        try:
            for user_id in await self._profiles.stale(limit=STALE_USERS_MAX):
                if user_id in self._resting:
                    continue
                self._resting[user_id] = now
                outcome = "built" if await self._builder.build(user_id) else "overtaken"
                self._metrics.profiles.labels(outcome).inc()
                built += outcome == "built"
        except (MemproxyError, ArithmeticError, LookupError, TypeError, ValueError) as error:
            if not self._is_broken:
                log.warning("profiles cannot be built now", error=type(error).__name__)
            self._is_broken = True
            return built
        self._is_broken = False
        return built
