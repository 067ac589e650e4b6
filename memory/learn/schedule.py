"""Runs upkeep periodically, in the background of learning: one user after the other, in one process at a time.

It must never disturb learning: an error with one user is counted, and that user waits for the next round.
"""

from __future__ import annotations

import asyncio

import structlog

from memory.errors import MemproxyError, Unavailable
from memory.learn.retention import totals
from memory.learn.upkeep import Upkeep
from memory.ports import Clock, UpkeepSchedule
from memory.runtime.metrics import Metrics
from memory.runtime.task_groups import pause_before

log = structlog.get_logger(__name__)

LOOK_SECONDS = 60.0  # between two checks for a due user
REST_SECONDS = 0.5  # between two users, so that other writers of Milvus Lite get their turn
PATIENCE_SECONDS = 900.0  # other processes take over a round that takes longer


class UpkeepLoop:
    """Upkeep of all users until told to stop. Any number of workers may run it; one at a time is active."""

    def __init__(
        self, upkeep: Upkeep, *, upkeep_schedule: UpkeepSchedule, clock: Clock, metrics: Metrics, every: float
    ) -> None:
        """`every`: seconds between two rounds for one user."""
        self._upkeep = upkeep
        self._schedule = upkeep_schedule
        self._clock = clock
        self._metrics = metrics
        self._every = every

    async def run(self, until: asyncio.Event) -> None:
        while not until.is_set():
            had_work = await self.look_after_next()
            await pause_before(until, REST_SECONDS if had_work else LOOK_SECONDS)

    async def look_after_next(self) -> bool:
        """One round for the user who is due; False if nobody is, or if that is not known now."""
        try:
            user_id = await self._schedule.next_due(now=self._clock(), every=self._every, patience=PATIENCE_SECONDS)
            if user_id is None:
                return False
            self._metrics.upkeep_rounds.labels(await self._looked_after(user_id)).inc()
            await self._schedule.ended(user_id, now=self._clock())
        except Unavailable:  # of the turn log; a round in progress will be taken over
            return False
        return True

    async def _looked_after(self, user_id: str) -> str:
        try:
            steps = await self._upkeep.run(user_id)
        except MemproxyError as error:
            log.warning("a round of upkeep was broken off", error=type(error).__name__)
            return "broken_off"
        if steps:
            log.info("memories were looked after", **totals(steps))
        return "done"
