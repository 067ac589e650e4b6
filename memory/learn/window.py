"""One window of turns, learnt: taught → under the user's lock: look up, consolidate, store the plan, apply it.

Safe to break off at any await: ids are drawn from the window, the plan is stored before it is applied, and a stored
plan is applied as it was; where somebody wrote meanwhile it is made anew of the same facts, without what was forgotten
or put away since. Never asks anybody twice, and logs no content.
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from typing import Protocol

from memory.erasure import Erasure
from memory.errors import Conflict, Unavailable
from memory.learn import basis as bases
from memory.learn import consolidation, gate, plan
from memory.learn.applying import Applying
from memory.learn.basis import Basis
from memory.learn.changes.supersession import Verdict
from memory.learn.consolidation import Pair
from memory.learn.corrections import forgetting
from memory.learn.extraction import Learner
from memory.learn.facts import Fact
from memory.learn.llm import extracted
from memory.learn.llm.heard import Heard
from memory.learn.neighbours import Neighbours
from memory.learn.pace import SessionPace
from memory.learn.plan import Plan
from memory.learn.statements.intents import Reach
from memory.learn.teaching import Taught, Teaching, is_overtaken, is_row_overtaken
from memory.metrics import Metrics
from memory.model import Memory, Record, Vector
from memory.ports import Clock, Embedder, Lease, LedgerWrite, MemoryFilter, MemoryStore, Receipts, TurnLog, UserLedger

OPINION_ROUNDS_MAX = 3  # in the last one, if somebody writes all the time, the rules decide alone

_IDS = uuid.UUID("8f0c6a1e-54d7-5c43-9d2b-2f7e1b6a9c11")


@dataclass(frozen=True, slots=True)
class Opinions:
    """What an arbiter found, and of which revision of the user's memories."""

    revision: int
    changed: Mapping[Pair, Verdict]


@dataclass(slots=True)
class _Held:
    """The user's lock, and what was planned under it: from then on part of it may be written."""

    lock: LedgerWrite
    store_plan: Callable[[bytes], Awaitable[None]]
    planned: Plan | None = None

    async def save(self, planned: Plan) -> None:
        await self.store_plan(plan.encode(planned))
        self.planned = planned


class Arbiter(Protocol):
    """Somebody to ask where rules leave open whether a fact changes a memory. Slow, hence asked outside the lock."""

    async def changed(
        self, facts: Sequence[Fact], known: Sequence[Memory], *, heard: Heard | None = None
    ) -> Mapping[Pair, Verdict]:
        """By pairs of a fact's index and a memory's id, checked by rules. Raises `Unavailable("model", …)`.

        `heard`: where answers are found again and noted.
        """
        ...


class WindowLearning:
    """Learns leased windows. Any number of windows of different users at a time."""

    def __init__(
        self,
        *,
        turn_log: TurnLog,
        ledger: UserLedger,
        store: MemoryStore,
        embedder: Embedder,
        learner: Learner,
        erasure: Erasure,
        receipts: Receipts,
        clock: Clock,
        metrics: Metrics,
        pace: SessionPace,
        limits: gate.Limits | None = None,
        arbiter: Arbiter | None = None,
    ) -> None:
        """`pace` outlives windows, and holds all that this remembers from one to the next."""
        self._turn_log = turn_log
        self._ledger = ledger
        self._store = store
        self._arbiter = arbiter
        self._clock = clock
        self._metrics = metrics
        self._applying = Applying(
            store=store, embedder=embedder, erasure=erasure, receipts=receipts, clock=clock, metrics=metrics
        )
        self._teaching = Teaching(
            turn_log=turn_log,
            store=store,
            learner=learner,
            receipts=receipts,
            metrics=metrics,
            pace=pace,
            limits=limits,
        )
        self._neighbours = Neighbours(store=store, embedded=self._applying.embedded)

    async def learn(self, lease: Lease) -> None:
        """Return once all that the window teaches is stored. Raises `Unavailable`, `Conflict`, `UnreadablePlan`."""
        if lease.plan is None or extracted.is_extraction(lease.plan):
            heard = Heard(lease.plan, store=partial(self._turn_log.save_plan, lease))
            taught = await self._teaching.taught(lease, heard)
            if not taught.is_empty:
                await self._plan_and_apply(lease, taught, heard)
        else:
            await self._repeat(lease, plan.decode(lease.plan))

    async def _plan_and_apply(self, lease: Lease, taught: Taught, heard: Heard) -> None:
        contents = [fact.content for fact in taught.facts]
        topics = forgetting.topics_of(taught.orders)
        vectors = await self._applying.embedded([*contents, *topics])  # before the lock: it takes longest
        for round_ in range(OPINION_ROUNDS_MAX):
            opinions = await self._opinions(lease.user_id, taught, vectors, heard)
            async with self._locked(lease) as held:
                is_current = opinions is None or await self._is_current(lease.user_id, opinions)
                if not is_current and round_ < OPINION_ROUNDS_MAX - 1:
                    continue  # somebody wrote while the model thought: ask again about what stands now
                changed = opinions.changed if opinions is not None and is_current else {}
                planned, known = await self._planned(lease, taught, vectors, changed)
                await held.save(planned)
                gone = await self._applying.apply(lease.user_id, held.lock, planned, vectors | known)
            await self._applying.settle(lease.user_id, planned, gone)
            return

    async def _opinions(
        self, user_id: str, taught: Taught, vectors: Mapping[str, Vector], heard: Heard
    ) -> Opinions | None:
        """What the arbiter says of what is stored now; None where there is nobody to ask, or nothing to ask about."""
        if self._arbiter is None or not taught.facts:
            return None
        revision = await self._ledger.revision(user_id)
        known = [record.memory for record in await self._looked_at(user_id, taught, vectors)]
        try:
            return Opinions(revision.number, await self._arbiter.changed(taught.facts, known, heard=heard))
        except Unavailable:
            if not taught.is_asked:
                raise
            self._metrics.model_shortfalls.labels("pair").inc()
            return None

    async def _looked_at(self, user_id: str, taught: Taught, vectors: Mapping[str, Vector]) -> list[Record]:
        """An arbiter finds changes that no words tell of: where there is one, every fact looks back."""
        looks_back = self._arbiter is not None
        now = self._clock()
        return await self._neighbours.of(
            user_id, taught.facts, taught.said_back, now=now, vectors=vectors, looks_back=looks_back
        )

    async def _is_current(self, user_id: str, opinions: Opinions) -> bool:
        """Whether nobody wrote since: under our own lock the revision is the very next, odd one."""
        return (await self._ledger.revision(user_id)).number == opinions.revision + 1

    async def _planned(
        self, lease: Lease, taught: Taught, vectors: Mapping[str, Vector], changed: Mapping[Pair, Verdict]
    ) -> tuple[Plan, dict[str, Vector]]:
        """The plan, made of what is stored now, under the lock; and vectors that were met on the way."""
        now = self._clock()
        forgotten = await self._forgotten(lease, taught, vectors)
        gone = {memory_id for ids in forgotten.values() for memory_id in ids}
        found = [r for r in await self._looked_at(lease.user_id, taught, vectors) if r.memory.id not in gone]
        known = [record.memory for record in found]
        changes = consolidation.consolidate(
            taught.facts,
            known,
            now=now,
            ids=partial(memory_id, lease),
            said_back=taught.said_back,
            changed=changed,
        )
        outcomes = forgetting.outcomes_of(taught.orders, forgotten)
        revision = (await self._ledger.revision(lease.user_id)).number
        basis = bases.basis_of(taught.facts, taught.said_back, changed, known, changes, revision=revision)
        return Plan(changes, tuple(gone), outcomes, basis), {record.memory.content: record.vector for record in found}

    async def _forgotten(self, lease: Lease, taught: Taught, vectors: Mapping[str, Vector]) -> dict[int, list[str]]:
        """By index of the order: the memories that it means. What is said before it and not learnt yet goes, too."""
        found: dict[int, list[str]] = {}
        for index, order in enumerate(taught.orders):
            project_id = order.turn.scope.project_id
            if order.intent.reach is Reach.EVERYTHING and not order.intent.spared:
                earlier, own = order.turn.at, [turn.id for turn in lease.turns]
                await self._turn_log.withdraw(lease.user_id, project_id=project_id, opened_before=earlier, spare=own)
            if (previous := forgetting.turn_meant(order, taught.turns)) and previous not in lease.turns:
                await self._turn_log.withdraw(lease.user_id, opened_before=inf, only=[previous.id])
            where = MemoryFilter(lease.user_id, project_id=project_id, status=None)
            records = await self._store.load(where, limit=forgetting.FORGET_MEMORIES_MAX)
            likeness = _likeness(vectors.get(order.intent.topic), records)
            found[index] = forgetting.meant(order, [record.memory for record in records], taught.turns, likeness)
        return found

    async def _repeat(self, lease: Lease, stored: Plan) -> None:
        facts = stored.basis.facts if stored.basis is not None else ()
        contents = [*(change.memory.content for change in stored.changes), *(fact.content for fact in facts)]
        vectors = await self._applying.embedded(contents)
        later = await self._teaching.later_orders(lease)
        heeded = [change for change in stored.changes if not is_row_overtaken(change.memory, later)]
        async with self._locked(lease) as held:
            revision = (await self._ledger.revision(lease.user_id)).number
            if stored.basis is None or not bases.is_overtaken(stored.basis, revision):
                held.planned = stored
                wanted = await self._applying.still_wanted(lease.user_id, held.lock, heeded)
                fitting, known = replace(stored, changes=wanted), vectors
            else:
                overtaken = {n for n, fact in enumerate(facts) if is_overtaken(fact, later)}
                basis = replace(stored.basis, revision=revision, done=stored.basis.done | overtaken)
                fitting, known = await self._anew(lease, held.lock, stored, basis, vectors)
                await held.save(fitting)
            gone = await self._applying.apply(lease.user_id, held.lock, fitting, known)
        await self._applying.settle(lease.user_id, stored, gone)

    async def _anew(
        self,
        lease: Lease,
        held: LedgerWrite,
        stored: Plan,
        basis: Basis,
        vectors: Mapping[str, Vector],
        *,
        only_standing: bool = False,
    ) -> tuple[Plan, dict[str, Vector]]:
        """The same facts, consolidated with what is stored now; `only_standing`: those whose rows are among it."""
        ids = partial(memory_id, lease)
        places = range(len(basis.facts))
        of_plan = [*(change.memory.id for change in stored.changes), *(ids(str(place)) for place in places)]
        rows = {r.memory.id: r.memory for r in await self._store.get(lease.user_id, list(dict.fromkeys(of_plan)))}
        forgotten = await held.forgotten(of_plan)
        stands = bases.standing(basis, stored.changes, stored=rows, forgotten=forgotten, ids=ids)
        missing = {place for place in places if only_standing and ids(str(place)) not in rows}
        said_back = () if stands.is_begun or only_standing else basis.said_back
        neighbours = await self._neighbours.of(
            lease.user_id, basis.facts, said_back, now=self._clock(), vectors=vectors, looks_back=True
        )
        found = [record for record in neighbours if record.memory.id not in stored.forget]
        known, done = [record.memory for record in found], stands.done | missing
        changed = bases.still_said(basis, known)
        changes = consolidation.consolidate(
            basis.facts, known, now=self._clock(), ids=ids, said_back=said_back, changed=changed, done=done
        )
        made_of = bases.basis_of(basis.facts, said_back, changed, known, changes, revision=basis.revision)
        met = {record.memory.content: record.vector for record in found}
        return replace(stored, changes=changes, basis=replace(made_of, done=done)), {**vectors, **met}

    @asynccontextmanager
    async def _locked(self, lease: Lease) -> AsyncIterator[_Held]:
        """Under the user's lock. Who lost it after planning looks again at what they may have written beside others.

        Raises `Conflict` then all the same: the window is left to whoever has its lease next.
        """
        held: _Held | None = None
        try:
            async with self._ledger.write(lease.user_id) as lock:
                held = _Held(lock, partial(self._turn_log.save_plan, lease))
                yield held
        except Conflict:
            if held is not None and held.planned is not None:
                await self._mend(lease, held.planned)
            raise

    async def _mend(self, lease: Lease, planned: Plan) -> None:
        """Rows of ours that came late are compared with what others wrote; nothing is written that does not stand."""
        if planned.basis is None:
            return
        async with self._ledger.write(lease.user_id) as held:
            mended, vectors = await self._anew(lease, held, planned, planned.basis, {}, only_standing=True)
            await self._applying.apply(lease.user_id, held, replace(mended, forget=()), vectors)


def _likeness(topic: Vector | None, records: Sequence[Record]) -> Callable[[Memory], float]:
    vectors = {record.memory.id: record.vector for record in records}
    return lambda memory: 0.0 if topic is None else float(vectors[memory.id] @ topic)


def memory_id(lease: Lease, ordinal: str) -> str:
    """The id of a row that this window creates: the same at every attempt."""
    return str(uuid.uuid5(_IDS, "\x1f".join((lease.user_id, lease.session_id, lease.window_id, ordinal))))
