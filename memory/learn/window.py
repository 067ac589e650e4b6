"""Learns one window of turns: reads it, then under the user's lock looks up, consolidates, stores the plan, applies it.

Safe to interrupt at any await: ids are derived from the window, the plan is stored before it is applied, and a stored
plan is applied unchanged. If somebody wrote meanwhile, it is made again from the same claims, without those forgotten
or archived since. A model is never asked twice, and no content is logged.
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from typing import Protocol

from memory.errors import Conflict, Unavailable
from memory.learn import consolidation, forgetting, plan, plan_inputs, raw_words
from memory.learn.closeness import embedded_by
from memory.learn.consolidation import Judged, Pair
from memory.learn.forgetting import ForgetMatches, ForgetRequest
from memory.learn.neighbours import NeighbourSearch
from memory.learn.plan import Plan
from memory.learn.plan_inputs import PlanInputs
from memory.learn.plan_writer import PlanWriter
from memory.learn.readers import Readers
from memory.learn.relating import new_claim_indexes, pairs_to_ask, renumbered
from memory.learn.window_reading import WindowBounds, WindowClaims, WindowReading, asks_memory
from memory.model import Claim, Memory, Record, Vector
from memory.model.outcomes import merged
from memory.model.raw_words import embedded_text
from memory.ports import (
    ConversationRecord,
    Lease,
    LedgerWrite,
    MemoryBank,
    MemoryFilter,
    OrderReach,
    PairVerdict,
    RequestStores,
    WindowLeases,
)
from memory.runtime.tracing import SpanName, Telemetry
from memory.service.erasure import by_turn, narrowed
from memory.service.holdout_signs import HoldoutSigns
from memory.service.locked_writes import forget_wordings, without_meant
from memory.service.raw_word_search import RawWordSearch
from memory.service.summary_exclusions import Reach, SummaryExclusions, turns_quoted

VERDICT_ROUNDS_MAX = 3  # in the last one, if somebody writes continuously, fields alone decide

_IDS = uuid.UUID("8f0c6a1e-54d7-5c43-9d2b-2f7e1b6a9c11")


@dataclass(frozen=True, slots=True)
class _Seen:
    """The neighbours of the new claims at a revision of the user's memories, and the reader's verdicts on the pairs."""

    revision: int
    near: Sequence[Record]
    of_pairs: Mapping[Pair, PairVerdict]


@dataclass(slots=True)
class _Held:
    """The user's lock, and the plan made under it, of which parts may have been written."""

    lock: LedgerWrite
    store_plan: Callable[[bytes], Awaitable[None]]
    planned: Plan | None = None

    async def save(self, planned: Plan) -> None:
        is_refused = False
        try:
            await self.store_plan(plan.encode(planned))
        except Conflict:  # nothing is stored: the window is not ours any more, or its user was erased
            is_refused = True
            raise
        finally:
            if plan_inputs.depends_on_memories(planned.inputs) and not is_refused:
                self.lock.touch(())  # nobody else ever plans at this revision, so that a retry can compare it
        self.planned = planned


class LearningTurns(WindowLeases, ConversationRecord, Protocol):
    """The parts of the turn log that a window needs: leases and the conversation."""


class WindowLearning:
    """Learns leased windows, concurrently for different users."""

    def __init__(
        self,
        *,
        turn_log: LearningTurns,
        memories: MemoryBank,
        stores: RequestStores,
        readers: Readers,
        telemetry: Telemetry,
        bounds: WindowBounds,
    ) -> None:
        """Local memories spare the store; plans use them only if nobody wrote since. The rate limit in `bounds`
        outlives windows and is the only state kept between them.
        """
        self._turn_log = turn_log
        self._ledger = memories.ledger
        self._store = memories.store
        self._raw_words = RawWordSearch(memories.store, turn_log)
        self._readers = readers
        self._exclusions = SummaryExclusions(stores.summaries)
        self._opt_outs = stores.opt_outs
        self._clock = telemetry.clock
        self._metrics = telemetry.metrics
        self._tracer = telemetry.tracer
        self._embedded = embedded_by(memories.embedder)
        self._plan_writer = PlanWriter(turn_log=turn_log, memories=memories, stores=stores, telemetry=telemetry)
        self._signs = HoldoutSigns(turn_log=turn_log, receipts=stores.receipts, metrics=telemetry.metrics)
        self._compares_arms = bounds.compares_arms
        self._reading = WindowReading(
            turn_log=turn_log,
            memories=memories,
            stores=stores,
            readers=readers,
            metrics=telemetry.metrics,
            bounds=bounds,
        )
        self._neighbours = NeighbourSearch(memories)

    async def learn(self, lease: Lease) -> None:
        """Return once everything in the window is stored. Raises `Unavailable`, `Conflict`, `UnreadablePlan`."""
        if plan.is_reading(lease.plan):
            with self._tracer.span(SpanName.READ_WINDOW):
                read = await self._reading.read(lease, save=partial(self._turn_log.save_plan, lease))
            learnt = Plan()
            if not read.is_empty:
                with self._tracer.span(SpanName.APPLY_WINDOW):
                    learnt = await self._plan_and_apply(lease, read)
        else:
            assert lease.plan is not None
            learnt = plan.decode(lease.plan)
            await self._repeat(lease, learnt)
        if self._compares_arms:
            await self._signs.record(lease, learnt.inputs.claims if learnt.inputs else (), learnt.changes)

    async def _plan_and_apply(self, lease: Lease, read: WindowClaims) -> Plan:
        texts = [*(one.text for one in read.claims), *map(embedded_text, read.raw)]  # before the lock: takes longest
        vectors = await self._embedded([*texts, *forgetting.topics_of(read.requests)])
        withdrawn: Sequence[str] = ()
        if any(one.reach is OrderReach.CONVERSATION for one in read.requests):
            withdrawn = await self._plan_writer.forget_conversation(lease.user_id, lease.session_id)
        for round_ in range(VERDICT_ROUNDS_MAX):
            seen = await self._neighbours_and_verdicts(lease, read, vectors)
            async with self._locked(lease) as held:
                current = await self._current(lease, read, vectors, seen, is_last=round_ == VERDICT_ROUNDS_MAX - 1)
                if current is None:
                    continue  # somebody wrote while the reader worked: ask again about the current memories
                if await self._opt_outs.since(lease.user_id) is not None:
                    read = replace(read, claims=(), confirmations=(), raw=())  # what they ask to forget remains
                planned, known = await self._planned(lease, held.lock, read, vectors, current, withdrawn)
                await held.save(planned)
                gone = await self._plan_writer.apply(lease.user_id, held.lock, planned, vectors | known)
            await self._plan_writer.finish(lease.user_id, planned, gone, lease.turns)
            return planned
        raise AssertionError("the last round plans in any case")

    async def _neighbours_and_verdicts(self, lease: Lease, read: WindowClaims, vectors: Mapping[str, Vector]) -> _Seen:
        """Before the lock, since a reader takes long."""
        revision = (await self._ledger.revision(lease.user_id)).number
        near = await self._neighbours.find(
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

    async def _current(
        self, lease: Lease, read: WindowClaims, vectors: Mapping[str, Vector], seen: _Seen, *, is_last: bool
    ) -> _Seen | None:
        """Under the lock: `seen` if nobody wrote since, else None; in the last round neighbours without verdicts."""
        if (await self._ledger.revision(lease.user_id)).number == seen.revision + 1:  # our own lock makes it odd
            return seen
        if not is_last:
            return None
        near = await self._neighbours.find(lease.user_id, read.claims, read.confirmations, vectors=vectors)
        return replace(seen, near=near, of_pairs={})

    async def _planned(
        self,
        lease: Lease,
        held: LedgerWrite,
        read: WindowClaims,
        vectors: Mapping[str, Vector],
        seen: _Seen,
        withdrawn: Sequence[str],
    ) -> tuple[Plan, dict[str, Vector]]:
        """The plan, from the stored memories, under the lock; and the vectors found in the process. `withdrawn`: ids of
        memories that are gone with their conversation.
        """
        forgotten = await self._forgotten(lease, held, read, vectors, withdrawn)
        gone = {memory_id for found in forgotten.values() for memory_id in (*found.gone, *found.raw)}
        near = without_meant(seen.near, read.forgets)
        lost = by_turn(await self._store.memories(lease.user_id, list(gone)) if gone else ())
        left = [
            replace(record, memory=narrowed(record.memory, lost, now=self._clock()))
            for record in near
            if record.memory.id not in gone
        ]
        known = [record.memory for record in left]
        places = new_claim_indexes(read.claims, known, read.turns)
        claims = [read.claims[place] for place in places]
        ids = partial(memory_id, lease)
        verdicts = renumbered(seen.of_pairs, places, count=len(read.claims), ids=ids)
        judged = Judged(read.confirmations, verdicts)
        changes = consolidation.consolidate(claims, known, now=self._clock(), ids=ids, judged=judged)
        outcomes = merged(forgetting.outcomes_of(read.requests, forgotten), read.refused)
        revision = (await self._ledger.revision(lease.user_id)).number
        inputs = plan_inputs.inputs_of(claims, read.confirmations, verdicts, known, changes, revision=revision)
        raw = tuple(raw_words.without_quoted(read.raw, changes))
        return Plan(changes, tuple(gone), outcomes, inputs, raw), {one.memory.content: one.vector for one in left}

    async def _forgotten(
        self,
        lease: Lease,
        held: LedgerWrite,
        read: WindowClaims,
        vectors: Mapping[str, Vector],
        withdrawn: Sequence[str],
    ) -> dict[int, ForgetMatches]:
        """Matching and similar memories by index of the request. Withdraws earlier turns that are not learnt yet."""
        found: dict[int, ForgetMatches] = {}
        words: dict[int, list[str]] = {}  # rows with raw words, by index of the request
        stored: dict[str, Sequence[Record]] = {}  # by project; nothing is written between two requests of a window
        for index, request in enumerate(read.requests):
            project_id = request.turn.scope.project_id
            if request.reach is OrderReach.CONVERSATION:
                await self._exclusions.leave_out_until(lease.user_id, Reach(session_id=lease.session_id))
                found[index] = ForgetMatches(withdrawn)
                continue
            if request.reach is OrderReach.EVERYTHING:
                earlier, own = request.turn.at, [turn.id for turn in lease.turns]
                await self._turn_log.withdraw(lease.user_id, project_id=project_id, opened_before=earlier, spare=own)
            if (previous := forgetting.turn_meant(request, read.turns)) and previous not in lease.turns:
                await self._turn_log.withdraw(lease.user_id, opened_before=inf, only=[previous.id])
            if project_id not in stored:
                where = MemoryFilter(lease.user_id, project_id=project_id, status=None)
                known = await self._store.load(where, limit=forgetting.FORGET_MEMORIES_MAX)
                stored[project_id] = await forget_wordings(self._store, held, lease.user_id, known, read.forgets)
                of_project = {n: one for n, one in enumerate(read.requests) if one.turn.scope.project_id == project_id}
                meant = {n: partial(forgetting.matching_ids, one, turns=read.turns) for n, one in of_project.items()}
                words |= await self._raw_words.chosen(lease.user_id, meant, held, project_id=project_id)
            records = stored[project_id]
            memories = [one.memory for one in records]
            by_text = {**vectors, **{one.memory.content: one.vector for one in records}}
            close = await self._reading.closeness([request], [one.content for one in memories], by_text)
            gone = forgetting.matching_ids(request, memories, read.turns, close)
            similar = forgetting.similar_ids(request, memories, close)
            found[index] = ForgetMatches(gone, similar, words[index])
            kept: list[Claim | Memory] = [*read.claims, *(one for one in memories if one.id not in gone)]
            await self._leave_out(lease.user_id, request, kept, held)
        return found

    async def _leave_out(
        self, user_id: str, request: ForgetRequest, kept: Iterable[Claim | Memory], held: LedgerWrite
    ) -> None:
        """What it means is in no summary, of whatever session, learnt or not. Of a mere kind of thing nobody can say
        which turns name it: only those that something quotes which is `kept` stay in summaries.
        """
        where = Reach(request.turn.scope.project_id, request.turn.at)
        if request.reach is OrderReach.EVERYTHING or forgetting.names_only_a_kind(request):
            await self._exclusions.leave_out_until(user_id, where, spare=turns_quoted(kept) if request.topic else ())
        elif request.topic:
            says = forgetting.says_topic(request)
            await self._exclusions.leave_out_saying(user_id, says, where, between=held.renew)

    async def _repeat(self, lease: Lease, stored: Plan) -> None:
        claims = stored.inputs.claims if stored.inputs is not None else ()
        rows = [*(change.memory for change in stored.changes), *stored.raw]
        later, close = await self._reading.later_for_stored(lease, claims, list(map(embedded_text, rows)))
        forgotten = forgetting.forgotten_later(later, [change.memory for change in stored.changes], close)
        not_forgotten = [change for n, change in enumerate(stored.changes) if n not in forgotten]
        async with self._locked(lease) as held:
            await held.store_plan(plan.encode(stored))  # `Conflict` if its turns were withdrawn before we held the lock
            if await self._opt_outs.since(lease.user_id) is not None:
                stored, not_forgotten = replace(stored, changes=(), raw=(), inputs=None), []
            revision = (await self._ledger.revision(lease.user_id)).number
            overtaken = forgetting.forgotten_later(later, claims, close)
            if stored.inputs is None or not (overtaken or plan_inputs.is_outdated(stored.inputs, revision)):
                held.planned = stored
                wanted = await self._plan_writer.without_outdated(lease.user_id, held.lock, not_forgotten)
                fitting, known = replace(stored, changes=wanted), close.vectors
            else:
                left = forgetting.without_words_of({claims[n] for n in overtaken}, claims)
                inputs = replace(stored.inputs, claims=left, revision=revision, done=stored.inputs.done | overtaken)
                fitting, known = await self._planned_again(lease, held.lock, stored, inputs, close.vectors)
                await held.save(fitting)
            forgotten = forgetting.forgotten_later(later, stored.raw, close)
            said = [row for n, row in enumerate(stored.raw) if n not in forgotten]
            deleted = await held.lock.forgotten([row.id for row in said])
            fitting = replace(fitting, raw=tuple(row for row in said if row.id not in deleted))
            gone = await self._plan_writer.apply(lease.user_id, held.lock, fitting, known)
        await self._plan_writer.finish(lease.user_id, fitting, gone, lease.turns)

    async def _planned_again(
        self,
        lease: Lease,
        held: LedgerWrite,
        stored: Plan,
        inputs: PlanInputs,
        vectors: Mapping[str, Vector],
        *,
        only_stored: bool = False,
    ) -> tuple[Plan, dict[str, Vector]]:
        """The same claims, consolidated with what is stored now; `only_stored`: only those whose rows are stored."""
        ids = partial(memory_id, lease)
        places = range(len(inputs.claims))
        of_plan = [*(change.memory.id for change in stored.changes), *(ids(str(place)) for place in places)]
        rows = {r.memory.id: r.memory for r in await self._store.get(lease.user_id, list(dict.fromkeys(of_plan)))}
        forgotten = await held.forgotten(of_plan)
        progress = plan_inputs.progress_of(inputs, stored.changes, stored=rows, forgotten=forgotten, ids=ids)
        missing = {place for place in places if only_stored and ids(str(place)) not in rows}
        is_counted = progress.is_begun or only_stored  # what the user called right
        confirmations = [one for one in inputs.confirmations if not (one.is_right and is_counted)]
        neighbours = await self._neighbours.find(lease.user_id, inputs.claims, confirmations, vectors=vectors)
        found = [record for record in neighbours if record.memory.id not in stored.forget]
        twice = plan_inputs.stored_twice([record.memory for record in found], own=[ids(str(place)) for place in places])
        if twice:  # our row arrived after the window of another session had looked for it
            await self._plan_writer.erase(lease.user_id, held, twice)
            found = [record for record in found if record.memory.id not in twice]
        known, done = [record.memory for record in found], progress.done | missing
        verdicts = plan_inputs.valid_verdicts(inputs, known, ids=ids)
        changes = consolidation.consolidate(
            inputs.claims, known, now=self._clock(), ids=ids, judged=Judged(confirmations, verdicts), done=done
        )
        new_inputs = plan_inputs.inputs_of(
            inputs.claims, confirmations, verdicts, known, changes, revision=inputs.revision
        )
        met = {record.memory.content: record.vector for record in found}
        return replace(stored, changes=changes, inputs=replace(new_inputs, done=done)), {**vectors, **met}

    @asynccontextmanager
    async def _locked(self, lease: Lease) -> AsyncIterator[_Held]:
        """Hold the user's lock. If it is lost after planning, rows that were written late are compared with others.

        Raises `Conflict` all the same: the window is left to its next lease.
        """
        held: _Held | None = None
        try:
            async with self._ledger.write(lease.user_id) as lock:
                held = _Held(lock, partial(self._turn_log.save_plan, lease))
                yield held
        except Conflict:
            if held is not None and held.planned is not None:
                await self._repair(lease, held.planned)
            raise

    async def _repair(self, lease: Lease, planned: Plan) -> None:
        """Compare our late rows with those that others wrote; only valid rows are changed."""
        if planned.inputs is None:
            return
        async with self._ledger.write(lease.user_id) as held:
            repaired, vectors = await self._planned_again(lease, held, planned, planned.inputs, {}, only_stored=True)
            await self._plan_writer.apply(lease.user_id, held, replace(repaired, forget=(), raw=()), vectors)


def memory_id(lease: Lease, ordinal: str) -> str:
    """The id of a row that this window creates: the same at every attempt."""
    return str(uuid.uuid5(_IDS, "\x1f".join((lease.user_id, lease.session_id, lease.window_id, ordinal))))
