"""Runs stages 6 to 9 within a deadline: decide, query, retrieve, rank, and render the note.

It never fails a request and never holds one past the deadline: every error becomes an outcome with a status and a
reason, and notes that the conversation already carries are put back in any case. Work in flight is bounded; beyond the
bound a request is passed on before it costs an embedding. Each outcome leaves a receipt.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from time import perf_counter

import structlog

from memory.chat.completions import ChatRequest
from memory.errors import Busy, MemproxyError, Unavailable
from memory.model import (
    Candidate,
    Conversation,
    Message,
    Placement,
    RecallStatus,
    RequestOptions,
    Role,
    Scope,
    link_name,
)
from memory.ports import ChatStateQuery, RequestStores, ServerKnowledge
from memory.recall.admission import Admission, AdmissionSlot
from memory.recall.compacted import edit_of, find_state, in_receipt, keys_after, not_in_state, room_beside_state
from memory.recall.notes.past_notes import CarriedNotes, NotePlan, carried_notes, note_keys, plan_notes
from memory.recall.notes.past_talk_notes import reserved_for, with_past_talk
from memory.recall.notes.receipts import Answered, Findings, receipt_of
from memory.recall.past_talk_recall import PastTalkRecall, question_kinds_of
from memory.recall.profile_opening import ProfileOpening
from memory.recall.query import is_vague
from memory.recall.search_flow import SearchFlow, SearchParts
from memory.recall.signals import search_decision
from memory.recall.signals.search_decision import Decision
from memory.recall.signals.upstream import NO_SIGNALS, UpstreamSignals
from memory.recall.stored_state import StateReader
from memory.recall.trace import RecallOutcome, RecallSettings, Trace
from memory.recall.window_room import room_for_notes
from memory.recall.withholding import arm_signals, placement_of, withheld_verdicts, withhold
from memory.runtime.offload import run_by_weight
from memory.runtime.telemetry import Telemetry

HISTORY_TURNS_MAX = 3  # of a chain: as many messages of the user as a vague question may refer to
HISTORY_SECONDS_MAX = 0.03  # usually one; without them the question stands alone
KEEP_SECONDS_MAX = 0.05  # to write a note into the note book; losing a note costs a prefix-cache hit, never an answer
KEEP_SECONDS_MIN = 0.01  # granted also past the deadline: a hundred times what the write usually takes
BY_CAUTION = (Placement.BEFORE_LAST_USER, Placement.SYSTEM, Placement.OFF)

# Turns of the event loop from a request's arrival until it gets here: headers, our answer to them, body.
TURNS_BEFORE = 3

LOG_PAUSE_SECONDS = 5.0  # between two log lines about a part that fails and recovers

log = structlog.get_logger(__name__)


class RecallPipeline:
    """Stages 6 to 9 of a request. One per process."""

    def __init__(
        self,
        *,
        search: SearchParts,
        stores: RequestStores,
        server: ServerKnowledge,
        telemetry: Telemetry,
        new_id: Callable[[], str],
        settings: RecallSettings,
    ) -> None:
        """`new_id` generates the ids of receipts."""
        self._searching = SearchFlow(search, telemetry=telemetry, settings=settings)
        self._stored = StateReader(stores.chat_states)
        self._opening = ProfileOpening(tokens=search.tokens, metrics=telemetry.metrics, settings=settings)
        self._past_talk = PastTalkRecall(
            stores.summaries, search, recalls_answers=settings.recalls_answers, metrics=telemetry.metrics
        )
        self._notes = stores.notes
        self._receipts = stores.receipts
        self._usage_counts = stores.usage_counts
        self._states = stores.states
        self._chains = server.chains
        self._windows = server.windows
        self._tokens = search.tokens
        self._clock = telemetry.clock
        self._new_id = new_id
        self._metrics = telemetry.metrics
        self._settings = settings
        self._admission = Admission(at_once_max=settings.in_flight_max, deadline_seconds=settings.deadline_seconds)
        self._broken_part = ""
        self._quiet_until = 0.0

    async def recall(self, scope: Scope, request: ChatRequest, upstream: UpstreamSignals = NO_SIGNALS) -> RecallOutcome:
        """Never raises. Takes no longer than the deadline, plus the event loop's own delay."""
        conversation = request.conversation
        if not (self._settings.is_enabled and request.options.enabled) or conversation is None:
            outcome = RecallOutcome(RecallStatus.DISABLED, "disabled")
        elif Placement.OFF in (request.options.placement, self._settings.placement):
            outcome = RecallOutcome(RecallStatus.DISABLED, "placement_off")
        else:
            with self._metrics.recall_seconds.labels("all").time():
                outcome = await self._recalled(scope, request, conversation, upstream)
        self._metrics.requests.labels(outcome.status, outcome.reason).inc()
        return outcome

    async def _recalled(
        self, scope: Scope, request: ChatRequest, conversation: Conversation, upstream: UpstreamSignals
    ) -> RecallOutcome:
        loop = asyncio.get_running_loop()
        came_at = loop.time()
        await asyncio.sleep(0)
        # The duration of one turn of the loop now, as an estimate for the turns before this one.
        lag = loop.time() - came_at
        trace = Trace(
            began_at=self._clock(),
            ends_at=came_at + self._settings.deadline_seconds - TURNS_BEFORE * lag,
            placement=request.options.placement or self._settings.placement,
            carried=carried_notes(conversation, {}, {}),
            keeps_words=request.options.auto_store and self._settings.keeps_words,
        )
        trace.keys = await run_by_weight(partial(note_keys, scope, request), is_heavy=request.is_heavy)
        with trace.timed("stored", self._metrics):
            stored = await self._stored.read(self._asked_of(scope, request, conversation, trace), trace)
        if isinstance(stored, RecallOutcome):
            return stored
        trace.stored = stored
        try:
            if trace.seconds_left <= 0:
                raise Busy("recall", "its turn came too late")
            async with asyncio.timeout_at(trace.ends_at):
                status, reason = await self._found(scope, request, conversation, upstream, trace)
            if status is RecallStatus.EMPTY:
                self._note_breakage("")
        except TimeoutError:
            if trace.plain is None:
                self._metrics.recall_late.inc()
            status, reason = trace.plain or (RecallStatus.UNAVAILABLE, "deadline")
        except Busy:
            status, reason = self._shed()
        except Unavailable as error:
            self._note_breakage(error.part)
            status, reason = RecallStatus.UNAVAILABLE, error.part
        found = not_in_state(trace.selection.candidates, trace.compacted)
        budget = request.options.token_budget or self._settings.token_budget
        self._opening.choose(scope, request, trace, budget=budget)
        await self._past_talk.find(scope, request, trace)
        left = budget - reserved_for(trace.past, trace.carried, budget=budget, tokens=self._tokens)
        planned = plan_notes(
            trace.carried, found, budget=left, tokens=self._tokens, now=trace.began_at, profile=trace.profile
        )
        planned = with_past_talk(planned, trace.carried, trace.past, budget=budget, tokens=self._tokens)
        withhold(self._settings, scope, request, trace, planned, metrics=self._metrics)
        if trace.withheld is None:
            await self._keep(scope, trace, planned)
        return self._outcome(scope, status, reason, trace, planned)

    def _asked_of(self, scope: Scope, request: ChatRequest, conversation: Conversation, trace: Trace) -> ChatStateQuery:
        name = "" if self._chains is None else request.chain.held_under
        return ChatStateQuery(
            scope.user_id,
            tuple(trace.keys.values()),
            link_name=link_name(scope, name),
            model=conversation.model,
            project_ids=self._opening.wanted_of(scope, request),
        )

    async def _found(
        self,
        scope: Scope,
        request: ChatRequest,
        conversation: Conversation,
        upstream: UpstreamSignals,
        trace: Trace,
    ) -> tuple[RecallStatus, str]:
        """Fill the trace as far as the deadline allows; returns the status if no note is injected. Raises
        `Unavailable`.
        """
        searched = await self._with_history(scope, request, conversation)
        trace.decision = search_decision.decide_early(searched, upstream=upstream)
        said = [message.role for message in conversation.messages]
        is_asked = said[-1:] == [Role.USER] and (trace.decision is None or trace.decision.search)
        if not is_asked:
            await self._review_notes(scope, request, conversation, trace)
            if trace.carried.is_settled:
                return RecallStatus.SKIPPED, "settled"
            if trace.decision is not None and not trace.decision.search:
                return RecallStatus.SKIPPED, trace.decision.reason
        review_notes = partial(self._review_notes, scope, request, conversation, trace)
        async with self._admitted(trace) as slot:
            if slot is not None:
                try:
                    return await self._searching.for_chat(scope, searched, request.options, trace, review_notes, slot)
                except MemproxyError:
                    await review_notes()  # whatever happens to the search, the prompt's prefix has to stay
                    raise
        if said.count(Role.USER) > 1 or request.chain.held_under:  # otherwise there are no earlier notes
            await review_notes()
        return self._shed()

    async def _with_history(self, scope: Scope, request: ChatRequest, conversation: Conversation) -> Conversation:
        """The conversation, and if a chain's question is vague, before it what was recorded of the chain."""
        asked, name = conversation.messages[-1], request.chain.held_under
        if self._chains is None or not name or asked.role != Role.USER or not is_vague(asked.content):
            return conversation
        said: list[Message] = []
        with suppress(Unavailable, TimeoutError):
            async with asyncio.timeout(HISTORY_SECONDS_MAX):
                turns = await self._chains.said_before(scope, link_name(scope, name), limit=HISTORY_TURNS_MAX)
            for turn in turns:
                said += [*turn.messages, Message(Role.ASSISTANT, turn.answer)]
        return replace(conversation, messages=(*said, *conversation.messages))

    def _shed(self) -> tuple[RecallStatus, str]:
        self._metrics.recall_shed.inc()
        return RecallStatus.UNAVAILABLE, "busy"

    async def _review_notes(self, scope: Scope, request: ChatRequest, conversation: Conversation, trace: Trace) -> None:
        """Load the notes that this conversation carries, and this model's placement. Continues without either on
        errors.
        """
        if trace.are_notes_reviewed:
            return
        with trace.timed("notes", self._metrics), suppress(Unavailable):
            if request.options.placement is None:
                trace.placement = _possible_placement(trace.stored.placement, request, trace.placement)
            if self._states is not None and self._is_compacted(request, trace):
                history = await find_state(self._states, scope, request, trace.keys, asked_at=trace.began_at)
                trace.resent, trace.compacted = history.resent, history.state
            kept, link = keys_after(trace.keys, trace.compacted), trace.stored.link
            at_server = link.note_keys if link is not None else ()
            trace.carried = carried_notes(conversation, kept, trace.stored.notes, at_server=at_server)
        trace.carried = await self._bounded(request, conversation, trace)
        trace.are_notes_reviewed = True

    def _is_compacted(self, request: ChatRequest, trace: Trace) -> bool:
        """Whether this history may be replaced by a state: wanted, recorded, sent in full, and with a place for it.

        A state is a system message in every API, also where notes are not.
        """
        options = request.options
        is_wanted = self._settings.compacts if options.compact is None else options.compact
        is_possible = trace.placement is not Placement.OFF and not request.chain.held_under
        if not (is_wanted and options.auto_store and is_possible):
            return False
        return trace.stored.placement is not Placement.OFF

    async def _bounded(self, request: ChatRequest, conversation: Conversation, trace: Trace) -> CarriedNotes:
        """The notes that the size aimed at for a compacted prompt, and the model's window, leave room for."""
        carried, state, settings = trace.carried, trace.compacted, self._settings
        if state is not None:
            room = room_beside_state(conversation, state, tokens_max=settings.compacted_tokens)
            carried = replace(carried, tokens_max=min(carried.tokens_max, room))
        window = self._windows.glance(conversation.model) if self._windows is not None else None
        if window is None:
            return carried
        counting = partial(room_for_notes, request, window, answer_reserve=settings.answer_reserve_tokens, state=state)
        left = await run_by_weight(counting, is_heavy=request.is_heavy)
        return carried if left is None else carried.within(left)

    async def search(
        self,
        scope: Scope,
        *,
        query: str,
        history: Sequence[Message],
        options: RequestOptions,
        as_of: float | None = None,
    ) -> list[Candidate]:
        """What a chat with this history would get; a named `token_budget` is filled. Raises `Unavailable`."""
        return await self._searching.for_caller(
            scope, query=query, history=history, options=options, now=self._clock(), as_of=as_of
        )

    async def _keep(self, scope: Scope, trace: Trace, planned: NotePlan) -> None:
        """Store the new note, so that the conversation's next request carries it."""
        if planned.fresh is None or not trace.carried.key or trace.placement is Placement.OFF:
            return
        now = asyncio.get_running_loop().time()
        ends_at = min(now + KEEP_SECONDS_MAX, max(now + KEEP_SECONDS_MIN, trace.ends_at))
        with trace.timed("keep", self._metrics), suppress(Unavailable, TimeoutError):
            async with asyncio.timeout_at(ends_at):
                await self._notes.keep(scope.user_id, trace.carried.key, planned.fresh, made_at=trace.began_at)

    def _outcome(
        self, scope: Scope, status: RecallStatus, reason: str, trace: Trace, planned: NotePlan
    ) -> RecallOutcome:
        """The outcome, its metrics and its receipt."""
        notes = planned.placed(trace.placement) if trace.withheld is None else ()
        count = len(planned.memory_ids()) if notes else 0
        if notes:
            status, reason = RecallStatus.USED, planned.reason
        elif trace.withheld is not None:
            status, reason = trace.withheld.status, trace.withheld.value
        elif planned.notes:
            status, reason = RecallStatus.DISABLED, "placement_off"
        if notes and planned.fresh is not None:
            self._metrics.memories_injected.observe(len(planned.found_ids))
            self._metrics.note_tokens.observe(planned.fresh.tokens)
            self._metrics.summaries_recalled.inc(len(planned.summary_ids))
            self._metrics.answers_recalled.inc(len(planned.answer_ids))
            # notes put back were counted when they were new
            self._usage_counts.count(scope.user_id, planned.found_ids, at=trace.began_at)
        receipt_id = self._new_id()
        answered = Answered(receipt_id, scope.user_id, trace.began_at, status, reason, scope.project_id)
        leave = partial(self._leave_receipt, answered, trace, planned)
        asyncio.get_running_loop().call_soon(leave)  # once the request has left
        if trace.compacted is not None:
            self._metrics.compacted_tokens_saved.inc(trace.compacted.saved_tokens)
        keys = trace.carried.keys
        return RecallOutcome(
            status,
            reason,
            count,
            receipt_id,
            notes,
            compacted=edit_of(trace.compacted),
            resent=trace.resent,
            note_keys=tuple(keys[index] for index in sorted(planned.notes) if index in keys) if notes else (),
            stages=tuple(trace.stages),
        )

    def _leave_receipt(self, answered: Answered, trace: Trace, planned: NotePlan) -> None:
        other_signals = _opening_of(planned) | in_receipt(trace.compacted) | question_kinds_of(trace)
        found = Findings(
            signals=_explained(trace.decision) | arm_signals(trace, planned) | trace.kept_rewrite | other_signals,
            query=trace.kept_query,
            candidates=trace.ranked.candidates,
            cuts=withheld_verdicts(trace, planned),
            timings_ms=trace.timings_ms,
        )
        self._receipts.keep(receipt_of(answered, found, plan=planned, placement=placement_of(trace)))

    @asynccontextmanager
    async def _admitted(self, trace: Trace) -> AsyncIterator[AdmissionSlot | None]:
        """A slot to embed the question, or None if none becomes free in time."""
        came_at = perf_counter()
        async with self._admission.slot(trace.seconds_left) as slot:
            trace.timings_ms["wait"] = (perf_counter() - came_at) * 1000
            self._metrics.recall_in_flight.set(self._admission.in_flight)
            try:
                yield slot
            finally:
                if slot is not None:  # an embedding that did not end took at least this long
                    slot.release(trace.timings_ms.get("embed", 0.0) / 1000, is_complete=False)
        self._metrics.recall_in_flight.set(self._admission.in_flight)

    def _note_breakage(self, part: str) -> None:
        """Log one line per change of state, not per request, and at most one per `LOG_PAUSE_SECONDS`."""
        now = asyncio.get_running_loop().time()
        if part != self._broken_part and now >= self._quiet_until:
            self._quiet_until = now + LOG_PAUSE_SECONDS
            log.warning("recall works again") if not part else log.warning("recall goes on without memory", part=part)
            self._broken_part = part


def _possible_placement(learnt: Placement | None, request: ChatRequest, wanted: Placement) -> Placement:
    """The wanted placement, or the nearest that the model's template accepts, as far as that was `learnt`.

    A note inside the user's message is always accepted: it replaces a system message that is not.
    """
    if request.shape.is_bound_by_templates:
        return max(learnt or wanted, wanted, key=BY_CAUTION.index)
    return Placement.BEFORE_LAST_USER if wanted is Placement.SYSTEM and learnt is Placement.OFF else wanted


def _opening_of(planned: NotePlan) -> dict[str, object]:
    """The versions of the profiles that open the new note, for a receipt."""
    if planned.profile is None:
        return {}
    return {"profile": dict(zip(("version", "project_version"), planned.profile.versions, strict=True))}


def _explained(decision: Decision | None) -> dict[str, object]:
    """The decision as plain values, for a receipt."""
    if decision is None:
        return {}
    label = {"label": str(decision.label)} if decision.label is not None else {}
    scores = {"scores": dict(decision.scores)} if decision.scores else {}
    return {"search": decision.search, "reason": decision.reason, **label, **scores}
