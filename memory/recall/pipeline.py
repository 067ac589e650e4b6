"""Stages 6 to 9 in order, inside a deadline: decide, query, retrieve, rank, and word the note.

It must never fail a request and never hold one past the deadline: whatever goes wrong below becomes an outcome with a
status and a reason, and notes that the conversation carries already go along all the same. Work in flight is bounded;
past the bound a request is passed on before it costs an embedding. Each outcome leaves a receipt.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

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
    Vector,
)
from memory.ports import Clock, Embedder, ModelTraits, NoteBook, Receipts, Tokens
from memory.recall import signals
from memory.recall.admission import Admission
from memory.recall.classifier import SignalClassifier
from memory.recall.fusion import fused
from memory.recall.notes import Carried, NotePlan, carried_notes, note_keys, plan
from memory.recall.query import build_query
from memory.recall.ranking import Ranked, select
from memory.recall.receipts import receipt_of
from memory.recall.retrieval import Retrieval
from memory.recall.rewrite import Rewritten
from memory.recall.rewriting import Rewriter
from memory.recall.signals import Decision
from memory.recall.upstream import NO_SIGNALS, UpstreamSignals

LABEL = "- [2025-01-31] "  # what stands before a memory in a note, for counting: all dates cost the same
KEEP_SECONDS_MAX = 0.05  # to write a note into the note book; a note that is not kept costs a prefix, no answer
KEEP_SECONDS_MIN = 0.01  # also past the deadline: it is a hundred times what the write usually takes
BY_CAUTION = (Placement.BEFORE_LAST_USER, Placement.SYSTEM, Placement.OFF)
SECOND_SEARCH_SECONDS = 0.025  # kept for embedding and ranking a rewritten question: an embedding is 5 ms, its tail 20

SEARCH_STAGES = ("notes", "embed", "retrieve", "select")
LOG_PAUSE_SECONDS = 5.0  # between two lines about parts that come and go

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class RecallSettings:
    """How recall behaves where a request does not say otherwise."""

    is_enabled: bool = True
    deadline_seconds: float = 0.120  # inside Envoy's message_timeout (1 s), so that a late request is still stripped
    in_flight_max: int = 16  # 16 embeddings of 5 ms are 80 ms: what is further back would be late
    token_budget: int = 800
    retrieval_limit: int | None = None
    similarity_threshold: float | None = None
    placement: Placement = Placement.BEFORE_LAST_USER


@dataclass(frozen=True, slots=True)
class RecallOutcome:
    """What to do with the request. `reason` is a short label for metrics."""

    status: RecallStatus
    reason: str
    count: int = 0
    receipt_id: str = ""
    notes: tuple[Note, ...] = ()


@dataclass(slots=True)
class _Trace:
    """What has been found for one request so far. It outlives the deadline, so that what was found is used."""

    began_at: float
    ends_at: float  # in the loop's time
    placement: Placement
    carried: Carried
    decision: Decision | None = None
    query: str = ""
    rewrite: dict[str, str] = field(default_factory=dict)  # what became of it, for the receipt; empty: none was asked
    ranked: Ranked = field(default_factory=Ranked)
    selection: Selection = field(default_factory=lambda: Selection((), 0))
    timings_ms: dict[str, float] = field(default_factory=dict)


class Recall:
    """The request's way through memory. One per process."""

    def __init__(
        self,
        *,
        embedder: Embedder,
        retrieval: Retrieval,
        notes: NoteBook,
        receipts: Receipts,
        traits: ModelTraits,
        classifier: Callable[[], SignalClassifier | None],
        tokens: Tokens,
        clock: Clock,
        new_id: Callable[[], str],
        metrics: Metrics,
        settings: RecallSettings,
        rewriter: Rewriter | None = None,
    ) -> None:
        """`classifier` gives None until it has been trained; rules decide meanwhile. `rewriter`: None asks no model."""
        self._embedder = embedder
        self._retrieval = retrieval
        self._notes = notes
        self._receipts = receipts
        self._traits = traits
        self._classifier = classifier
        self._tokens = tokens
        self._clock = clock
        self._new_id = new_id
        self._metrics = metrics
        self._settings = settings
        self._rewriter = rewriter
        self._admission = Admission(at_once_max=settings.in_flight_max, deadline_seconds=settings.deadline_seconds)
        self._broken_part = ""
        self._quiet_until = 0.0

    async def recall(self, scope: Scope, request: ChatRequest, upstream: UpstreamSignals = NO_SIGNALS) -> RecallOutcome:
        """Never raises, never takes longer than the deadline (plus the loop's own delay)."""
        conversation = request.conversation
        if not (self._settings.is_enabled and request.options.enabled) or conversation is None:
            outcome = RecallOutcome(RecallStatus.DISABLED, "disabled")
        else:
            with self._metrics.recall_seconds.labels("all").time():
                outcome = await self._recalled(scope, request, conversation, upstream)
        self._metrics.requests.labels(outcome.status, outcome.reason).inc()
        return outcome

    async def _recalled(
        self, scope: Scope, request: ChatRequest, conversation: Conversation, upstream: UpstreamSignals
    ) -> RecallOutcome:
        trace = _Trace(
            began_at=self._clock(),
            ends_at=asyncio.get_running_loop().time() + self._settings.deadline_seconds,
            placement=request.options.placement or self._settings.placement,
            carried=carried_notes(conversation, {}, {}),
        )
        try:
            async with asyncio.timeout_at(trace.ends_at):
                status, reason = await self._found(scope, request, conversation, upstream, trace)
        except TimeoutError:
            self._metrics.recall_late.inc()
            status, reason = RecallStatus.UNAVAILABLE, "deadline"
        except Unavailable as error:
            self._note_breakage(error.part)
            status, reason = RecallStatus.UNAVAILABLE, error.part
        memories = [candidate.memory for candidate in trace.selection.candidates]
        budget = request.options.token_budget or self._settings.token_budget
        planned = plan(trace.carried, memories, budget=budget, tokens=self._tokens, now=trace.began_at)
        await self._keep(scope, trace, planned)
        return self._told(scope, status, reason, trace, planned)

    async def _found(
        self,
        scope: Scope,
        request: ChatRequest,
        conversation: Conversation,
        upstream: UpstreamSignals,
        trace: _Trace,
    ) -> tuple[RecallStatus, str]:
        """Fill the trace as far as the deadline lets us; the status where no note goes along. Raises `Unavailable`."""
        await self._look_back(scope, request, conversation, trace)
        trace.decision = signals.decide_early(conversation, upstream=upstream)
        if trace.carried.is_settled:
            return RecallStatus.SKIPPED, "settled"
        if trace.decision is not None and not trace.decision.search:
            return RecallStatus.SKIPPED, trace.decision.reason
        if not self._admission.has_room:
            self._metrics.recall_shed.inc()
            return RecallStatus.UNAVAILABLE, "busy"
        with self._admitted(trace):
            return await self._searched(scope, conversation, request.options, trace)

    async def _look_back(self, scope: Scope, request: ChatRequest, conversation: Conversation, trace: _Trace) -> None:
        """The notes that this conversation carries, and where this model takes notes. Both can do without an answer."""
        with self._timed(trace, "notes"), suppress(Unavailable):
            if request.options.placement is None:
                learnt = await self._traits.placement(conversation.model) or trace.placement
                trace.placement = max(learnt, trace.placement, key=BY_CAUTION.index)
            keys = note_keys(scope, request)
            past = await self._notes.find(scope.user_id, list(keys.values()))
            trace.carried = carried_notes(conversation, keys, past)

    async def _searched(
        self, scope: Scope, conversation: Conversation, options: RequestOptions, trace: _Trace
    ) -> tuple[RecallStatus, str]:
        """The plain search, and where a model may ask better, its question beside it. Raises `Unavailable`."""
        if self._rewriter is None or not self._rewriter.wants(conversation):
            return await self._searched_plainly(scope, conversation, options, trace)
        seconds = trace.ends_at - SECOND_SEARCH_SECONDS - asyncio.get_running_loop().time()
        broken: Unavailable | None = None
        outcome = RecallStatus.EMPTY, "nothing_relevant"
        async with asyncio.TaskGroup() as group:
            rewriting = group.create_task(self._rewriter.rewrite(conversation, seconds=seconds))
            try:
                outcome = await self._searched_plainly(scope, conversation, options, trace)
                if outcome[0] is RecallStatus.EMPTY:
                    await self._searched_again(scope, rewriting, options, trace)
            except Unavailable as error:  # a group would wrap it
                broken = error
            rewriting.cancel()
        if broken is not None:
            raise broken
        return outcome

    async def _searched_again(
        self, scope: Scope, rewriting: asyncio.Task[Rewritten | None], options: RequestOptions, trace: _Trace
    ) -> None:
        """Search with the model's question too, if it comes in time; what the plain one found stands in any case."""
        try:
            with self._timed(trace, "rewrite"):
                rewritten = await rewriting
            trace.rewrite = {"rewrite": "no_answer" if rewritten is None else "unused"}
            if rewritten is None:
                return
            query = Query(rewritten.text)
            with self._timed(trace, "search_again"):
                [vector] = await self._embedder.embed([query.text], is_urgent=True)
                again = await self._retrieval.ranked(scope, query, vector, options, now=trace.began_at)
        except Unavailable:
            return
        self._take(fused(trace.ranked, again), options, trace)
        trace.rewrite = {"rewrite": "used", "rewritten": rewritten.query, "hypothesis": rewritten.hypothesis}

    async def _searched_plainly(
        self, scope: Scope, conversation: Conversation, options: RequestOptions, trace: _Trace
    ) -> tuple[RecallStatus, str]:
        query = build_query(conversation)
        trace.query = query.text
        expected = self._retrieval.expect(scope)
        vector = await self._embedded(query, trace)
        if trace.decision is None:
            with self._timed(trace, "decide"):
                trace.decision = signals.decide_late(conversation, vector=vector, classifier=self._classifier())
            if not trace.decision.search:
                return RecallStatus.SKIPPED, trace.decision.reason
        with self._timed(trace, "retrieve"):
            now = trace.began_at
            ranked = await self._retrieval.ranked(scope, query, vector, options, now=now, expected=expected)
        self._take(ranked, options, trace)
        self._note_breakage("")
        return RecallStatus.EMPTY, "nothing_relevant"

    def _take(self, ranked: Ranked, options: RequestOptions, trace: _Trace) -> None:
        """What was found, and what of it goes along, both at once: the deadline never parts them."""
        with self._timed(trace, "select"):
            room = trace.carried.room(budget=options.token_budget or self._settings.token_budget, tokens=self._tokens)
            trace.selection = self._selected(ranked, options, room=room, told=trace.carried.held_earlier())
            trace.ranked = ranked

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
        built = build_query(Conversation(messages=(*history, Message(role=Role.USER, content=query))))
        [vector] = await self._embedder.embed([built.text], is_urgent=True)
        if as_of is not None:
            ranked = await self._retrieval.ranked_as_of(scope, built, vector, options, as_of=as_of)
        else:
            ranked = await self._retrieval.ranked(scope, built, vector, options, now=self._clock(), waits=True)
        room = options.token_budget or self._settings.token_budget
        fill = options.token_budget is not None  # a search that names a budget wants it filled; a chat wants what helps
        return list(self._selected(ranked, options, room=room, fill=fill).candidates)

    async def _embedded(self, query: Query, trace: _Trace) -> Vector:
        with self._timed(trace, "embed"):
            vectors = await self._embedder.embed([query.text], is_urgent=True)
        vector: Vector = vectors[0]
        return vector

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
        return select(
            ranked,
            tokens=lambda content: self._tokens(LABEL + content),
            token_budget=room,
            limit=options.retrieval_limit or self._settings.retrieval_limit,
            similarity_threshold=self._settings.similarity_threshold if threshold is None else threshold,
            fill=fill,
            told=told,
        )

    async def _keep(self, scope: Scope, trace: _Trace, planned: NotePlan) -> None:
        """Write the new note down, so that the conversation's next request carries it."""
        if planned.fresh is None or not trace.carried.key or trace.placement is Placement.OFF:
            return
        now = asyncio.get_running_loop().time()
        ends_at = min(now + KEEP_SECONDS_MAX, max(now + KEEP_SECONDS_MIN, trace.ends_at))
        with self._timed(trace, "keep"), suppress(Unavailable, TimeoutError):
            async with asyncio.timeout_at(ends_at):
                await self._notes.keep(scope.user_id, trace.carried.key, planned.fresh, made_at=trace.began_at)

    def _told(self, scope: Scope, status: RecallStatus, reason: str, trace: _Trace, planned: NotePlan) -> RecallOutcome:
        """The outcome, its metrics and its receipt."""
        notes = planned.placed(trace.placement)
        count = len(planned.memory_ids()) if notes else 0
        if notes:
            status, reason = RecallStatus.USED, "found" if planned.fresh else "put_back"
        elif planned.notes:
            status, reason = RecallStatus.DISABLED, "placement_off"
        if notes and planned.fresh is not None:
            self._metrics.memories_injected.observe(len(planned.fresh.memory_ids))
            self._metrics.note_tokens.observe(planned.fresh.tokens)
        receipt_id = self._new_id()
        self._receipts.keep(
            receipt_of(
                receipt_id=receipt_id,
                user_id=scope.user_id,
                at=trace.began_at,
                status=status,
                reason=reason,
                signals=_explained(trace.decision) | trace.rewrite,
                query=trace.query,
                candidates=trace.ranked.candidates,
                cuts=trace.selection.cuts,
                plan=planned,
                placement=trace.placement,
                timings_ms=trace.timings_ms,
            )
        )
        return RecallOutcome(status, reason, count, receipt_id, notes)

    @contextmanager
    def _admitted(self, trace: _Trace) -> Iterator[None]:
        """One of the searches under way. How long it took, a model's rewriting aside, says how many there may be."""
        with self._admission.place() as place:
            self._metrics.recall_in_flight.set(self._admission.in_flight)
            try:
                yield
                place.is_complete = True
            finally:
                place.seconds = sum(trace.timings_ms.get(stage, 0.0) for stage in SEARCH_STAGES) / 1000
        self._metrics.recall_in_flight.set(self._admission.in_flight)

    @contextmanager
    def _timed(self, trace: _Trace, stage: str) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            yield
        finally:
            took = loop.time() - began
            trace.timings_ms[stage] = took * 1000
            self._metrics.recall_seconds.labels(stage).observe(took)

    def _note_breakage(self, part: str) -> None:
        """One log line for each change of state, not for each request; and few where it changes all the time."""
        now = asyncio.get_running_loop().time()
        if part != self._broken_part and now >= self._quiet_until:
            self._quiet_until = now + LOG_PAUSE_SECONDS
            log.warning("recall works again") if not part else log.warning("recall goes on without memory", part=part)
            self._broken_part = part


def _explained(decision: Decision | None) -> dict[str, object]:
    """The decision as plain values, for a receipt."""
    if decision is None:
        return {}
    label = {"label": str(decision.label)} if decision.label is not None else {}
    scores = {"scores": dict(decision.scores)} if decision.scores else {}
    return {"search": decision.search, "reason": decision.reason, **label, **scores}


__all__ = ["Recall", "RecallOutcome", "RecallSettings"]
