"""Recall that is disabled for users who have opted out, and in doubt for users of whom it cannot be known in time."""

from __future__ import annotations

import asyncio
from time import perf_counter

from memory.chat.completions import ChatRequest
from memory.errors import Unavailable
from memory.model import RecallStatus, Scope
from memory.ports import OptOuts
from memory.recall.compacted import ChatRecall
from memory.recall.signals.upstream import UpstreamSignals
from memory.recall.trace import RecallOutcome
from memory.runtime.metrics import Metrics

LOOKUP_SECONDS_MAX = 0.05  # of the request's deadline; usually it takes some microseconds
RETURN_SECONDS_MAX = 0.3  # since a lookup failed first: a server that was killed is back by then, if it comes back soon
PAUSE_SECONDS = 0.01

OPTED_OUT = RecallOutcome(RecallStatus.DISABLED, "opted_out")
UNKNOWN = RecallOutcome(RecallStatus.UNAVAILABLE, "opt_out_unknown")


class ConsentingRecall:
    """`ChatRecall` for users who have not opted out, and for the others a request without memory."""

    def __init__(self, recall: ChatRecall, opt_outs: OptOuts, metrics: Metrics) -> None:
        self._recall = recall
        self._opt_outs = opt_outs
        self._metrics = metrics
        self._unknown_since: float | None = None  # the loop's time; None while lookups succeed

    async def recall(
        self, scope: Scope, request: ChatRequest, upstream: UpstreamSignals, *, waited: float = 0.0
    ) -> RecallOutcome:
        asked_at = perf_counter()
        refused = await self._refused(scope)
        waited += perf_counter() - asked_at
        if refused is UNKNOWN:
            refused = await self._after_return(scope)
        if refused is None:
            return await self._recall.recall(scope, request, upstream, waited=waited)
        self._metrics.requests.labels(refused.status, refused.reason).inc()
        return refused

    async def _refused(self, scope: Scope) -> RecallOutcome | None:
        try:
            async with asyncio.timeout(LOOKUP_SECONDS_MAX):
                since = await self._opt_outs.since(scope.user_id)
        except (Unavailable, TimeoutError):
            if self._unknown_since is None:
                self._unknown_since = asyncio.get_running_loop().time()
            return UNKNOWN
        self._unknown_since = None
        return None if since is None else OPTED_OUT

    async def _after_return(self, scope: Scope) -> RecallOutcome | None:
        """A server that starts again is waited for, beyond the deadline; one that stays away delays nobody else."""
        loop = asyncio.get_running_loop()
        refused: RecallOutcome | None = UNKNOWN
        ends_at = (self._unknown_since or loop.time()) + RETURN_SECONDS_MAX
        while refused is UNKNOWN and loop.time() < ends_at:
            await asyncio.sleep(PAUSE_SECONDS)
            refused = await self._refused(scope)
        return refused


__all__ = ["ConsentingRecall"]
