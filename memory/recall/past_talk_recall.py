"""Finds what was said in past conversations for a question about them: the assistant's answers, and summaries.

It never fails a request: where nothing is found in time, the note is as it would be.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace

from memory.errors import Unavailable
from memory.model import MemoryStatus, Query, Role
from memory.model.raw_words import ANSWERED
from memory.ports import MemoryFilter, SessionSummaries
from memory.recall.notes.past_talk_notes import PastTalk
from memory.recall.past_conversations import ANSWERS_MAX, PastTalkQuestion, answering, answers_to, time_named
from memory.recall.retrieval import Retrieval
from memory.recall.signals.classifier import PAST_TALK_MIN, QuestionKind
from memory.recall.signals.search_decision import Decision
from memory.recall.stages import AskedChat, EmbeddedQuestion, Reached, RecallSettings, Review

EXAMINED_MAX = 300  # of a user's summaries, the latest; read and compared in 5 ms
SECONDS_MIN = 0.01  # left until the deadline; with less, the note goes without them
EPISODIC = "episodic"
NO_TALK = PastTalk()


class PastTalkRecall:
    """One per process."""

    def __init__(self, summaries: SessionSummaries, retrieval: Retrieval, settings: RecallSettings) -> None:
        self._summaries = summaries
        self._retrieval = retrieval
        self._settings = settings

    async def find(self, asked: AskedChat, review: Review, reached: Reached) -> PastTalk:
        """Empty, unless the question was searched for and asks about past conversations."""
        query, embedded = reached.latest(Query), reached.latest(EmbeddedQuestion)
        if query is None or embedded is None or not _may_have(asked, review, reached.latest(Decision)):
            return NO_TALK
        if embedded.kinds[QuestionKind.PAST_TALK] < PAST_TALK_MIN:
            return NO_TALK
        # The model sees these answers anyway.
        said_here = tuple(one.content for one in asked.conversation.messages if one.role == Role.ASSISTANT)
        question = PastTalkQuestion(query.text, embedded.vector, asked.scope, asked.began_at, said_here)
        with reached.timed("past_talk"), suppress(Unavailable, TimeoutError):
            async with asyncio.timeout(asked.seconds_left):
                await self._find(question, reached)
        return reached.latest(PastTalk) or NO_TALK

    async def _find(self, asked: PastTalkQuestion, reached: Reached) -> None:
        """Each step adds what it found, so that the deadline takes only what is missing then."""
        stored = []
        if self._settings.recalls_summaries:
            with suppress(Unavailable):
                stored = await self._summaries.of_user(asked.scope.user_id, limit=EXAMINED_MAX)
        past = reached.add(PastTalk(summaries=tuple(answering(asked, stored))))
        if not self._settings.recalls_answers:
            return
        scope, spans = asked.scope, asked.spans
        within = tuple((span.start, span.end) for span in spans)
        where = MemoryFilter(scope.user_id, scope.project_id, scope.agent_id, status=None, with_raw=True)
        answers = replace(where, status=MemoryStatus.RAW, source=ANSWERED)
        found = await self._retrieval.said(replace(answers, said_within=within), asked.vector, limit=ANSWERS_MAX)
        if found or not spans:
            reached.add(replace(past, passages=tuple(answers_to(asked, found))))
            return
        of_time = replace(where, said_within=within)
        is_silent = not past.summaries and not await self._retrieval.said(of_time, asked.vector, limit=1)
        elsewhen = await self._retrieval.said(answers, asked.vector, limit=ANSWERS_MAX)
        silent = time_named(spans) if is_silent and (elsewhen or stored) else None
        reached.add(replace(past, passages=tuple(answers_to(asked, elsewhen)), silent=silent))


def _may_have(asked: AskedChat, review: Review, decision: Decision | None) -> bool:
    """Whether a searched question may get what was said at all."""
    types, carried = asked.request.options.memory_types, review.carried
    if (types and EPISODIC not in types) or asked.seconds_left < SECONDS_MIN:
        return False
    is_searched = decision is not None and decision.search
    return is_searched and review.is_complete and carried.newest is not None and not carried.is_settled
