"""Finds what was said in past conversations for a question about them: the assistant's answers, and summaries.

It never fails a request: where nothing is found in time, the note is as it would be.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace

from memory.chat.completions import ChatRequest
from memory.errors import Unavailable
from memory.model import MemoryStatus, Role, Scope
from memory.model.raw_words import ANSWERED
from memory.ports import MemoryFilter, SessionSummaries
from memory.recall.past_conversations import ANSWERS_MAX, PastTalkQuestion, answering, answers_to, time_named
from memory.recall.retrieval import Retrieval
from memory.recall.search_flow import SearchParts
from memory.recall.signals.question_kinds import PAST_TALK_MIN, QuestionKind
from memory.recall.trace import Trace
from memory.runtime.metrics import Metrics

EXAMINED_MAX = 300  # of a user's summaries, the latest; read and compared in 5 ms
SECONDS_MIN = 0.01  # left until the deadline; with less, the note goes without them
EPISODIC = "episodic"


class PastTalkRecall:
    """One per process."""

    def __init__(
        self, summaries: SessionSummaries, search: SearchParts, *, recalls_answers: bool, metrics: Metrics
    ) -> None:
        self._summaries = summaries
        self._retrieval: Retrieval | None = search.retrieval if recalls_answers else None
        self._metrics = metrics

    async def find(self, scope: Scope, request: ChatRequest, trace: Trace) -> None:
        """Fill the trace, if the question asks about past conversations."""
        kinds, vector = trace.kinds, trace.vector
        if kinds is None or vector is None or not _may_have(request, trace):
            return
        if kinds[QuestionKind.PAST_TALK] < PAST_TALK_MIN:
            return
        with trace.timed("past_talk", self._metrics), suppress(Unavailable, TimeoutError):
            asked = PastTalkQuestion(trace.query, vector, scope, trace.began_at, _answers_here(request))
            async with asyncio.timeout(trace.seconds_left):
                await self._find(asked, trace)

    async def _find(self, asked: PastTalkQuestion, trace: Trace) -> None:
        """Each step keeps what it found, so that the deadline takes only what is missing then."""
        stored = []
        with suppress(Unavailable):
            stored = await self._summaries.of_user(asked.scope.user_id, limit=EXAMINED_MAX)
        trace.past = replace(trace.past, summaries=tuple(answering(asked, stored)))
        if self._retrieval is None:
            return
        scope, spans = asked.scope, asked.spans
        within = tuple((span.start, span.end) for span in spans)
        where = MemoryFilter(scope.user_id, scope.project_id, scope.agent_id, status=None, with_raw=True)
        answers = replace(where, status=MemoryStatus.RAW, source=ANSWERED)
        found = await self._retrieval.said(replace(answers, said_within=within), asked.vector, limit=ANSWERS_MAX)
        if found or not spans:
            trace.past = replace(trace.past, passages=tuple(answers_to(asked, found)))
            return
        is_silent = not trace.past.summaries and not await self._retrieval.said(
            replace(where, said_within=within), asked.vector, limit=1
        )
        elsewhen = await self._retrieval.said(answers, asked.vector, limit=ANSWERS_MAX)
        silent = time_named(spans) if is_silent and (elsewhen or stored) else None
        trace.past = replace(trace.past, passages=tuple(answers_to(asked, elsewhen)), silent=silent)


def _may_have(request: ChatRequest, trace: Trace) -> bool:
    """Whether a searched question may get what was said at all."""
    types, carried = request.options.memory_types, trace.carried
    if (types and EPISODIC not in types) or trace.seconds_left < SECONDS_MIN:
        return False
    is_searched = trace.decision is not None and trace.decision.search
    return is_searched and trace.are_notes_reviewed and carried.newest is not None and not carried.is_settled


def _answers_here(request: ChatRequest) -> tuple[str, ...]:
    """What the assistant said in the conversation itself, which the model sees anyway."""
    said = request.conversation.messages if request.conversation is not None else ()
    return tuple(message.content for message in said if message.role == Role.ASSISTANT)


def question_kinds_of(trace: Trace) -> dict[str, object]:
    """For a receipt: how much the question is of each kind, and what was found of past conversations."""
    if trace.kinds is None:
        return {}
    kinds: dict[str, object] = {kind: {"score": round(score, 3)} for kind, score in trace.kinds.items()}
    found = {"summaries": len(trace.past.summaries), "answers": len({one.answer.id for one in trace.past.passages})}
    return kinds | {QuestionKind.PAST_TALK: {"score": round(trace.kinds[QuestionKind.PAST_TALK], 3), **found}}
