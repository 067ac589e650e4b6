"""Reads a window of turns: the claims that pass the gate, requests to forget, and confirmations.

Looks up no memories except those that our own notes contained, and writes none. Safe to interrupt at any await: a
model's answer is stored before it is used. Logs no content.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType

from memory.errors import Unavailable
from memory.language.dates import period
from memory.learn import forgetting, frames, gate, raw_words
from memory.learn.closeness import Closeness, Vectors, closeness_of, embedded_by
from memory.learn.feedback import ANSWER_CHARACTERS_MAX, Confirmation, confirmations_of, muted, with_failed_turns
from memory.learn.forgetting import ForgetRequest
from memory.learn.gate import SessionRateLimit
from memory.learn.plan import decode_claims, encode_claims
from memory.learn.readers import Readers
from memory.learn.reading.assembly import UNDATED
from memory.learn.relating import confirmed_line
from memory.learn.withheld_turns import refused_turns, withheld_turns
from memory.model import ORDERS, STORED_ACTS, Act, Claim, Memory, MemoryStatus, Role, Turn, TurnStatus
from memory.model.days import period_text, with_days
from memory.model.outcomes import Outcomes, refused_outcomes
from memory.ports import ConversationRecord, Lease, MemoryBank, OrderReach, RequestStores
from memory.runtime.metrics import Metrics
from memory.secrets.redaction import REDACT_ALL
from memory.service.summary_exclusions import SummaryExclusions

# failed and aborted turns are not learnt
TEACHING = frozenset({TurnStatus.CLOSED, TurnStatus.UNKNOWN, TurnStatus.FILLED_IN})
CONTEXT_TURNS_MAX = 8  # of the session before the window: enough to see what a bare "yes" answers
FRAME_TURNS_MAX = 40  # in which a role play may have begun
FAILED_TURNS_MAX = 20  # of the session, up to the window's end

Store = Callable[[bytes], Awaitable[None]]
"""Stores bytes with the window, in place of a plan. Raises `Unavailable` or `Conflict`."""


@dataclass(frozen=True, slots=True)
class WindowClaims:
    """The content of a window. `turns`: context and window, in the order said. `raw`: rows with the turns' words.

    `refused`: what is not in it of what the user asked.
    """

    claims: Sequence[Claim]
    requests: Sequence[ForgetRequest]
    turns: Sequence[Turn]
    confirmations: Sequence[Confirmation] = ()
    raw: Sequence[Memory] = ()
    refused: Outcomes = field(default_factory=dict)

    @property
    def forgets(self) -> Callable[[Claim | Memory], bool]:
        """Whether one of its requests that last means what was said before it."""
        requests = forgetting.lasting(self.requests)
        return lambda known: bool(forgetting.forgotten_later(requests, [known]))

    @property
    def is_empty(self) -> bool:
        return not (self.claims or self.requests or self.confirmations or self.raw or self.refused)


@dataclass(frozen=True, slots=True)
class WindowBounds:
    """Limits what is stored of a window. `rate_limit`: of a session; it outlives windows. `secrets`: as turns are kept.

    `words_of`: whose are stored as said. `compares_arms`: whether signs are counted.
    """

    rate_limit: SessionRateLimit
    secrets: gate.Secrets = field(default_factory=lambda: REDACT_ALL)
    words_of: Collection[Role] = ()
    compares_arms: bool = False


class WindowReading:
    """Raises `Unavailable`, and `Conflict` where the lease was lost."""

    def __init__(
        self,
        *,
        turn_log: ConversationRecord,
        memories: MemoryBank,
        stores: RequestStores,
        readers: Readers,
        metrics: Metrics,
        bounds: WindowBounds,
    ) -> None:
        self._turn_log = turn_log
        self._store = memories.store
        self._local_memories = memories.local_memories
        self._readers = readers
        self._embedded = embedded_by(memories.embedder)
        self._receipts = stores.receipts
        self._exclusions = SummaryExclusions(stores.summaries)
        self._metrics = metrics
        self._rate_limit = bounds.rate_limit
        self._secrets = bounds.secrets
        self._words_of = bounds.words_of

    async def read(self, lease: Lease, *, save: Store) -> WindowClaims:
        """The claims that pass the gate, minus what the user asked to forget in this window or since."""
        turns = [turn for turn in lease.turns if turn.status in TEACHING]
        if not turns:
            return WindowClaims((), (), ())
        conversation = await self._turn_log.context(lease, limit=FRAME_TURNS_MAX)
        context = conversation[-CONTEXT_TURNS_MAX:]
        failed = await self._turn_log.failed_turns(lease, limit=FAILED_TURNS_MAX)
        before, during = with_failed_turns(context, turns, failed)
        read = await self._claims(lease, list(map(muted, during)), list(map(muted, before)), save)
        claims = gate.without_repetitions(read)
        self._metrics.facts_dropped.labels("repeated").inc(len(read) - len(claims))
        proposed = [claim for claim in claims if claim.act in STORED_ACTS]
        shown = await self._shown(lease.user_id, turns) if proposed else ()
        at, session = turns[-1].at, (lease.user_id, lease.session_id, lease.window_id)
        facts_left = self._rate_limit.facts_left(*session, at=at)
        judging = partial(
            gate.check_claims, claims, [*context, *turns], shown=shown, secrets=self._secrets, facts_left=facts_left
        )
        # A flood takes longer than the interval at which a lease must be extended.
        verdict = await asyncio.to_thread(judging)
        self._rate_limit.record_window(*session, at=at, kept=len(verdict.kept))
        for dropped in verdict.dropped:
            self._metrics.facts_dropped.labels(dropped.reason.value).inc()
        allowed = [*verdict.kept, *verdict.orders]
        marks = await self._readers.ready.frames([*conversation, *turns]) if allowed else ()
        framed = frames.foreign(allowed, [*conversation, *turns], marks)
        self._metrics.facts_dropped.labels("framed").inc(len(framed))
        own = [claim for claim in verdict.kept if claim not in framed]
        orders = [claim for claim in verdict.orders if claim not in framed]
        said = forgetting.requests_of(orders, turns, await self._reaches(orders), said=claims)
        requests = forgetting.carried_out(said)
        if lasting := forgetting.lasting(said):
            await self._turn_log.mark_forget_requests(lease, _by_turn(lasting))
        later = await self.later_requests(lease)
        close = await self.closeness([*said, *later], [claim.text for claim in claims])
        taken = await asyncio.to_thread(forgetting.withheld_claims, own, said, [*context, *turns], close, later)
        kept = list(map(dated, forgetting.without_words_of(taken, [claim for claim in own if claim not in taken])))
        self._metrics.facts_dropped.labels("withheld").inc(len(own) - len(kept))
        private = {one.turn.scope.session_id for one in (*said, *later) if one.reach in forgetting.FROM_NOW}
        confirmations: list[Confirmation] = []
        if lease.session_id not in private:
            confirmations = [*confirmations_of(claims, [*before, *during]), *_answered(kept, [*context, *turns])]
        withheld = await asyncio.to_thread(withheld_turns, [*context, *turns], claims, said, later, close)
        await self._exclusions.leave_out(lease.user_id, withheld | refused_turns(verdict.dropped))
        raw = await asyncio.to_thread(self._raw, claims, turns, withheld) if self._words_of else ()
        refused = [*((one.claim, one.reason.value) for one in verdict.dropped), *((one, "framed") for one in framed)]
        return WindowClaims(kept, requests, (*context, *turns), confirmations, raw, refused_outcomes(refused, turns))

    def _raw(self, claims: Sequence[Claim], turns: Sequence[Turn], withheld: Collection[str]) -> Sequence[Memory]:
        planted = gate.planted_messages(claims, turns)
        return raw_words.raw_rows(turns, words_of=self._words_of, withheld=withheld, planted=planted)

    async def later_for_stored(
        self, lease: Lease, claims: Sequence[Claim], texts: Sequence[str]
    ) -> tuple[list[ForgetRequest], Closeness]:
        """The `later_requests` for a window with a stored plan of these claims, and how close all three are."""
        later = await self.later_requests(lease)
        said = [claim.text for claim in claims]
        close = await self.closeness(later, [*texts, *said], await self._embedded([*texts, *said]))
        await self._exclusions.leave_out(lease.user_id, withheld_turns(lease.turns, claims, (), later, close))
        return later, close

    async def closeness(
        self, requests: Sequence[ForgetRequest], statements: Collection[str], known: Vectors = MappingProxyType({})
    ) -> Closeness:
        """`known`: vectors of texts that need not be embedded."""
        topics = forgetting.topics_of(requests)
        if not topics:
            return Closeness(known)
        vectors = {**known, **await self._embedded([text for text in (*topics, *statements) if text not in known])}
        return await closeness_of(topics, statements, vectors, self._readers.ready.relate)

    async def later_requests(self, lease: Lease) -> list[ForgetRequest]:
        """The user's requests to forget made after this window, or before it in its conversation, as they were read."""
        orders = await self._turn_log.forget_requests_for(lease, limit=forgetting.LATER_REQUESTS_MAX)
        stored = [(order.turn, decode_claims(order.claims or None)) for order in orders]
        claims = [claim for _, found in stored for claim in found or ()]
        for turn in (turn for turn, found in stored if found is None):  # marked by another release or system
            claims += await self._orders_in(turn)
        made = gate.without_repetitions(claims)
        found = forgetting.requests_of(made, [order.turn for order in orders], await self._reaches(made))
        before = {order.turn.id for order in orders if not order.is_since}
        return [
            one for one in forgetting.lasting(found) if one.turn.id not in before or one.reach in forgetting.FROM_NOW
        ]

    async def _orders_in(self, turn: Turn) -> list[Claim]:
        read = await self._readers.ready.read([turn], context=())
        orders = gate.check_claims([one for one in read if one.act not in STORED_ACTS], [turn]).orders
        framed = frames.foreign(orders, [turn], await self._readers.ready.frames([turn]) if orders else ())
        return [one for one in orders if one not in framed]

    async def _reaches(self, claims: Sequence[Claim]) -> dict[str, OrderReach]:
        texts = list(dict.fromkeys(claim.text for claim in claims if claim.act in ORDERS))
        return dict(zip(texts, await self._readers.ready.reaches(texts), strict=True)) if texts else {}

    async def _claims(
        self, lease: Lease, turns: Sequence[Turn], context: Sequence[Turn], save: Store
    ) -> Sequence[Claim]:
        """The claims stored by an earlier attempt, or read now and stored before they are used.

        If the model is unavailable and the user asks something of memory, the trained reader is used instead.
        """
        if not self._readers.is_slow:
            return await self._readers.ready.read(turns, context=context)
        stored = decode_claims(lease.plan)
        if stored is not None:
            return stored
        try:
            claims = await self._readers.first.read(turns, context=context)
        except Unavailable:
            claims = await self._readers.ready.read(turns, context=context)
            if not asks_memory(claims):
                raise
            self._metrics.model_shortfalls.labels("window").inc()
        await save(encode_claims(claims))
        return claims

    async def _shown(self, user_id: str, turns: Sequence[Turn]) -> list[str]:
        """Contents of our own notes in these turns that are still valid: repeating them is not a new statement.

        Invalid ones are left out: who repeats those states that they hold again.
        """
        ids: dict[str, None] = {}
        for receipt_id in {turn.receipt_id: None for turn in turns if turn.receipt_id}:
            receipt = await self._receipts.get(user_id, receipt_id)
            ids |= {} if receipt is None else {one: None for note in receipt.notes for one in note.memory_ids}
        if not ids:
            return []
        memories = await self._local_memories.as_of(user_id) or self._store
        told = [record.memory for record in await memories.get(user_id, list(ids))]
        return [memory.content for memory in told if memory.status is MemoryStatus.ACTIVE]


def _by_turn(requests: Sequence[ForgetRequest]) -> dict[str, bytes]:
    claims: dict[str, list[Claim]] = {}
    for request in requests:
        claims.setdefault(request.turn.id, []).append(request.claim)
    return {turn_id: encode_claims(found) for turn_id, found in claims.items()}


def _answered(claims: Sequence[Claim], turns: Sequence[Turn]) -> list[Confirmation]:
    """A "yes" to a question also confirms what its line restates."""
    lines = [(claim, confirmed_line(claim, turns)) for claim in claims]
    return [Confirmation(line[:ANSWER_CHARACTERS_MAX], claim.scope, claim.said_at) for claim, line in lines if line]


def dated(claim: Claim) -> Claim:
    """The claim with the days that its words mean behind them, unless they name the year: "tomorrow" cannot be
    understood alone. Not of a birthday, which comes again, and not of a fragment that corrects.
    """
    if claim.attribute in UNDATED or (claim.leans and claim.act is Act.CORRECT):
        return claim
    meant = claim.holds_from, claim.holds_until
    named = period(claim.text, claim.said_at + (claim.utc_offset or 0), with_end=True)  # also the end of "last week"
    days = period_text(*(named if named[0] == meant[0] is not None else meant))
    return replace(claim, text=with_days(claim.text, days))


def asks_memory(claims: Sequence[Claim]) -> bool:
    """Whether the user asks to remember, forget, or not to store something. A low-confidence claim does not count."""
    return any(c.act in forgetting.ASKING_ACTS and c.confidence >= forgetting.SURE_MIN for c in claims)
