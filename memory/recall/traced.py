"""Recall with a span around it, and one for each of its stages. Changes nothing of what recall does."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from memory.chat.completions import ChatRequest
from memory.model import Scope
from memory.recall.compacted import ChatRecall
from memory.recall.signals.upstream import UpstreamSignals
from memory.recall.trace import RecallOutcome
from memory.runtime.telemetry import Telemetry
from memory.runtime.tracing import NO_TRACER, SpanName


class TracedRecall:
    """The interface of `RecallPipeline`."""

    def __init__(self, recall: ChatRecall, telemetry: Telemetry) -> None:
        self._recall = recall
        self._tracer = telemetry.tracer
        self._clock = telemetry.clock

    async def recall(self, scope: Scope, request: ChatRequest, upstream: UpstreamSignals) -> RecallOutcome:
        with self._tracer.span(SpanName.RECALL):
            outcome = await self._recall.recall(scope, request, upstream)
            since_epoch = self._clock() - asyncio.get_running_loop().time()
            self._tracer.stages([replace(one, began_at=one.began_at + since_epoch) for one in outcome.stages])
            self._tracer.note(
                status=outcome.status,
                reason=outcome.reason,
                memories=outcome.count,
                receipt_id=outcome.receipt_id,
                compacted=outcome.compacted is not None,
            )
        return outcome


def traced_recall(recall: ChatRecall, telemetry: Telemetry) -> ChatRecall:
    """Recall itself while traces are off."""
    return recall if telemetry.tracer is NO_TRACER else TracedRecall(recall, telemetry)
