"""Stages 7 to 9 for one question: query, embed, decide what was left open, retrieve, rank, select.

Chats and API searches share this code, so that a search returns what a chat would get. Where a `memory_rewrite` model
may rephrase the question, its version is searched in addition to the plain one, never instead of it: the result of the
plain search stands if the model fails, returns junk, or is late.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias, TypeVar

from memory.errors import Unavailable
from memory.model import (
    Candidate,
    Conversation,
    Message,
    Query,
    Question,
    RecallStatus,
    RequestOptions,
    Role,
    Scope,
    Selection,
    Vector,
)
from memory.model.recalled import AskedWhole
from memory.ports import Embedder, Tokens
from memory.recall.admission import AdmissionSlot
from memory.recall.notes.injection import line_tokens
from memory.recall.query import build_query
from memory.recall.query_rewriter import NoRewrite, Rewriter
from memory.recall.ranking.fusion import fused
from memory.recall.ranking.ranking import Budget, Ranked, select
from memory.recall.ranking.weights import DEFAULT_RANKING
from memory.recall.retrieval import Retrieval
from memory.recall.rewrite_prompt import Rewritten
from memory.recall.signals import search_decision
from memory.recall.signals.classifier import SignalClassifier
from memory.recall.signals.question_kinds import NO_KIND, KindScores, QuestionClassifier, whole_of
from memory.recall.trace import RecallSettings, Trace
from memory.runtime.task_groups import unwrapped
from memory.runtime.telemetry import Telemetry
from memory.runtime.tracing import SpanName

LABEL = "- [2025-01-31]"  # the label of a memory's line, for counting: all dates cost the same
# Reserved for embedding and ranking a rewritten question: an embedding takes 5 ms, at worst 20.
SECOND_SEARCH_SECONDS = 0.025
RANKING_SECONDS = 0.01  # reserved for ranking and rendering: usually 2 ms
CALLERS_AT_ONCE = 4  # API searches; chats wait behind their embeddings
MODEL_SECONDS_MIN = 0.005  # no model answers in less, so it is not asked

T = TypeVar("T")
Rewriting: TypeAlias = "asyncio.Task[Rewritten | NoRewrite]"


@dataclass(frozen=True, slots=True)
class SearchParts:
    """The parts of a search: embedding, the decision whether to search at all, rewriting, and retrieval.

    `classifier` returns None until it has been trained; rules decide meanwhile. `tokens` counts the cost of memories.
    `rewriter`: None rewrites nothing. `questions`: the classifier of questions that no single memory answers, likewise.
    """

    embedder: Embedder
    classifier: Callable[[], SignalClassifier | None]
    retrieval: Retrieval
    tokens: Tokens
    rewriter: Rewriter | None = None
    questions: Callable[[], QuestionClassifier | None] = lambda: None


class SearchFlow:
    """Runs searches. One per process."""

    def __init__(self, parts: SearchParts, *, telemetry: Telemetry, settings: RecallSettings) -> None:
        self._embedder = parts.embedder
        self._retrieval = parts.retrieval
        self._classifier = parts.classifier
        self._questions = parts.questions
        self._tokens = parts.tokens
        self._metrics = telemetry.metrics
        self._tracer = telemetry.tracer
        self._settings = settings
        self._rewriter = parts.rewriter
        self._callers = asyncio.Semaphore(CALLERS_AT_ONCE)

    # Chats

    async def for_chat(
        self,
        scope: Scope,
        conversation: Conversation,
        options: RequestOptions,
        trace: Trace,
        review_notes: Callable[[], Awaitable[None]],
        slot: AdmissionSlot,
    ) -> tuple[RecallStatus, str]:
        """Search and fill the trace; returns the status to report if no note is injected. Raises `Unavailable`.

        `review_notes`: loads the notes that the conversation carries into the trace; runs while the question is
        embedded. `slot`: admission for the embedding; released as soon as that is done.
        """
        search_plain = partial(self._search_plain, scope, conversation, options, trace, review_notes, slot)
        seconds = trace.seconds_left - SECOND_SEARCH_SECONDS
        if self._rewriter is None or not self._rewriter.wants(conversation):
            return await search_plain()
        if seconds < MODEL_SECONDS_MIN:
            trace.rewrite = {"rewrite": "no_time"}
            return await search_plain()
        async with background(self._rewriter.rewrite(conversation, seconds=seconds)) as rewriting:
            outcome = await search_plain()
            if outcome[0] is RecallStatus.EMPTY:
                await self._search_rewritten(scope, rewriting, options, trace)
        return outcome

    async def _search_plain(
        self,
        scope: Scope,
        conversation: Conversation,
        options: RequestOptions,
        trace: Trace,
        review_notes: Callable[[], Awaitable[None]],
        slot: AdmissionSlot,
    ) -> tuple[RecallStatus, str]:
        query = build_query(conversation)
        trace.query = query.text
        asked = Question(query, scope, trace.began_at, options.memory_types)
        async with background(self._embedded_for_chat(query, trace, slot)) as embedding:
            # The embedding is now in a thread, or on its way to a server: what follows runs concurrently.
            await asyncio.sleep(0)
            prefetch = self._retrieval.prefetch(scope, trace.stored.revision)
            await review_notes()
            async with background(self._retrieval.read_ahead(asked, prefetch)) as reading:
                vector = trace.vector = await embedding
        trace.kinds = self._kinds(query, vector)
        whole = _whole(trace.kinds, scope)
        if trace.decision is None:
            with trace.timed("decide", self._metrics):
                trace.decision = (
                    search_decision.decide_late(conversation, vector=vector, classifier=self._classifier())
                    if whole is None
                    else search_decision.ABOUT_A_WHOLE
                )
            if not trace.decision.search:
                trace.plain = RecallStatus.SKIPPED, trace.decision.reason
                return trace.plain
        with trace.timed("retrieve", self._metrics):
            ranked = await self._retrieval.ranked(
                replace(asked, in_notes=trace.carried.held_earlier(), whole=whole),
                vector,
                prefetch=prefetch,
                reading=None if reading.cancelled() else reading.result(),
                seconds=trace.seconds_left - RANKING_SECONDS,
            )
        self._take(ranked, options, trace)
        trace.plain = RecallStatus.EMPTY, "nothing_relevant"
        return trace.plain

    async def _search_rewritten(
        self, scope: Scope, rewriting: Rewriting, options: RequestOptions, trace: Trace
    ) -> None:
        """Search with the rewritten question too, if it comes in time; otherwise the plain result stands."""
        trace.rewrite = {"rewrite": NoRewrite.LATE}  # stays if the deadline ends this step
        try:
            with trace.timed("rewrite", self._metrics):
                rewritten = await rewriting
            if isinstance(rewritten, NoRewrite):
                trace.rewrite = {"rewrite": rewritten}
                return
            query = Query(rewritten.text)
            with trace.timed("search_again", self._metrics):
                vector = await self._embedded(query)
                in_notes = trace.carried.held_earlier()
                asked = Question(query, scope, trace.began_at, options.memory_types, in_notes)
                again = await self._retrieval.ranked(asked, vector)
        except Unavailable:
            trace.rewrite = {"rewrite": "unused"}
            return
        self._take(self._fused(trace.ranked, again), options, trace)
        trace.rewrite = {"rewrite": "used", "rewritten": rewritten.query, "hypothesis": rewritten.hypothesis}

    def _take(self, ranked: Ranked, options: RequestOptions, trace: Trace) -> None:
        """Store ranking and selection together, without an await, so that the deadline cannot separate them."""
        with trace.timed("select", self._metrics):
            room = trace.carried.room(budget=options.token_budget or self._settings.token_budget, tokens=self._tokens)
            trace.selection = self._selected(
                ranked, options, room=room, in_notes=frozenset(trace.carried.held_earlier())
            )
            trace.ranked = ranked

    # API callers

    async def for_caller(
        self,
        scope: Scope,
        *,
        query: str,
        history: Sequence[Message],
        options: RequestOptions,
        now: float,
        as_of: float | None = None,
    ) -> list[Candidate]:
        """What a chat with this history would get; a given `token_budget` is filled. Raises `Unavailable`.

        No chat waits for this call, so a missing working set is loaded first. A rewriting model gets as much time as it
        would for a chat.
        """
        conversation = Conversation(messages=(*history, Message(role=Role.USER, content=query)))

        async def ranked(query: Query) -> Ranked:
            with self._tracer.span(SpanName.EMBED):
                vector = await self._embedded(query)
            at = now if as_of is None else as_of
            whole = _whole(self._kinds(query, vector), scope)
            question = Question(query, scope, at, options.memory_types, claim=options.claim, whole=whole)
            with self._tracer.span(SpanName.RETRIEVE):
                if as_of is not None:
                    return await self._retrieval.ranked_as_of(question, vector)
                return await self._retrieval.ranked(question, vector, waits=True)

        async with self._callers:
            with self._tracer.span(SpanName.RECALL):
                found = await self._search_with_rewrite(conversation, ranked)
        room = options.token_budget or self._settings.token_budget
        # A search that names a budget wants it filled; a chat wants only what is relevant.
        fill = options.token_budget is not None and not found.is_overview
        return list(self._selected(found, options, room=room, fill=fill).candidates)

    async def _search_with_rewrite(
        self, conversation: Conversation, ranked: Callable[[Query], Awaitable[Ranked]]
    ) -> Ranked:
        query = build_query(conversation)
        seconds = self._settings.deadline_seconds - SECOND_SEARCH_SECONDS
        if self._rewriter is None or seconds < MODEL_SECONDS_MIN or not self._rewriter.wants(conversation):
            return await ranked(query)
        async with background(self._rewriter.rewrite(conversation, seconds=seconds)) as rewriting:
            found = await ranked(query)
            rewritten = await rewriting
            if not isinstance(rewritten, Rewritten):
                return found
            return self._fused(found, await ranked(Query(rewritten.text)))

    async def _embedded_for_chat(self, query: Query, trace: Trace, slot: AdmissionSlot) -> Vector:
        with trace.timed("embed", self._metrics):
            vector = await self._embedded(query)
        slot.release(trace.timings_ms["embed"] / 1000, is_complete=True)
        return vector

    # Both

    async def _embedded(self, query: Query) -> Vector:
        vectors = await self._embedder.embed([query.text], is_urgent=True, as_query=True)
        vector: Vector = vectors[0]
        return vector

    def _kinds(self, query: Query, vector: Vector) -> KindScores:
        classifier = self._questions()
        return NO_KIND if classifier is None else classifier.scores(query.text, vector)

    def _fused(self, plain: Ranked, rewritten: Ranked) -> Ranked:
        return plain if plain.is_overview else fused(plain, rewritten, weight=DEFAULT_RANKING.rewritten)

    def _selected(
        self,
        ranked: Ranked,
        options: RequestOptions,
        *,
        room: int,
        in_notes: frozenset[str] = frozenset(),
        fill: bool = False,
    ) -> Selection:
        threshold, bar = options.similarity_threshold, DEFAULT_RANKING.bar
        budget = Budget(
            tokens=room,
            memories=options.retrieval_limit or self._settings.retrieval_limit,
            near_tokens=bar.several_tokens,
            is_filled=fill,
        )
        return select(
            ranked,
            budget,
            tokens=partial(line_tokens, tokens=self._tokens, label=LABEL),
            similarity_threshold=self._settings.similarity_threshold if threshold is None else threshold,
            in_notes=in_notes,
        )


def _whole(kinds: KindScores, scope: Scope) -> AskedWhole | None:
    """What the question is about as a whole: no project where the request names none."""
    whole = whole_of(kinds)
    return None if whole is AskedWhole.PROJECT and not scope.project_id else whole


@asynccontextmanager
async def background(work: Coroutine[Any, Any, T]) -> AsyncIterator[asyncio.Task[T]]:
    """Run `work` while the body runs, and cancel it when the body ends. A single error is raised as it is, without a
    group.
    """
    with unwrapped():
        async with asyncio.TaskGroup() as group:
            task = group.create_task(work)
            yield task
            task.cancel()
