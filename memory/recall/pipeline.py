"""Runs the stages from signals to injection within a deadline: decide, query, retrieve, rank, and render the note.

It never fails a request and never holds one past the deadline: every error becomes an outcome with a status and a
reason, and notes that the conversation already carries are put back in any case. Work in flight is bounded; beyond the
bound a request is passed on before it costs an embedding. Outcome and receipt are made of what was `Reached` in time.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter

import structlog

from memory.chat.completions import ChatRequest
from memory.errors import Busy, MemproxyError, Unavailable
from memory.model import (
    CompactedHistory,
    Conversation,
    Message,
    Placement,
    ProfileText,
    RecallStatus,
    Receipt,
    Role,
    Scope,
    link_name,
)
from memory.ports import ChatStateQuery, ModelWindows, RequestStores, ResentHistory, ResponseChains
from memory.recall.admission import Admission, AdmissionSlot
from memory.recall.compacted import NO_STATE, not_in_state
from memory.recall.explanation import StageResults, receipt_of
from memory.recall.notes.past_notes import NotePlan, carried_notes, note_keys, plan_notes
from memory.recall.notes.past_talk_notes import reserved_for, with_past_talk
from memory.recall.notes.profile_notes import without_profiles
from memory.recall.past_talk_recall import PastTalkRecall
from memory.recall.profile_opening import goes_along, opening_of, wanted_profiles
from memory.recall.project_access import ReadableProjects
from memory.recall.query import is_vague
from memory.recall.review import ReviewStage, StateReader
from memory.recall.search_flow import ChatQuestion, SearchFlow, SearchParts
from memory.recall.signals import search_decision
from memory.recall.signals.search_decision import Decision
from memory.recall.signals.upstream import NO_SIGNALS, UpstreamSignals
from memory.recall.stages import AskedChat, Reached, RecallOutcome, RecallSettings, Review, Searched, Waited
from memory.recall.withholding import verdict_on
from memory.runtime.offload import run_by_weight
from memory.runtime.tracing import SpanName, Telemetry

HISTORY_TURNS_MAX = 3  # of a chain: as many messages of the user as a vague question may refer to
HISTORY_SECONDS_MAX = 0.03  # usually one; without them the question stands alone
KEEP_SECONDS_MAX = 0.05  # to write a note into the note book; losing a note costs a prefix-cache hit, never an answer
KEEP_SECONDS_MIN = 0.01  # granted also past the deadline: a hundred times what the write usually takes

# Turns of the event loop from a request's arrival until it gets here: headers, our answer to them, body.
TURNS_BEFORE = 3

LOG_PAUSE_SECONDS = 5.0  # between two log lines about a part that fails and recovers

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class RecallParts:
    search: SearchParts
    stores: RequestStores
    projects: ReadableProjects  # that `search` reads too
    chains: ResponseChains  # of conversations that the model server stores
    windows: ModelWindows  # of its models
    telemetry: Telemetry
    new_id: Callable[[], str]  # of receipts
    prepare: Callable[[ResentHistory], None] | None = None  # takes a history for its next state, and never waits


class RecallPipeline:
    """Signals to injection of a request. One per process."""

    def __init__(self, parts: RecallParts, settings: RecallSettings) -> None:
        self._parts = parts
        self._tokens = parts.search.tokens
        self._telemetry = parts.telemetry
        self._metrics = parts.telemetry.metrics
        self._prepare = parts.prepare
        self._settings = settings
        self._searching = SearchFlow(parts.search, telemetry=parts.telemetry, settings=settings)
        self.search = self._searching.for_caller  # of the API: what a chat would get
        self._review = ReviewStage(parts.stores.states, parts.windows, settings)
        self._stored = StateReader(parts.stores.chat_states, parts.projects)
        self._past_talk = PastTalkRecall(parts.stores.summaries, parts.search.retrieval, settings)
        self._admission = Admission(at_once_max=settings.in_flight_max, deadline_seconds=settings.deadline_seconds)
        self._broken_part = ""
        self._quiet_until = 0.0

    async def recall(self, scope: Scope, request: ChatRequest, upstream: UpstreamSignals = NO_SIGNALS) -> RecallOutcome:
        """Never raises. Takes no longer than the deadline, plus the event loop's own delay."""
        conversation, tracer = request.conversation, self._telemetry.tracer
        with tracer.span(SpanName.RECALL):
            if not (self._settings.is_enabled and request.options.enabled) or conversation is None:
                outcome = RecallOutcome(RecallStatus.DISABLED, "disabled")
            elif Placement.OFF in (request.options.placement, self._settings.placement):
                outcome = RecallOutcome(RecallStatus.DISABLED, "placement_off")
            else:
                with self._metrics.recall_seconds.labels("all").time():
                    outcome = await self._recalled(scope, request, conversation, upstream)
            tracer.note(
                status=outcome.status,
                reason=outcome.reason,
                memories=outcome.count,
                receipt_id=outcome.receipt_id,
                compacted=outcome.compacted is not None,
            )
        self._metrics.requests.labels(outcome.status, outcome.reason).inc()
        return outcome

    async def _recalled(
        self, scope: Scope, request: ChatRequest, conversation: Conversation, upstream: UpstreamSignals
    ) -> RecallOutcome:
        reached = Reached(self._metrics)
        asked = await self._asked(scope, request, conversation, upstream, reached)
        if asked is None:
            return RecallOutcome(RecallStatus.UNAVAILABLE, "opt_out_unknown")
        if asked.stored.opted_out_at is not None:
            return RecallOutcome(RecallStatus.DISABLED, "opted_out")
        searched = await self._searched_in_time(asked, reached)
        review = reached.latest(Review) or asked.unreviewed
        planned = await self._planned(asked, searched, review, reached)
        if self._settings.is_shadow:
            review = replace(review, compaction=NO_STATE)  # nothing but our own fields is changed
        verdict = verdict_on(planned, review.placement, asked, self._settings)
        results = StageResults(asked, searched, review, planned, verdict)
        await self._keep(results, reached)
        return self._outcome(results, reached)

    async def _asked(
        self,
        scope: Scope,
        request: ChatRequest,
        conversation: Conversation,
        upstream: UpstreamSignals,
        reached: Reached,
    ) -> AskedChat | None:
        """The chat with what is stored of it; None if that cannot be read in time."""
        loop = asyncio.get_running_loop()
        came_at = loop.time()
        await asyncio.sleep(0)
        # The duration of one turn of the loop now, as an estimate for the turns before this one.
        lag = loop.time() - came_at
        began_at, ends_at = self._telemetry.clock(), came_at + self._settings.deadline_seconds - TURNS_BEFORE * lag
        keys = await run_by_weight(partial(note_keys, scope, request), is_heavy=request.is_heavy)
        profiles = wanted_profiles(self._settings.profile, scope, request)
        link = link_name(scope, request.chain.held_under)
        query = ChatStateQuery(scope.user_id, tuple(keys.values()), link, conversation.model, profiles)
        with reached.timed("stored"):
            stored = await self._stored.read(query)
        if stored.state is None:
            return None
        return AskedChat(
            scope,
            request,
            conversation,
            upstream,
            keys,
            stored.state,
            Review(request.options.placement or self._settings.placement, carried_notes(conversation, {}, {})),
            began_at=began_at,
            ends_at=ends_at + stored.waited,
        )

    async def _searched_in_time(self, asked: AskedChat, reached: Reached) -> Searched:
        """What was found until the deadline, and why it is not more."""
        try:
            if asked.seconds_left <= 0:
                raise Busy("recall", "its turn came too late")
            async with asyncio.timeout_at(asked.ends_at):
                searched = await self._searched(asked, reached)
            if searched.status is RecallStatus.EMPTY:
                self._note_breakage("")
            return searched
        except TimeoutError:
            if (plain := reached.latest(Searched)) is not None:
                return plain
            self._metrics.recall_late.inc()
            reason = "deadline"
        except Busy:
            self._metrics.recall_shed.inc()
            reason = "busy"
        except Unavailable as error:
            self._note_breakage(error.part)
            reason = error.part
        plain = reached.latest(Searched) or Searched(RecallStatus.UNAVAILABLE, reason)
        return replace(plain, status=RecallStatus.UNAVAILABLE, reason=reason)

    async def _searched(self, asked: AskedChat, reached: Reached) -> Searched:
        """As far as the deadline allows. Raises `Unavailable`, and `Busy` if no slot becomes free in time."""
        conversation = await self._with_history(asked)
        decision = search_decision.decide_early(conversation, upstream=asked.upstream)
        if decision is not None:
            reached.add(decision)
        review = partial(self._review.of, asked, reached)
        said = [message.role for message in asked.conversation.messages]
        is_asked = said[-1:] == [Role.USER] and (decision is None or decision.search)
        if not is_asked:
            if (await review()).carried.is_settled:
                return Searched(RecallStatus.SKIPPED, "settled")
            if decision is not None and not decision.search:
                return Searched(RecallStatus.SKIPPED, decision.reason)
        async with self._admitted(asked, reached) as slot:
            if slot is not None:
                try:
                    question = ChatQuestion(asked, conversation, decision, review, slot)
                    return await self._searching.for_chat(question, reached)
                except MemproxyError:
                    await review()  # whatever happens to the search, the prompt's prefix has to stay
                    raise
        if said.count(Role.USER) > 1 or asked.request.chain.held_under:  # otherwise there are no earlier notes
            await review()
        raise Busy("recall", "no slot to embed the question became free in time")

    async def _with_history(self, asked: AskedChat) -> Conversation:
        """The conversation, and if a chain's question is vague, before it what was recorded of the chain."""
        conversation, name = asked.conversation, asked.request.chain.held_under
        last = conversation.messages[-1]
        if not name or last.role != Role.USER or not is_vague(last.content):
            return conversation
        said: list[Message] = []
        with suppress(Unavailable, TimeoutError):
            async with asyncio.timeout(HISTORY_SECONDS_MAX):
                link = link_name(asked.scope, name)
                turns = await self._parts.chains.said_before(asked.scope, link, limit=HISTORY_TURNS_MAX)
            for turn in turns:
                said += [*turn.messages, Message(Role.ASSISTANT, turn.answer)]
        return replace(conversation, messages=(*said, *conversation.messages))

    async def _planned(self, asked: AskedChat, searched: Searched, review: Review, reached: Reached) -> NotePlan:
        """The notes of this request: carried ones, and a new one with what was found."""
        tokens, budget = self._tokens, asked.request.options.token_budget or self._settings.token_budget
        found = not_in_state(searched.selection.candidates, review.compaction.state)
        wants_profiles = bool(wanted_profiles(self._settings.profile, asked.scope, asked.request))
        profile = self._opening(asked, searched, review, reached) if wants_profiles else None
        past = await self._past_talk.find(asked, review, reached)
        carried = review.carried
        if not wants_profiles:
            carried = replace(carried, notes=without_profiles(carried.notes))
        left = budget - reserved_for(past, carried, budget=budget, tokens=tokens)
        planned = plan_notes(carried, found, budget=left, tokens=tokens, now=asked.began_at, profile=profile)
        return with_past_talk(planned, carried, past, budget=budget, tokens=tokens)

    def _opening(self, asked: AskedChat, searched: Searched, review: Review, reached: Reached) -> ProfileText | None:
        """The wishes and the profile that open the new note."""
        carried, has_found = review.carried, bool(searched.selection.candidates)
        if not review.is_complete or carried.newest is None or carried.is_settled or asked.conversation.is_of_client:
            return None
        is_due = goes_along(self._settings.profile, asked, reached.latest(Decision), has_found=has_found)
        budget = asked.request.options.token_budget or self._settings.token_budget
        with reached.timed("profile"):
            return opening_of(asked, review, with_profile=is_due, budget=budget, tokens=self._tokens)

    async def _keep(self, results: StageResults, reached: Reached) -> None:
        """Store the new note, so that the conversation's next request carries it."""
        asked, key, fresh = results.asked, results.review.carried.key, results.planned.fresh
        if fresh is None or not key or results.verdict.placement is Placement.OFF:
            return
        now = asyncio.get_running_loop().time()
        ends_at = min(now + KEEP_SECONDS_MAX, max(now + KEEP_SECONDS_MIN, asked.ends_at))
        with reached.timed("keep"), suppress(Unavailable, TimeoutError):
            async with asyncio.timeout_at(ends_at):
                await self._parts.projects.add_reader(asked.scope.user_id, fresh.memory_ids)
                await self._parts.stores.notes.keep(asked.scope.user_id, key, fresh, made_at=asked.began_at)

    def _outcome(self, results: StageResults, reached: Reached) -> RecallOutcome:
        """The outcome, its metrics, its spans and its receipt, and the history for its next state."""
        asked, planned, verdict = results.asked, results.planned, results.verdict
        notes, status, reason = planned.placed(verdict.placement), results.searched.status, results.searched.reason
        if notes:
            status, reason = RecallStatus.USED, planned.reason
        elif verdict.withheld is not None:
            status, reason = verdict.withheld.status, verdict.withheld.value
        elif planned.notes:
            status, reason = RecallStatus.DISABLED, "placement_off"
        if notes and planned.fresh is not None:
            self._metrics.memories_injected.observe(len(planned.found_ids))
            self._metrics.note_tokens.observe(planned.fresh.tokens)
            self._metrics.summaries_recalled.inc(len(planned.summary_ids))
            self._metrics.answers_recalled.inc(len(planned.answer_ids))
            # notes put back were counted when they were new
            self._parts.stores.usage_counts.count(asked.scope.user_id, planned.found_ids, at=asked.began_at)
        if verdict.arm is not None:
            self._metrics.holdout_questions.labels(verdict.arm).inc()
        compaction, keys, compacted = results.review.compaction, results.review.carried.keys, None
        if compaction.state is not None:
            compacted = CompactedHistory(compaction.state.cut, compaction.state.text)
            self._metrics.compacted_tokens_saved.inc(compaction.state.saved_tokens)
        if self._prepare is not None and compaction.resent is not None:
            self._prepare(compaction.resent)
        since_epoch = self._telemetry.clock() - asyncio.get_running_loop().time()
        timings = reached.timings()
        self._telemetry.tracer.stages([replace(one, began_at=one.began_at + since_epoch) for one in timings])
        receipt_id, scope = self._parts.new_id(), asked.scope
        answered = Receipt(receipt_id, scope.user_id, asked.began_at, status, reason, project_id=scope.project_id)
        leave = partial(self._leave_receipt, answered, results, reached)
        asyncio.get_running_loop().call_soon(leave)  # once the request has left
        count = len(planned.memory_ids()) if notes else 0
        placed = tuple(keys[index] for index in sorted(planned.notes) if index in keys) if notes else ()
        return RecallOutcome(status, reason, count, receipt_id, notes, compacted, placed)

    def _leave_receipt(self, answered: Receipt, results: StageResults, reached: Reached) -> None:
        keeps_words = results.asked.request.options.auto_store and self._settings.keeps_words
        self._parts.stores.receipts.keep(receipt_of(answered, results, reached, keeps_words=keeps_words))

    @asynccontextmanager
    async def _admitted(self, asked: AskedChat, reached: Reached) -> AsyncIterator[AdmissionSlot | None]:
        """A slot to embed the question, or None if none becomes free in time."""
        came_at = perf_counter()
        async with self._admission.slot(asked.seconds_left) as slot:
            reached.add(Waited(perf_counter() - came_at))
            self._metrics.recall_in_flight.set(self._admission.in_flight)
            yield slot
        self._metrics.recall_in_flight.set(self._admission.in_flight)

    def _note_breakage(self, part: str) -> None:
        """Log one line per change of state, not per request, and at most one per `LOG_PAUSE_SECONDS`."""
        now = asyncio.get_running_loop().time()
        if part != self._broken_part and now >= self._quiet_until:
            self._quiet_until = now + LOG_PAUSE_SECONDS
            log.warning("recall works again") if not part else log.warning("recall goes on without memory", part=part)
            self._broken_part = part
