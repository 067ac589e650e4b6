"""Stages 6 to 9 in order, inside a deadline: decide, query, retrieve, rank, and word the note.

It must never fail a request and never hold one past the deadline: whatever goes wrong below becomes an outcome with a
status and a reason. Work in flight is bounded; past the bound a request is passed on before it costs an embedding.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import structlog

from memory.chat.completions import ChatRequest
from memory.errors import Unavailable
from memory.metrics import Metrics
from memory.model import (
    Candidate,
    Conversation,
    Message,
    Note,
    Placement,
    Query,
    RecallStatus,
    RequestOptions,
    Role,
    Scope,
    Selection,
)
from memory.ports import Clock, Embedder, Tokens
from memory.recall import signals
from memory.recall.injection import NOTE_FRAME, placed, render_note
from memory.recall.query import build_query
from memory.recall.ranking import Ranked, select
from memory.recall.retrieval import Retrieval

LABEL = "- 2025-01-31: "  # what stands before a memory in a note, for counting: all dates cost the same

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class RecallSettings:
    """How recall behaves where a request does not say otherwise."""

    is_enabled: bool = True
    deadline_seconds: float = 0.120  # inside Envoy's message_timeout (0.5 s), so that a late request is still stripped
    in_flight_max: int = 16  # 16 embeddings of 5 ms are 80 ms: what is further back would be late
    token_budget: int = 800
    retrieval_limit: int | None = None
    similarity_threshold: float | None = None
    placement: Placement = Placement.SYSTEM


@dataclass(frozen=True, slots=True)
class RecallOutcome:
    """What to do with the request. `reason` is a short label for metrics."""

    status: RecallStatus
    reason: str
    count: int = 0
    receipt_id: str = ""
    notes: tuple[Note, ...] = ()


class Recall:
    """The request's way through memory. One per process."""

    def __init__(
        self,
        *,
        embedder: Embedder,
        retrieval: Retrieval,
        tokens: Tokens,
        clock: Clock,
        new_id: Callable[[], str],
        metrics: Metrics,
        settings: RecallSettings,
    ) -> None:
        self._embedder = embedder
        self._retrieval = retrieval
        self._tokens = tokens
        self._clock = clock
        self._new_id = new_id
        self._metrics = metrics
        self._settings = settings
        self._in_flight = 0
        self._broken_part = ""

    async def recall(self, scope: Scope, request: ChatRequest) -> RecallOutcome:
        """Never raises, never takes longer than the deadline (plus the loop's own delay)."""
        outcome = await self._outcome(scope, request)
        self._metrics.requests.labels(outcome.status, outcome.reason).inc()
        return outcome

    async def _outcome(self, scope: Scope, request: ChatRequest) -> RecallOutcome:
        options, conversation = request.options, request.conversation
        if not (self._settings.is_enabled and options.enabled) or conversation is None:
            return RecallOutcome(RecallStatus.DISABLED, "disabled")
        decision = signals.decide(conversation)
        if not decision.search:
            return RecallOutcome(RecallStatus.SKIPPED, decision.reason)
        if self._in_flight >= self._settings.in_flight_max:
            self._metrics.recall_shed.inc()
            return RecallOutcome(RecallStatus.UNAVAILABLE, "busy")
        with self._counted():
            return await self._searched(scope, conversation, options)

    @contextmanager
    def _counted(self) -> Iterator[None]:
        self._in_flight += 1
        self._metrics.recall_in_flight.set(self._in_flight)
        try:
            with self._metrics.recall_seconds.labels("all").time():
                yield
        finally:
            self._in_flight -= 1
            self._metrics.recall_in_flight.set(self._in_flight)

    async def _searched(self, scope: Scope, conversation: Conversation, options: RequestOptions) -> RecallOutcome:
        try:
            async with asyncio.timeout(self._settings.deadline_seconds):
                ranked = await self._ranked(scope, build_query(conversation), options)
        except TimeoutError:
            self._metrics.recall_late.inc()
            return RecallOutcome(RecallStatus.UNAVAILABLE, "deadline")
        except Unavailable as error:
            self._note_breakage(error.part)
            return RecallOutcome(RecallStatus.UNAVAILABLE, error.part)
        self._note_breakage("")
        frame = self._tokens(NOTE_FRAME)
        return self._worded(self._selected(ranked, options, spent=frame), conversation, options)

    def _worded(self, selection: Selection, conversation: Conversation, options: RequestOptions) -> RecallOutcome:
        memories = [candidate.memory for candidate in selection.candidates]
        placement = options.placement or self._settings.placement
        note = placed(render_note(memories, now=self._clock()), placement, conversation) if memories else None
        if note is None:
            return RecallOutcome(RecallStatus.EMPTY, "nothing_relevant", receipt_id=self._new_id())
        self._metrics.memories_injected.observe(len(memories))
        self._metrics.note_tokens.observe(selection.tokens)
        return RecallOutcome(RecallStatus.USED, "found", len(memories), self._new_id(), (note,))

    async def search(
        self,
        scope: Scope,
        *,
        query: str,
        history: Sequence[Message],
        options: RequestOptions,
        as_of: float | None = None,
    ) -> list[Candidate]:
        """What a chat with this history would get; a named `token_budget` is filled. Raises `Unavailable`.

        Nobody's answer waits for this one, so a working set that is not there yet is loaded first.
        """
        conversation = Conversation(messages=(*history, Message(role=Role.USER, content=query)))
        ranked = await self._ranked(scope, build_query(conversation), options, as_of=as_of, waits=True)
        return list(self._selected(ranked, options).candidates)

    async def _ranked(
        self, scope: Scope, query: Query, options: RequestOptions, *, as_of: float | None = None, waits: bool = False
    ) -> Ranked:
        with self._metrics.recall_seconds.labels("embed").time():
            [vector] = await self._embedder.embed([query.text], is_urgent=True)
        with self._metrics.recall_seconds.labels("retrieve").time():
            if as_of is not None:
                return await self._retrieval.ranked_as_of(scope, query, vector, options, as_of=as_of)
            return await self._retrieval.ranked(scope, query, vector, options, now=self._clock(), waits=waits)

    def _selected(self, ranked: Ranked, options: RequestOptions, *, spent: int = 0) -> Selection:
        """`spent`: tokens of the budget that are gone before the first memory."""
        settings = self._settings
        with self._metrics.recall_seconds.labels("select").time():
            return select(
                ranked,
                tokens=lambda content: self._tokens(LABEL + content),
                token_budget=max(0, (options.token_budget or settings.token_budget) - spent),
                limit=options.retrieval_limit or settings.retrieval_limit,
                similarity_threshold=_first(options.similarity_threshold, settings.similarity_threshold),
                fill=options.token_budget is not None,
            )

    def _note_breakage(self, part: str) -> None:
        """One log line for each change of state, not one for each request."""
        if part != self._broken_part:
            log.warning("recall works again") if not part else log.warning("recall goes on without memory", part=part)
            self._broken_part = part


def _first(*values: float | None) -> float | None:
    return next((value for value in values if value is not None), None)


__all__ = ["Recall", "RecallOutcome", "RecallSettings"]
