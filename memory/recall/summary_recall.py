"""Finds summaries of past conversations for a question about them.

It never fails a
request: without summaries, the note is as it would be.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from memory.chat.completions import ChatRequest
from memory.errors import Unavailable
from memory.model import Scope
from memory.ports import SessionSummaries
from memory.recall.notes.past_notes import NotePlan
from memory.recall.notes.summary_notes import with_summaries
from memory.recall.past_conversations import PastTalkQuestion, answering
from memory.recall.search_flow import SearchParts
from memory.recall.signals.question_kinds import PAST_TALK_MIN, QuestionKind
from memory.recall.trace import Trace
from memory.runtime.metrics import Metrics

EXAMINED_MAX = 300  # of a user's summaries, the latest; read and compared in 5 ms
SECONDS_MIN = 0.01  # left until the deadline; with less, the note goes without them
EPISODIC = "episodic"


class SummaryRecall:
    """One per process."""

    def __init__(self, summaries: SessionSummaries, search: SearchParts, *, metrics: Metrics) -> None:
        self._summaries = summaries
        self._tokens = search.tokens
        self._metrics = metrics

    async def closing(
        self, scope: Scope, request: ChatRequest, trace: Trace, planned: NotePlan, *, budget: int
    ) -> NotePlan:
        """The plan, with summaries at the end of its new note if the question asks about past conversations."""
        await self._find(scope, request, trace)
        return with_summaries(planned, trace.carried, trace.summaries, budget=budget, tokens=self._tokens)

    async def _find(self, scope: Scope, request: ChatRequest, trace: Trace) -> None:
        kinds, vector = trace.kinds, trace.vector
        if kinds is None or vector is None or not _may_have(request, trace):
            return
        if kinds[QuestionKind.PAST_TALK] < PAST_TALK_MIN:
            return
        with trace.timed("summaries", self._metrics), suppress(Unavailable, TimeoutError):
            async with asyncio.timeout(trace.seconds_left):
                stored = await self._summaries.of_user(scope.user_id, limit=EXAMINED_MAX)
            trace.summaries = tuple(answering(PastTalkQuestion(trace.query, vector, scope, trace.began_at), stored))


def _may_have(request: ChatRequest, trace: Trace) -> bool:
    """Whether a searched question may get summaries at all."""
    types, carried = request.options.memory_types, trace.carried
    if (types and EPISODIC not in types) or trace.seconds_left < SECONDS_MIN:
        return False
    is_searched = trace.decision is not None and trace.decision.search
    return is_searched and trace.are_notes_reviewed and carried.newest is not None and not carried.is_settled


def question_kinds_of(trace: Trace) -> dict[str, object]:
    """For a receipt: how much the question is of each kind, and the number of summaries found."""
    if trace.kinds is None:
        return {}
    kinds: dict[str, object] = {kind: {"score": round(score, 3)} for kind, score in trace.kinds.items()}
    score = round(trace.kinds[QuestionKind.PAST_TALK], 3)
    return kinds | {QuestionKind.PAST_TALK: {"score": score, "summaries": len(trace.summaries)}}


__all__ = ["SummaryRecall", "question_kinds_of"]
