"""One window of turns, learnt: read, and under the user's lock: look up, consolidate, store the plan, apply it.

Safe to break off at any await: ids are drawn from the window, the plan is stored before it is applied, and a stored
plan is applied as it was; where somebody wrote meanwhile it is made again of the same claims, without what was
forgotten or put away since. Never asks a model twice, and logs no content.
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from typing import Protocol

from memory.errors import Conflict, Unavailable
from memory.learn import consolidation, forgetting, plan, stored_reading
from memory.learn import plan_snapshot as bases
from memory.learn.applying import Applying
from memory.learn.consolidation import Judged, Pair
from memory.learn.forgetting import Found, Reach
from memory.learn.neighbours import Neighbours
from memory.learn.plan import Plan
from memory.learn.plan_snapshot import Basis
from memory.learn.readers import Readers
from memory.learn.relating import news, pairs_to_ask, renumbered
from memory.learn.window_reading import WindowBounds, WindowClaims, WindowReading, asks_memory
from memory.model import Memory, Record, Vector
from memory.ports import (
    ConversationRecord,
    Lease,
    LedgerWrite,
    MemoryBank,
    MemoryFilter,
    PairVerdict,
    RequestTraces,
    WindowLeases,
)
from memory.runtime.instruments import Instruments
from memory.service.erasure import Erasure

VERDICT_ROUNDS_MAX = 3  # in the last one, if somebody writes all the time, fields alone decide

_IDS = uuid.UUID("8f0c6a1e-54d7-5c43-9d2b-2f7e1b6a9c11")


@dataclass(frozen=True, slots=True)
class _Seen:
    """What new claims may say again or change, at which revision of the user's memories, and what a reader said of
    it.
    """

    revision: int
    near: Sequence[Record]
    of_pairs: Mapping[Pair, PairVerdict]


@dataclass(slots=True)
class _Held:
    """The user's lock, and what was planned under it: from then on part of it may be written."""

    lock: LedgerWrite
    store_plan: Callable[[bytes], Awaitable[None]]
    planned: Plan | None = None

    async def save(self, planned: Plan) -> None:
        await self.store_plan(plan.encode(planned))
        self.planned = planned


class LearningTurns(WindowLeases, ConversationRecord, Protocol):
    """What of the turn log a window needs: it is leased, and belongs to a conversation."""


class WindowLearning:
    """Learns leased windows. Any number of windows of different users at a time."""

    def __init__(
        self,
        *,
        turn_log: LearningTurns,
        memories: MemoryBank,
        traces: RequestTraces,
        readers: Readers,
        instruments: Instruments,
        bounds: WindowBounds,
    ) -> None:
        """What is at hand spares the store; what is written is made of it only where nobody wrote since. The pace in
        `bounds` is all that this remembers from one window to the next.
        """
        self._turn_log = turn_log
        self._ledger = memories.ledger
        self._store = memories.store
        self._readers = readers
        self._clock = instruments.clock
        self._metrics = instruments.metrics
        self._applying = Applying(
            store=memories.store,
            embedder=memories.embedder,
            erasure=Erasure(memories=memories, turn_log=turn_log, traces=traces, clock=instruments.clock),
            receipts=traces.receipts,
            clock=instruments.clock,
            metrics=instruments.metrics,
        )
        self._reading = WindowReading(
            turn_log=turn_log,
            memories=memories,
            receipts=traces.receipts,
            readers=readers,
            metrics=instruments.metrics,
            bounds=bounds,
        )
        self._neighbours = Neighbours(store=memories.store, at_hand=memories.at_hand, embedded=self._applying.embedded)

    async def learn(self, lease: Lease) -> None:
        """Return once all that the window teaches is stored. Raises `Unavailable`, `Conflict`, `UnreadablePlan`."""
        if stored_reading.is_reading(lease.plan):
            read = await self._reading.read(lease, save=partial(self._turn_log.save_plan, lease))
            if not read.is_empty:
                await self._plan_and_apply(lease, read)
        else:
            assert lease.plan is not None
            await self._repeat(lease, plan.decode(lease.plan))

    async def _plan_and_apply(self, lease: Lease, read: WindowClaims) -> None:
        texts = [claim.text for claim in read.claims]
        topics = forgetting.topics_of(read.requests)
        vectors = await self._applying.embedded([*texts, *topics])  # before the lock: it takes longest
        for round_ in range(VERDICT_ROUNDS_MAX):
            seen = await self._seen(lease, read, vectors)
            async with self._locked(lease) as held:
                standing = await self._standing(lease, read, vectors, seen, is_last=round_ == VERDICT_ROUNDS_MAX - 1)
                if standing is None:
                    continue  # somebody wrote while the reader thought: ask again about what stands now
                planned, known = await self._planned(lease, read, vectors, standing)
                await held.save(planned)
                gone = await self._applying.apply(lease.user_id, held.lock, planned, vectors | known)
            await self._applying.settle(lease.user_id, planned, gone)
            return

    async def _seen(self, lease: Lease, read: WindowClaims, vectors: Mapping[str, Vector]) -> _Seen:
        """Before the lock, since a reader takes its time."""
        revision = (await self._ledger.revision(lease.user_id)).number
        near = await self._neighbours.of(
            lease.user_id, read.claims, read.confirmations, vectors=vectors, revision=revision
        )
        known = {record.memory.content: record.vector for record in near}
        memories, ids = [record.memory for record in near], partial(memory_id, lease)
        pairs = pairs_to_ask(read.claims, memories, vectors={**known, **vectors}, ids=ids)
        if not pairs:
            return _Seen(revision, near, {})
        reader = self._readers.first
        try:
            said = await reader.relate(list(pairs.values()))
        except Unavailable:
            if not (read.requests or asks_memory(read.claims)):
                raise
            self._metrics.model_shortfalls.labels("pair").inc()
            said = await self._readers.ready.relate(list(pairs.values()))
        return _Seen(revision, near, dict(zip(pairs, said, strict=True)))

    async def _standing(
        self, lease: Lease, read: WindowClaims, vectors: Mapping[str, Vector], seen: _Seen, *, is_last: bool
    ) -> _Seen | None:
        """Under the lock: what was seen, if nobody wrote since. Else None, or in the last round what stands now, of
        which no reader was asked.
        """
        if (await self._ledger.revision(lease.user_id)).number == seen.revision + 1:  # our own lock makes it odd
            return seen
        if not is_last:
            return None
        near = await self._neighbours.of(lease.user_id, read.claims, read.confirmations, vectors=vectors)
        return replace(seen, near=near, of_pairs={})

    async def _planned(
        self, lease: Lease, read: WindowClaims, vectors: Mapping[str, Vector], seen: _Seen
    ) -> tuple[Plan, dict[str, Vector]]:
        """The plan, made of what is stored now, under the lock; and vectors that were met on the way."""
        forgotten = await self._forgotten(lease, read, vectors)
        gone = {memory_id for found in forgotten.values() for memory_id in found.gone}
        left = [record for record in seen.near if record.memory.id not in gone]
        known = [record.memory for record in left]
        places = news(read.claims, known, read.turns)
        claims = [read.claims[place] for place in places]
        ids = partial(memory_id, lease)
        verdicts = renumbered(seen.of_pairs, places, count=len(read.claims), ids=ids)
        changes = consolidation.consolidate(
            claims,
            known,
            now=self._clock(),
            ids=ids,
            judged=Judged(read.confirmations, verdicts),
        )
        outcomes = forgetting.outcomes_of(read.requests, forgotten)
        revision = (await self._ledger.revision(lease.user_id)).number
        basis = bases.basis_of(claims, read.confirmations, verdicts, known, changes, revision=revision)
        return Plan(changes, tuple(gone), outcomes, basis), {record.memory.content: record.vector for record in left}

    async def _forgotten(self, lease: Lease, read: WindowClaims, vectors: Mapping[str, Vector]) -> dict[int, Found]:
        """By index of the request: what it means, and what is like it. What is said before it and not learnt yet goes,
        too.
        """
        found: dict[int, Found] = {}
        stored: dict[str, Sequence[Record]] = {}  # by project; nothing is written between two requests of a window
        for index, request in enumerate(read.requests):
            project_id = request.turn.scope.project_id
            if request.reach is Reach.EVERYTHING:
                earlier, own = request.turn.at, [turn.id for turn in lease.turns]
                await self._turn_log.withdraw(lease.user_id, project_id=project_id, opened_before=earlier, spare=own)
            if (previous := forgetting.turn_meant(request, read.turns)) and previous not in lease.turns:
                await self._turn_log.withdraw(lease.user_id, opened_before=inf, only=[previous.id])
            if project_id not in stored:
                where = MemoryFilter(lease.user_id, project_id=project_id, status=None)
                stored[project_id] = await self._store.load(where, limit=forgetting.FORGET_MEMORIES_MAX)
            records = stored[project_id]
            memories, likeness = [one.memory for one in records], _likeness(vectors.get(request.topic), records)
            gone = forgetting.meant(request, memories, read.turns)
            found[index] = Found(gone, forgetting.similar(request, memories, likeness))
        return found

    async def _repeat(self, lease: Lease, stored: Plan) -> None:
        claims = stored.basis.claims if stored.basis is not None else ()
        contents = [*(change.memory.content for change in stored.changes), *(claim.text for claim in claims)]
        vectors = await self._applying.embedded(contents)
        later = await self._reading.later_requests(lease)
        wanted_still = [change for change in stored.changes if not forgetting.is_overtaken(later, change.memory)]
        async with self._locked(lease) as held:
            revision = (await self._ledger.revision(lease.user_id)).number
            if stored.basis is None or not bases.is_overtaken(stored.basis, revision):
                held.planned = stored
                wanted = await self._applying.still_wanted(lease.user_id, held.lock, wanted_still)
                fitting, known = replace(stored, changes=wanted), vectors
            else:
                overtaken = {n for n, claim in enumerate(claims) if forgetting.is_overtaken(later, claim)}
                basis = replace(stored.basis, revision=revision, done=stored.basis.done | overtaken)
                fitting, known = await self._planned_again(lease, held.lock, stored, basis, vectors)
                await held.save(fitting)
            gone = await self._applying.apply(lease.user_id, held.lock, fitting, known)
        await self._applying.settle(lease.user_id, stored, gone)

    async def _planned_again(
        self,
        lease: Lease,
        held: LedgerWrite,
        stored: Plan,
        basis: Basis,
        vectors: Mapping[str, Vector],
        *,
        only_standing: bool = False,
    ) -> tuple[Plan, dict[str, Vector]]:
        """The same claims, consolidated with what is stored now; `only_standing`: those whose rows are among it."""
        ids = partial(memory_id, lease)
        places = range(len(basis.claims))
        of_plan = [*(change.memory.id for change in stored.changes), *(ids(str(place)) for place in places)]
        rows = {r.memory.id: r.memory for r in await self._store.get(lease.user_id, list(dict.fromkeys(of_plan)))}
        forgotten = await held.forgotten(of_plan)
        stands = bases.standing(basis, stored.changes, stored=rows, forgotten=forgotten, ids=ids)
        missing = {place for place in places if only_standing and ids(str(place)) not in rows}
        confirmations = () if stands.is_begun or only_standing else basis.confirmations
        neighbours = await self._neighbours.of(lease.user_id, basis.claims, confirmations, vectors=vectors)
        found = [record for record in neighbours if record.memory.id not in stored.forget]
        known, done = [record.memory for record in found], stands.done | missing
        verdicts = bases.still_said(basis, known, ids=ids)
        changes = consolidation.consolidate(
            basis.claims,
            known,
            now=self._clock(),
            ids=ids,
            judged=Judged(confirmations, verdicts),
            done=done,
        )
        made_of = bases.basis_of(basis.claims, confirmations, verdicts, known, changes, revision=basis.revision)
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
            mended, vectors = await self._planned_again(lease, held, planned, planned.basis, {}, only_standing=True)
            await self._applying.apply(lease.user_id, held, replace(mended, forget=()), vectors)


def _likeness(topic: Vector | None, records: Sequence[Record]) -> Callable[[Memory], float]:
    vectors = {record.memory.id: record.vector for record in records}
    return lambda memory: 0.0 if topic is None else float(vectors[memory.id] @ topic)


def memory_id(lease: Lease, ordinal: str) -> str:
    """The id of a row that this window creates: the same at every attempt."""
    return str(uuid.uuid5(_IDS, "\x1f".join((lease.user_id, lease.session_id, lease.window_id, ordinal))))
