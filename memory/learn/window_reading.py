"""A window of turns, read: claims that passed the gate, and what the user asked to be forgotten or called right.

Looks at no memory but those that our own notes told, and writes none. Safe to break off at any await: what a model
read is stored before anything is made of it. Logs no content.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial

from memory.errors import Unavailable
from memory.learn import forgetting, gate, stored_reading
from memory.learn.failed_turns import muted, with_breaks
from memory.learn.feedback import ANSWER_CHARACTERS_MAX, Confirmation, confirmations_of
from memory.learn.forgetting import Request
from memory.learn.rate_limit import SessionPace
from memory.learn.readers import Readers
from memory.learn.relating import confirmed_line
from memory.model import STORED_ACTS, Claim, MemoryStatus, Turn, TurnStatus
from memory.ports import ConversationRecord, Lease, MemoryBank, Receipts
from memory.runtime.metrics import Metrics

TEACHING = frozenset({TurnStatus.CLOSED, TurnStatus.UNKNOWN})  # what a failed or aborted turn said is not learnt
CONTEXT_TURNS_MAX = 8  # of the session, before the window: enough to see what a bare "yes" answers
BREAKS_MAX = 20  # of the session, up to the window's end

Store = Callable[[bytes], Awaitable[None]]
"""Keeps bytes with the window, in place of a plan. Raises `Unavailable` or `Conflict`."""


@dataclass(frozen=True, slots=True)
class WindowClaims:
    """What a window says. `turns`: context and window, in the order said."""

    claims: Sequence[Claim]
    requests: Sequence[Request]
    turns: Sequence[Turn]
    confirmations: Sequence[Confirmation] = ()

    @property
    def is_empty(self) -> bool:
        return not (self.claims or self.requests or self.confirmations)


@dataclass(frozen=True, slots=True)
class WindowBounds:
    """What of a window may be kept: `limits` of each claim, and the `pace` of a session, which outlives windows."""

    pace: SessionPace
    limits: gate.Limits | None = None


class WindowReading:
    """Raises `Unavailable`, and `Conflict` where the lease was lost."""

    def __init__(
        self,
        *,
        turn_log: ConversationRecord,
        memories: MemoryBank,
        receipts: Receipts,
        readers: Readers,
        metrics: Metrics,
        bounds: WindowBounds,
    ) -> None:
        self._turn_log = turn_log
        self._store = memories.store
        self._at_hand = memories.at_hand
        self._readers = readers
        self._receipts = receipts
        self._metrics = metrics
        self._pace = bounds.pace
        self._limits = bounds.limits

    async def read(self, lease: Lease, *, save: Store) -> WindowClaims:
        """What came through the gate and heeds what the user asked, before this window or since."""
        turns = [turn for turn in lease.turns if turn.status in TEACHING]
        if not turns:
            return WindowClaims((), (), ())
        context = await self._turn_log.context(lease, limit=CONTEXT_TURNS_MAX)
        breaks = await self._turn_log.breaks(lease, limit=BREAKS_MAX)
        before, during = with_breaks(context, turns, breaks)
        claims = gate.few(await self._claims(lease, list(map(muted, during)), list(map(muted, before)), save))
        proposed = [claim for claim in claims if claim.act in STORED_ACTS]
        shown = await self._shown(lease.user_id, turns) if proposed else ()
        at, session = turns[-1].at, (lease.user_id, lease.session_id, lease.window_id)
        room = self._pace.room(*session, at=at)
        judging = partial(gate.judge, claims, [*context, *turns], shown=shown, limits=self._limits, room=room)
        verdict = await asyncio.to_thread(judging)  # a flood takes longer than a lease may go without its beat
        self._pace.note(*session, at=at, kept=len(verdict.kept))
        for dropped in verdict.dropped:
            self._metrics.facts_dropped.labels(dropped.reason.value).inc()
        requests = forgetting.requests_of(claims, turns)
        if lasting := forgetting.lasting(requests):
            await self._turn_log.note_orders(lease, _by_turn(lasting))
        spared = await asyncio.to_thread(forgetting.spare, verdict.kept, requests, [*context, *turns])
        later = await self.later_requests(lease)
        kept = await asyncio.to_thread(_standing, spared.kept, later)
        self._metrics.facts_dropped.labels("withheld").inc(len(verdict.kept) - len(kept))
        confirmations = [*confirmations_of(claims, [*before, *during]), *_answered(kept, [*context, *turns])]
        return WindowClaims(kept, requests, (*context, *turns), confirmations)

    async def later_requests(self, lease: Lease) -> list[Request]:
        """What the user asked to be forgotten after they had said what is in this window, as it was read then."""
        orders = await self._turn_log.orders_after(lease, limit=forgetting.LATER_REQUESTS_MAX)
        stored = [(order.turn, stored_reading.decode(order.claims or None)) for order in orders]
        claims = [claim for _, found in stored for claim in found or ()]
        unread = [turn for turn, found in stored if found is None]  # another release noted them
        claims += await self._readers.ready.read(unread, context=()) if unread else []
        return forgetting.lasting(forgetting.requests_of(gate.few(claims), [order.turn for order in orders]))

    async def _claims(
        self, lease: Lease, turns: Sequence[Turn], context: Sequence[Turn], save: Store
    ) -> Sequence[Claim]:
        """What an earlier attempt read, or what is read now, stored before anything is made of it.

        Where the model is away and the user asks something of memory, nobody waits for it.
        """
        if not self._readers.is_slow:
            return await self._readers.ready.read(turns, context=context)
        stored = stored_reading.decode(lease.plan)
        if stored is not None:
            return stored
        try:
            claims = await self._readers.first.read(turns, context=context)
        except Unavailable:
            claims = await self._readers.ready.read(turns, context=context)
            if not asks_memory(claims):
                raise
            self._metrics.model_shortfalls.labels("window").inc()
        await save(stored_reading.encode(claims))
        return claims

    async def _shown(self, user_id: str, turns: Sequence[Turn]) -> list[str]:
        """What our own notes told the model in these turns and still holds: no news when somebody says it again.

        What does not hold any more is news: whoever says it again says that it is so after all.
        """
        ids: dict[str, None] = {}
        for receipt_id in {turn.receipt_id: None for turn in turns if turn.receipt_id}:
            receipt = await self._receipts.get(user_id, receipt_id)
            ids |= {} if receipt is None else {one: None for note in receipt.notes for one in note.memory_ids}
        if not ids:
            return []
        memories = await self._at_hand.as_of(user_id) or self._store
        told = [record.memory for record in await memories.get(user_id, list(ids))]
        return [memory.content for memory in told if memory.status is MemoryStatus.ACTIVE]


def _by_turn(requests: Sequence[Request]) -> dict[str, bytes]:
    claims: dict[str, list[Claim]] = {}
    for request in requests:
        claims.setdefault(request.turn.id, []).append(request.claim)
    return {turn_id: stored_reading.encode(found) for turn_id, found in claims.items()}


def _standing(claims: Sequence[Claim], later: Sequence[Request]) -> list[Claim]:
    return [claim for claim in claims if not forgetting.is_overtaken(later, claim)]


def _answered(claims: Sequence[Claim], turns: Sequence[Turn]) -> list[Confirmation]:
    """A "yes" to a question also confirms what its line restates."""
    lines = [(claim, confirmed_line(claim, turns)) for claim in claims]
    return [Confirmation(line[:ANSWER_CHARACTERS_MAX], claim.scope, claim.said_at) for claim, line in lines if line]


def asks_memory(claims: Sequence[Claim]) -> bool:
    """Whether the user asks something of memory: to remember, to forget, or not to store. A reader's guess is none."""
    return any(c.act in forgetting.ASKING_ACTS and c.confidence >= forgetting.SURE_MIN for c in claims)


__all__ = ["WindowBounds", "WindowClaims", "WindowReading", "asks_memory"]
