"""Query, retrieval and ranking for one question: query, embed, decide what was left open, retrieve, rank, select.

Chats and API searches share this code, so that a search returns what a chat would get. Where a `memory_rewrite` model
may rephrase the question, its version is searched in addition to the plain one, never instead of it: the result of the
plain search stands if the model fails, returns junk, or is late.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
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
from memory.recall.query import Rewritten, build_query
from memory.recall.query_rewriter import NoRewrite, Rewriter
from memory.recall.ranking.combining import fused
from memory.recall.ranking.ranking import Budget, Ranked, select
from memory.recall.ranking.weights import DEFAULT_RANKING
from memory.recall.retrieval import Retrieval
from memory.recall.signals import search_decision
from memory.recall.signals.classifier import NO_KIND, KindScores, QuestionClassifier, SignalClassifier, whole_of
from memory.recall.signals.search_decision import Decision
from memory.recall.stages import AskedChat, EmbeddedQuestion, Reached, RecallSettings, Review, Rewrite, Searched
from memory.runtime.task_groups import unwrapped
from memory.runtime.tracing import SpanName, Telemetry

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
    """What a search works with. Classifiers are None until they have been trained; rules decide meanwhile."""

    embedder: Embedder
    classifier: Callable[[], SignalClassifier | None]
    retrieval: Retrieval
    tokens: Tokens  # the cost of memories
    rewriter: Rewriter | None = None  # None: rewrites nothing
    questions: Callable[[], QuestionClassifier | None] = lambda: None


@dataclass(frozen=True, slots=True)
class ChatQuestion:
    asked: AskedChat
    conversation: Conversation  # with what the server stores of it
    decision: Decision | None  # None: whether to search is decided by the embedding
    review: Callable[[], Awaitable[Review]]  # looks up the notes that the conversation carries, once
    slot: AdmissionSlot  # to embed it


class SearchFlow:
    """Runs searches. One per process."""

    def __init__(self, parts: SearchParts, *, telemetry: Telemetry, settings: RecallSettings) -> None:
        self._parts = parts
        self._tracer = telemetry.tracer
        self._clock = telemetry.clock
        self._settings = settings
        self._callers = asyncio.Semaphore(CALLERS_AT_ONCE)

    # Chats

    async def for_chat(self, question: ChatQuestion, reached: Reached) -> Searched:
        """What was found. The slot is released as soon as the question is embedded. Raises `Unavailable`."""
        rewriter, conversation = self._parts.rewriter, question.conversation
        seconds = question.asked.seconds_left - SECOND_SEARCH_SECONDS
        if rewriter is None or not rewriter.wants(conversation):
            return await self._search_plain(question, reached)
        if seconds < MODEL_SECONDS_MIN:
            reached.add(Rewrite("no_time"))
            return await self._search_plain(question, reached)
        async with background(rewriter.rewrite(conversation, seconds=seconds)) as rewriting:
            plain = await self._search_plain(question, reached)
            if plain.status is not RecallStatus.EMPTY:
                return plain
            return await self._search_rewritten(question, plain, rewriting, reached)

    async def _search_plain(self, question: ChatQuestion, reached: Reached) -> Searched:
        asked, scope, retrieval = question.asked, question.asked.scope, self._parts.retrieval
        query = reached.add(build_query(question.conversation))
        wanted = Question(query, scope, asked.began_at, asked.request.options.memory_types)
        async with background(self._embedded_for_chat(query, question.slot, reached)) as embedding:
            # The embedding is now in a thread, or on its way to a server: what follows runs concurrently.
            await asyncio.sleep(0)
            prefetch = retrieval.prefetch(scope, asked.stored.revision)
            review = await question.review()
            async with background(retrieval.read_ahead(wanted, prefetch)):
                vector = await embedding
        embedded = reached.add(EmbeddedQuestion(vector, self._kinds(query, vector)))
        whole = _whole(embedded.kinds, scope)
        if question.decision is None:
            with reached.timed("decide"):
                decision, classifier = search_decision.ABOUT_A_WHOLE, self._parts.classifier()
                if whole is None:
                    decision = search_decision.decide_late(question.conversation, vector=vector, classifier=classifier)
                reached.add(decision)
            if not decision.search:
                return reached.add(Searched(RecallStatus.SKIPPED, decision.reason))
        with reached.timed("retrieve"):
            ranked = await retrieval.ranked(
                replace(wanted, in_notes=review.carried.held_earlier(), whole=whole),
                vector,
                prefetch=prefetch,
                seconds=asked.seconds_left - RANKING_SECONDS,
            )
        return self._chosen(ranked, asked, review, reached)

    async def _search_rewritten(
        self, question: ChatQuestion, plain: Searched, rewriting: Rewriting, reached: Reached
    ) -> Searched:
        """Search with the rewritten question too, if it comes in time; otherwise the plain result stands."""
        asked, review = question.asked, await question.review()
        reached.add(Rewrite(NoRewrite.LATE))  # stays the latest if the deadline ends this step
        try:
            with reached.timed("rewrite"):
                rewritten = await rewriting
            if isinstance(rewritten, NoRewrite):
                reached.add(Rewrite(rewritten))
                return plain
            query = Query(rewritten.text)
            with reached.timed("search_again"):
                vector = await self._embedded(query)
                in_notes, types = review.carried.held_earlier(), asked.request.options.memory_types
                wanted = Question(query, asked.scope, asked.began_at, types, in_notes)
                again = await self._parts.retrieval.ranked(wanted, vector)
        except Unavailable:
            reached.add(Rewrite("unused"))
            return plain
        reached.add(Rewrite("used", {"rewritten": rewritten.query, "hypothesis": rewritten.hypothesis}))
        return self._chosen(fused(plain.ranked, again), asked, review, reached)

    def _chosen(self, ranked: Ranked, asked: AskedChat, review: Review, reached: Reached) -> Searched:
        """Ranking and selection in one result, without an await, so that the deadline cannot separate them."""
        carried, options = review.carried, asked.request.options
        with reached.timed("select"):
            room = carried.room(budget=options.token_budget or self._settings.token_budget, tokens=self._parts.tokens)
            chosen = self._selected(ranked, options, room=room, in_notes=frozenset(carried.held_earlier()))
        return reached.add(Searched(RecallStatus.EMPTY, "nothing_relevant", ranked, chosen))

    async def _embedded_for_chat(self, query: Query, slot: AdmissionSlot, reached: Reached) -> Vector:
        began, is_complete = perf_counter(), False
        try:
            with reached.timed("embed"):
                vector = await self._embedded(query)
            is_complete = True
        finally:  # an embedding that did not end takes at least this long
            slot.release(perf_counter() - began, is_complete=is_complete)
        return vector

    # API callers

    async def for_caller(
        self,
        scope: Scope,
        *,
        query: str,
        history: Sequence[Message],
        options: RequestOptions,
        as_of: float | None = None,
    ) -> list[Candidate]:
        """What a chat with this history would get; a given `token_budget` is filled. Raises `Unavailable`.

        No chat waits for this, so a missing working set is loaded first. A rewriting model gets no more time than then.
        """
        conversation = Conversation(messages=(*history, Message(role=Role.USER, content=query)))

        at = self._clock() if as_of is None else as_of

        async def ranked(query: Query) -> Ranked:
            with self._tracer.span(SpanName.EMBED):
                vector = await self._embedded(query)
            whole = _whole(self._kinds(query, vector), scope)
            question = Question(query, scope, at, options.memory_types, claim=options.claim, whole=whole)
            with self._tracer.span(SpanName.RETRIEVE):
                if as_of is not None:
                    return await self._parts.retrieval.ranked_as_of(question, vector)
                return await self._parts.retrieval.ranked(question, vector, waits=True)

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
        query, rewriter = build_query(conversation), self._parts.rewriter
        seconds = self._settings.deadline_seconds - SECOND_SEARCH_SECONDS
        if rewriter is None or seconds < MODEL_SECONDS_MIN or not rewriter.wants(conversation):
            return await ranked(query)
        async with background(rewriter.rewrite(conversation, seconds=seconds)) as rewriting:
            found = await ranked(query)
            rewritten = await rewriting
            if not isinstance(rewritten, Rewritten):
                return found
            return fused(found, await ranked(Query(rewritten.text)))

    # Both

    async def _embedded(self, query: Query) -> Vector:
        vector: Vector = (await self._parts.embedder.embed([query.text], is_urgent=True, as_query=True))[0]
        return vector

    def _kinds(self, query: Query, vector: Vector) -> KindScores:
        classifier = self._parts.questions()
        return NO_KIND if classifier is None else classifier.scores(query.text, vector)

    def _selected(
        self, ranked: Ranked, options: RequestOptions, *, room: int, in_notes: Collection[str] = (), fill: bool = False
    ) -> Selection:
        limit = options.retrieval_limit or self._settings.retrieval_limit
        budget = Budget(room, limit, DEFAULT_RANKING.bar.several_tokens, is_filled=fill)
        threshold = options.similarity_threshold
        if threshold is None:
            threshold = self._settings.similarity_threshold
        cost = partial(line_tokens, tokens=self._parts.tokens, label=LABEL)
        return select(ranked, budget, tokens=cost, similarity_threshold=threshold, in_notes=in_notes)


def _whole(kinds: KindScores, scope: Scope) -> AskedWhole | None:
    """What the question is about as a whole: no project where the request names none."""
    whole = whole_of(kinds)
    return None if whole is AskedWhole.PROJECT and not scope.project_id else whole


@asynccontextmanager
async def background(work: Coroutine[Any, Any, T]) -> AsyncIterator[asyncio.Task[T]]:
    """Run `work` while the body runs, and cancel it when that ends. A single error is raised without a group."""
    with unwrapped():
        async with asyncio.TaskGroup() as group:
            task = group.create_task(work)
            yield task
            task.cancel()
