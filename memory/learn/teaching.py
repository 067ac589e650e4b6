"""What a window of turns teaches: extracted, judged by the gate, and without what the user asked to be forgotten.

Looks at no memory but those that our own notes told, and writes none. Safe to break off at any await: what a model said
is stored before anything is made of it. Logs no content.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memory.errors import Unavailable
from memory.learn import gate
from memory.learn.breaks import muted, with_breaks
from memory.learn.corrections import feedback, forgetting
from memory.learn.corrections.feedback import Feedback
from memory.learn.corrections.forgetting import Order
from memory.learn.extraction import Learner, VerbatimLearner
from memory.learn.facts import Fact
from memory.learn.llm.heard import Heard
from memory.learn.pace import SessionPace
from memory.learn.statements import verbatim
from memory.metrics import Metrics
from memory.model import Memory, MemoryStatus, Turn, TurnStatus
from memory.ports import Lease, MemoryStore, Receipts, TurnLog

TEACHING = frozenset({TurnStatus.CLOSED, TurnStatus.UNKNOWN})  # what a failed or aborted turn said is not learnt
CONTEXT_TURNS_MAX = 8  # of the session, before the window: enough to see what a bare "yes" answers
BREAKS_MAX = 20  # of the session, up to the window's end


@dataclass(frozen=True, slots=True)
class Taught:
    """What a window says: facts that passed the gate, and what the user asked to be forgotten or kept out.

    `turns`: context and window, in the order said.
    """

    facts: Sequence[Fact]
    orders: Sequence[Order]
    turns: Sequence[Turn]
    said_back: Sequence[Feedback] = ()

    @property
    def is_empty(self) -> bool:
        return not (self.facts or self.orders or self.said_back)

    @property
    def is_asked(self) -> bool:
        """Whether the user asks something of memory, to forget or to remember: no model is waited for."""
        return bool(self.orders) or any(fact.is_explicit for fact in self.facts)


class Teaching:
    """Raises `Unavailable`, and `Conflict` where the lease was lost."""

    def __init__(
        self,
        *,
        turn_log: TurnLog,
        store: MemoryStore,
        learner: Learner,
        receipts: Receipts,
        metrics: Metrics,
        pace: SessionPace,
        limits: gate.Limits | None,
    ) -> None:
        self._turn_log = turn_log
        self._store = store
        self._learner = learner
        self._receipts = receipts
        self._metrics = metrics
        self._pace = pace
        self._limits = limits

    async def taught(self, lease: Lease, heard: Heard) -> Taught:
        """What came through the gate and heeds what the user asked, before this window or since."""
        turns = [turn for turn in lease.turns if turn.status in TEACHING]
        if not turns:
            return Taught((), (), ())
        context = await self._turn_log.context(lease, limit=CONTEXT_TURNS_MAX)
        breaks = await self._turn_log.breaks(lease, limit=BREAKS_MAX)
        before, during = with_breaks(context, turns, breaks)
        proposed = await self._extracted(heard, list(map(muted, during)), list(map(muted, before)))
        shown = await self._shown(lease.user_id, turns) if proposed else ()
        at, session = turns[-1].at, (lease.user_id, lease.session_id, lease.window_id)
        room = self._pace.room(*session, at=at)
        judgement = gate.judge(proposed, [*context, *turns], shown=shown, limits=self._limits, room=room)
        self._pace.note(*session, at=at, kept=len(judgement.kept))
        for dropped in judgement.dropped:
            self._metrics.facts_dropped.labels(dropped.reason.value).inc()
        orders = forgetting.orders_of(turns)
        if lasting := forgetting.lasting(orders):
            await self._turn_log.note_orders(lease, {order.turn.id for order in lasting})
        spared = forgetting.spare(judgement.kept, orders, [*context, *turns])
        later = await self.later_orders(lease)
        kept = [fact for fact in spared.kept if not is_overtaken(fact, later)]
        self._metrics.facts_dropped.labels("withheld").inc(len(judgement.kept) - len(kept))
        said_back = feedback.feedback_of(during, context=before)
        return Taught(kept, orders, (*context, *turns), said_back)

    async def later_orders(self, lease: Lease) -> list[Order]:
        """What the user asked to be forgotten after they had said what is in this window."""
        turns = await self._turn_log.orders_after(lease, limit=forgetting.LATER_ORDERS_MAX)
        return forgetting.lasting(forgetting.orders_of(turns))

    async def _extracted(self, heard: Heard, turns: Sequence[Turn], context: Sequence[Turn]) -> Sequence[Fact]:
        """What an earlier attempt was told, or what is told now, stored before anything is made of it.

        Verbatim extraction costs nothing and says the same again: only what a model said is stored, and what rules said
        in its place, where it is away or of no use and the user asks something of memory.
        """
        if heard.facts is not None:
            return heard.facts
        try:
            facts = await self._learner.extract(turns, context=context, heard=heard)
        except Unavailable:
            facts = verbatim.extract(turns, context=context)
            if not Taught(facts, forgetting.orders_of(turns), turns).is_asked:
                raise
            self._metrics.model_shortfalls.labels("window").inc()
        if not isinstance(self._learner, VerbatimLearner):
            await heard.conclude(facts)
        return facts

    async def _shown(self, user_id: str, turns: Sequence[Turn]) -> list[str]:
        """What our own notes told the model in these turns and still holds: no news when somebody says it again.

        What does not hold any more is news: whoever says it again says that it is so after all.
        """
        ids: dict[str, None] = {}
        for receipt_id in {turn.receipt_id: None for turn in turns if turn.receipt_id}:
            receipt = await self._receipts.get(user_id, receipt_id)
            ids |= {} if receipt is None else {one: None for note in receipt.notes for one in note.memory_ids}
        told = [record.memory for record in await self._store.get(user_id, list(ids))] if ids else []
        return [memory.content for memory in told if memory.status is MemoryStatus.ACTIVE]


def is_overtaken(fact: Fact, later: Sequence[Order]) -> bool:
    """Whether what the user asked later means this fact, too."""
    project_id = fact.scope.project_id
    return forgetting.is_overtaken(
        later, fact.content, said_at=fact.said_at, project_id=project_id, subject=fact.subject
    )


def is_row_overtaken(row: Memory, later: Sequence[Order]) -> bool:
    """The same for a row of a stored plan."""
    project_id = row.project_id
    return forgetting.is_overtaken(later, row.content, said_at=row.said_at, project_id=project_id, subject=row.subject)


__all__ = ["Taught", "Teaching", "is_overtaken", "is_row_overtaken"]
