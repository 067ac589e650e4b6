"""One window of turns, learnt: extract → gate → under the user's lock: look up, consolidate, store the plan, apply it.

Safe to break off at any await: ids are drawn from the window, the plan is stored before it is applied, and a stored
plan is applied as it was, except for what was forgotten, deleted or written again meanwhile. Logs no content.
"""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from memory.learn import consolidation, gate, plan, supersession
from memory.learn.extraction import Learner
from memory.learn.facts import Fact
from memory.metrics import Metrics
from memory.model import Change, ChangeKind, Record, Role, Turn, TurnStatus, Vector, statement_key
from memory.ports import Clock, Embedder, Lease, LedgerWrite, MemoryFilter, MemoryStore, TurnLog, UserLedger

TEACHING = frozenset({TurnStatus.CLOSED, TurnStatus.UNKNOWN})  # what a failed or aborted turn said is not learnt
CONTEXT_TURNS_MAX = 8  # of the session, before the window: enough to see what a bare "yes" answers
NEIGHBOURS_MAX = 1_000  # memories looked at for a change; older ones than that are left to the scheduled clean-up
HISTORY_SECONDS = 3_600.0  # said so long before being learnt: it may be older than what is known by now

OUTCOMES = {ChangeKind.CREATE: "created", ChangeKind.UPDATE: "updated", ChangeKind.SUPERSEDE: "superseded"}

_IDS = uuid.UUID("8f0c6a1e-54d7-5c43-9d2b-2f7e1b6a9c11")


class WindowLearning:
    """Learns leased windows. Holds no state of its own; any number of windows of different users at a time."""

    def __init__(
        self,
        *,
        turn_log: TurnLog,
        ledger: UserLedger,
        store: MemoryStore,
        embedder: Embedder,
        learner: Learner,
        clock: Clock,
        metrics: Metrics,
    ) -> None:
        self._turn_log = turn_log
        self._ledger = ledger
        self._store = store
        self._embedder = embedder
        self._learner = learner
        self._clock = clock
        self._metrics = metrics

    async def learn(self, lease: Lease) -> None:
        """Return once all that the window teaches is stored. Raises `Unavailable`, `Conflict`, `UnreadablePlan`."""
        if lease.plan is None:
            facts = await self._facts(lease)
            if facts:
                await self._plan_and_apply(lease, facts)
        else:
            await self._repeat(lease, plan.decode(lease.plan))

    async def _facts(self, lease: Lease) -> Sequence[Fact]:
        turns = [turn for turn in lease.turns if turn.status in TEACHING]
        if not turns:
            return ()
        context = await self._context(lease)
        proposed = await self._learner.extract(turns, context=context)
        judgement = gate.judge(proposed, [*context, *turns])
        for dropped in judgement.dropped:
            self._metrics.facts_dropped.labels(dropped.reason.value).inc()
        return judgement.kept

    async def _context(self, lease: Lease) -> list[Turn]:
        """The turns of the session right before the window, oldest first."""
        earlier: deque[Turn] = deque(maxlen=CONTEXT_TURNS_MAX)
        async for turn in self._turn_log.turns(lease.user_id, session_id=lease.session_id):
            if turn.id == lease.turns[0].id:
                break
            if turn.status in TEACHING:
                earlier.append(turn)
        return list(earlier)

    async def _plan_and_apply(self, lease: Lease, facts: Sequence[Fact]) -> None:
        vectors = await self._embedded([fact.content for fact in facts])  # before the lock: it takes longest
        async with self._ledger.write(lease.user_id) as held:
            now = self._clock()
            neighbours = await self._neighbours(lease.user_id, facts, now=now)
            vectors |= {record.memory.content: record.vector for record in neighbours}
            known = [record.memory for record in neighbours]
            changes = consolidation.consolidate(facts, known, now=now, ids=partial(memory_id, lease))
            await self._turn_log.save_plan(lease, plan.encode(changes))
            await self._write(lease.user_id, held, changes, vectors)

    async def _repeat(self, lease: Lease, changes: Sequence[Change]) -> None:
        vectors = await self._embedded([change.memory.content for change in changes])
        async with self._ledger.write(lease.user_id) as held:
            wanted = await self._still_wanted(lease.user_id, held, changes)
            await self._write(lease.user_id, held, wanted, vectors)

    async def _neighbours(self, user_id: str, facts: Sequence[Fact], *, now: float) -> list[Record]:
        """The memories that say the same; where the user's words may change something, all that could be meant."""
        found: dict[str, Record] = {}
        for project_id in {fact.scope.project_id for fact in facts}:
            where = MemoryFilter(user_id, project_id=project_id, exact_project=True)
            of_project = [fact for fact in facts if fact.scope.project_id == project_id]
            if any(_looks_back(fact, now) for fact in of_project):
                loaded = await self._store.load(where, limit=NEIGHBOURS_MAX)
                found |= {record.memory.id: record for record in loaded}
                if len(loaded) < NEIGHBOURS_MAX:
                    continue
            for key in {statement_key(fact.content) for fact in of_project}:
                same = await self._store.same_statement(where, key)
                if same is not None:
                    found[same.memory.id] = same
        return list(found.values())

    async def _still_wanted(self, user_id: str, held: LedgerWrite, changes: Sequence[Change]) -> list[Change]:
        """A stored plan without what was forgotten, deleted or written again since it was made."""
        ids = [change.memory.id for change in changes]
        forgotten = await held.forgotten(ids)
        stored = {record.memory.id: record.memory for record in await self._store.get(user_id, ids)}
        wanted: list[Change] = []
        for change in changes:
            current = stored.get(change.memory.id)
            if change.memory.id in forgotten or (current and current.updated_at > change.memory.updated_at):
                continue
            if current is not None:
                wanted.append(change)
            elif change.kind is ChangeKind.CREATE:
                wanted.append(await self._created_or_confirmed(user_id, change))
        return wanted

    async def _created_or_confirmed(self, user_id: str, change: Change) -> Change:
        """Another window may have stored the same statement between two attempts at this one."""
        memory = change.memory
        where = MemoryFilter(user_id, project_id=memory.project_id, exact_project=True)
        same = await self._store.same_statement(where, statement_key(memory.content))
        if same is None or not memory.evidence:
            return change
        row = consolidation.confirmed(same.memory, memory.evidence[0], said_at=memory.said_at, now=self._clock())
        return Change(ChangeKind.UPDATE, row)

    async def _write(
        self, user_id: str, held: LedgerWrite, changes: Sequence[Change], vectors: Mapping[str, Vector]
    ) -> None:
        if not changes:
            return
        contents = [change.memory.content for change in changes]
        known = {**vectors, **await self._embedded([content for content in contents if content not in vectors])}
        held.touch([change.memory.id for change in changes])
        await self._store.apply(user_id, changes, np.stack([known[content] for content in contents]))
        for change in changes:
            self._metrics.facts.labels(OUTCOMES[change.kind]).inc()

    async def _embedded(self, contents: Sequence[str]) -> dict[str, Vector]:
        unique = list(dict.fromkeys(contents))
        if not unique:
            return {}
        return dict(zip(unique, await self._embedder.embed(unique, is_urgent=False), strict=True))


def _looks_back(fact: Fact, now: float) -> bool:
    """Whether earlier memories have to be looked at, beyond the one that says the same."""
    is_confirmation = fact.evidence.role == Role.ASSISTANT  # may have asked for what it was told
    return is_confirmation or supersession.may_change(fact.content) or fact.said_at < now - HISTORY_SECONDS


def memory_id(lease: Lease, ordinal: str) -> str:
    """The id of a row that this window creates: the same at every attempt."""
    return str(uuid.uuid5(_IDS, "\x1f".join((lease.user_id, lease.session_id, lease.window_id, ordinal))))
