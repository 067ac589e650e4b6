"""What an operator sees and does: requests, queue, dead letters, health.

Of requests the API shows ids, statuses, reasons, counts and times alone (`memory.api.operator`): no text of a user.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass

from memory.errors import Unavailable
from memory.ports import QueueDepth
from memory.ports.operators import NO_PARTS, DeploymentParts, EvaluationReports, PartHealth
from memory.service.service_parts import Service, ServiceParts

HEALTH_SECONDS_MAX = 3.0  # a part that takes longer serves no chat in time
LATE_SECONDS = 900.0  # a turn is learnt minutes after its conversation paused; with retries it takes longer
PROBE = "Is the embedding model ready?"


@dataclass(frozen=True, slots=True)
class OperatorSources:
    """What operators see besides the state: reports of evaluations, and the other parts of the deployment."""

    reports: EvaluationReports
    parts: DeploymentParts = NO_PARTS


class OperatorService(Service):
    """Methods raise `Unavailable`, or `BadInput` for a cursor that is none of ours."""

    def __init__(self, parts: ServiceParts, sources: OperatorSources) -> None:
        super().__init__(parts)
        self._turn_log = log = parts.turn_log
        self.dead_letters, self.replay, self.drop = log.dead_letters, log.replay, log.drop
        self.requests = parts.stores.receipts.page_of_all  # their texts are not for operators
        self.reports = sources.reports
        self._parts = sources.parts

    async def queue(self) -> QueueDepth:
        return await self._turn_log.depth(now=self._clock())

    async def health(self) -> list[PartHealth]:
        """Each part that memory needs, tried now, all at once, and the other parts of the deployment."""
        tries = {
            "store": self._try_store(),
            "turn_log": self._try_turn_log(),
            "embedder": self._try_embedder(),
            "learning": self._try_learning(),
        }
        looking = asyncio.gather(*map(_reason_of, tries.values()))
        reasons, others = await asyncio.gather(looking, self._parts.health())
        return [*(PartHealth(part, reason) for part, reason in zip(tries, reasons, strict=True)), *others]

    async def _try_store(self) -> str:
        return "" if await self._store.is_ready() else "not_ready"

    async def _try_turn_log(self) -> str:
        await self.queue()
        return ""

    async def _try_embedder(self) -> str:
        await self._embedder.embed([PROBE], is_urgent=False)
        return ""

    async def _try_learning(self) -> str:
        return "late" if (await self.queue()).oldest_seconds > LATE_SECONDS else ""


async def _reason_of(attempt: Coroutine[None, None, str]) -> str:
    """Why the part does not work; "" if it does."""
    try:
        async with asyncio.timeout(HEALTH_SECONDS_MAX):
            return await attempt
    except Unavailable:
        return "unavailable"
    except TimeoutError:
        return "slow"
