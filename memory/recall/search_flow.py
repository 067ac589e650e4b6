"""Stages 7 to 9 for one question: query, embed, decide what was left open, retrieve, rank, select.

For a chat and for a caller of the API alike, so that a search shows what a chat would get. Where a `memory_rewrite`
model may ask better, its question is searched for too, beside the plain one and never instead of it. What the plain
search found must stand whatever becomes of the model: junk, silence, or an answer past the deadline.
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
from memory.ports import Embedder, Tokens
from memory.recall.admission import Place
from memory.recall.notes.injection import line_tokens
from memory.recall.query import build_query
from memory.recall.query_rewriter import NoRewrite, Rewriter
from memory.recall.ranking.fusion import fused
from memory.recall.ranking.ranking import Budget, Ranked, select
from memory.recall.retrieval import Retrieval
from memory.recall.rewrite_prompt import Rewritten
from memory.recall.signals import search_decision
from memory.recall.signals.classifier import SignalClassifier
from memory.recall.trace import RecallSettings, Trace
from memory.runtime.metrics import Metrics
from memory.runtime.task_groups import unwrapped

LABEL = "- [2025-01-31]"  # what stands before a memory in a note, for counting: all dates cost the same
SECOND_SEARCH_SECONDS = 0.025  # kept for embedding and ranking a rewritten question: an embedding is 5 ms, its tail 20
RANKING_SECONDS = 0.01  # kept for ranking and wording what was found: 2 ms, and its tail
CALLERS_AT_ONCE = 4  # searches through the API; chats wait behind what these have embedded
MODEL_SECONDS_MIN = 0.005  # no model reads a chat and answers in less, so that none is asked in vain

T = TypeVar("T")
Rewriting: TypeAlias = "asyncio.Task[Rewritten | NoRewrite]"


@dataclass(frozen=True, slots=True)
class SearchParts:
    """What a question goes through: its vector, whether it wants memory at all, a better question, and the search.

    `classifier` gives None until it has been trained; rules decide meanwhile. `tokens`: what goes along costs.
    `rewriter`: None asks no model.
    """

    embedder: Embedder
    classifier: Callable[[], SignalClassifier | None]
    retrieval: Retrieval
    tokens: Tokens
    rewriter: Rewriter | None = None


class Searching:
    """One per process."""

    def __init__(self, parts: SearchParts, *, metrics: Metrics, settings: RecallSettings) -> None:
        self._embedder = parts.embedder
        self._retrieval = parts.retrieval
        self._classifier = parts.classifier
        self._tokens = parts.tokens
        self._metrics = metrics
        self._settings = settings
        self._rewriter = parts.rewriter
        self._callers = asyncio.Semaphore(CALLERS_AT_ONCE)

    # For a chat

    async def for_chat(
        self,
        scope: Scope,
        conversation: Conversation,
        options: RequestOptions,
        trace: Trace,
        look_back: Callable[[], Awaitable[None]],
        place: Place,
    ) -> tuple[RecallStatus, str]:
        """Fill the trace; the status where no note goes along. Raises `Unavailable`.

        `look_back`: at what the conversation carries, which goes into the trace while the question is embedded.
        `place`: to embed it; it is left as soon as that is done.
        """
        plainly = partial(self._plainly, scope, conversation, options, trace, look_back, place)
        seconds = trace.seconds_left - SECOND_SEARCH_SECONDS
        if self._rewriter is None or not self._rewriter.wants(conversation):
            return await plainly()
        if seconds < MODEL_SECONDS_MIN:
            trace.rewrite = {"rewrite": "no_time"}
            return await plainly()
        async with beside(self._rewriter.rewrite(conversation, seconds=seconds)) as rewriting:
            outcome = await plainly()
            if outcome[0] is RecallStatus.EMPTY:
                await self._once_more(scope, rewriting, options, trace)
        return outcome

    async def _plainly(
        self,
        scope: Scope,
        conversation: Conversation,
        options: RequestOptions,
        trace: Trace,
        look_back: Callable[[], Awaitable[None]],
        place: Place,
    ) -> tuple[RecallStatus, str]:
        query = build_query(conversation)
        trace.query = query.text
        asked = Question(query, scope, trace.began_at, options.memory_types)
        async with beside(self._embedded_for_chat(query, trace, place)) as embedding:
            await asyncio.sleep(0)  # a thread has it now, or a server's client writes it: what follows is done beside
            expected = self._retrieval.expect(scope)
            await look_back()
            async with beside(self._retrieval.read_ahead(asked, expected)) as reading:
                vector = await embedding
        if trace.decision is None:
            with trace.timed("decide", self._metrics):
                trace.decision = search_decision.decide_late(conversation, vector=vector, classifier=self._classifier())
            if not trace.decision.search:
                trace.plain = RecallStatus.SKIPPED, trace.decision.reason
                return trace.plain
        with trace.timed("retrieve", self._metrics):
            ranked = await self._retrieval.ranked(
                replace(asked, told=trace.carried.held_earlier()),
                vector,
                expected=expected,
                reading=None if reading.cancelled() else reading.result(),
                seconds=trace.seconds_left - RANKING_SECONDS,
            )
        self._take(ranked, options, trace)
        trace.plain = RecallStatus.EMPTY, "nothing_relevant"
        return trace.plain

    async def _once_more(self, scope: Scope, rewriting: Rewriting, options: RequestOptions, trace: Trace) -> None:
        """Search with the model's question too, if it comes in time; what the plain one found stands in any case."""
        trace.rewrite = {"rewrite": NoRewrite.LATE}  # what the deadline leaves
        try:
            with trace.timed("rewrite", self._metrics):
                rewritten = await rewriting
            if isinstance(rewritten, NoRewrite):
                trace.rewrite = {"rewrite": rewritten}
                return
            query = Query(rewritten.text)
            with trace.timed("search_again", self._metrics):
                vector = await self._embedded(query)
                told = trace.carried.held_earlier()
                asked = Question(query, scope, trace.began_at, options.memory_types, told)
                again = await self._retrieval.ranked(asked, vector)
        except Unavailable:
            trace.rewrite = {"rewrite": "unused"}
            return
        self._take(self._fused(trace.ranked, again), options, trace)
        trace.rewrite = {"rewrite": "used", "rewritten": rewritten.query, "hypothesis": rewritten.hypothesis}

    def _take(self, ranked: Ranked, options: RequestOptions, trace: Trace) -> None:
        """What was found, and what of it goes along, both at once: the deadline never parts them."""
        with trace.timed("select", self._metrics):
            room = trace.carried.room(budget=options.token_budget or self._settings.token_budget, tokens=self._tokens)
            trace.selection = self._selected(ranked, options, room=room, told=frozenset(trace.carried.held_earlier()))
            trace.ranked = ranked

    # For a caller of the API

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
        """What a chat with this history would get; a named `token_budget` is filled. Raises `Unavailable`.

        Nobody's answer waits for this one, so a working set that is not there yet is loaded first. A model that
        rewrites has as long as it would have for a chat.
        """
        conversation = Conversation(messages=(*history, Message(role=Role.USER, content=query)))

        async def ranked(query: Query) -> Ranked:
            vector = await self._embedded(query)
            if as_of is not None:
                return await self._retrieval.ranked_as_of(Question(query, scope, as_of, options.memory_types), vector)
            return await self._retrieval.ranked(Question(query, scope, now, options.memory_types), vector, waits=True)

        async with self._callers:
            found = await self._with_a_rewrite(conversation, ranked)
        room = options.token_budget or self._settings.token_budget
        fill = options.token_budget is not None  # a search that names a budget wants it filled; a chat wants what helps
        return list(self._selected(found, options, room=room, fill=fill).candidates)

    async def _with_a_rewrite(self, conversation: Conversation, ranked: Callable[[Query], Awaitable[Ranked]]) -> Ranked:
        query = build_query(conversation)
        seconds = self._settings.deadline_seconds - SECOND_SEARCH_SECONDS
        if self._rewriter is None or seconds < MODEL_SECONDS_MIN or not self._rewriter.wants(conversation):
            return await ranked(query)
        async with beside(self._rewriter.rewrite(conversation, seconds=seconds)) as rewriting:
            found = await ranked(query)
            rewritten = await rewriting
            if not isinstance(rewritten, Rewritten):
                return found
            return self._fused(found, await ranked(Query(rewritten.text)))

    async def _embedded_for_chat(self, query: Query, trace: Trace, place: Place) -> Vector:
        with trace.timed("embed", self._metrics):
            vector = await self._embedded(query)
        place.leave(trace.timings_ms["embed"] / 1000, is_complete=True)
        return vector

    # For both

    async def _embedded(self, query: Query) -> Vector:
        vectors = await self._embedder.embed([query.text], is_urgent=True, as_query=True)
        vector: Vector = vectors[0]
        return vector

    def _fused(self, plain: Ranked, rewritten: Ranked) -> Ranked:
        return fused(plain, rewritten, weight=self._settings.rewritten_weight)

    def _selected(
        self,
        ranked: Ranked,
        options: RequestOptions,
        *,
        room: int,
        told: frozenset[str] = frozenset(),
        fill: bool = False,
    ) -> Selection:
        threshold = options.similarity_threshold
        budget = Budget(
            tokens=room,
            memories=options.retrieval_limit or self._settings.retrieval_limit,
            near_tokens=self._settings.several_tokens if ranked.asks_several else self._settings.near_tokens,
            is_filled=fill,
        )
        return select(
            ranked,
            budget,
            tokens=partial(line_tokens, tokens=self._tokens, label=LABEL),
            similarity_threshold=self._settings.similarity_threshold if threshold is None else threshold,
            told=told,
        )


@asynccontextmanager
async def beside(work: Coroutine[Any, Any, T]) -> AsyncIterator[asyncio.Task[T]]:
    """Do it while the body runs; it is told to stop when the body is done. An error comes out as it is, no group."""
    with unwrapped():
        async with asyncio.TaskGroup() as group:
            task = group.create_task(work)
            yield task
            task.cancel()


__all__ = ["SearchParts", "Searching", "beside"]
