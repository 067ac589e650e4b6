"""Upkeep of one user's memories: stores usage counts, reads old rows again, unites duplicates, archives useless rows,
derives reflections.

`retention` and `reflection` decide; this module reads, and writes under the user's lock. Planning happens
before the lock; under it each step is checked again, and a row that was changed meanwhile is left for the next round.
Dependent steps are one write, so that a crash leaves nothing half done. A dry run writes nothing. Logs no content.

`UpkeepLoop` runs it periodically, in the background of learning: one user after the other, in one process at a time. It
must never disturb learning: an error with one user is counted, and that user waits for the next round.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import TypeAlias

import numpy as np
import structlog

from memory.errors import MemproxyError, Unavailable
from memory.learn import retention
from memory.learn.closeness import embedded_by
from memory.learn.reflection import Reflector, grounds_of, stale
from memory.learn.retention import RetentionReason, RetentionRules, RetentionStep, totals
from memory.model import Change, ChangeKind, Memory, MemoryStatus, Record, Vector
from memory.ports import (
    Clock,
    LedgerWrite,
    MemoryBank,
    MemoryFilter,
    RequestStores,
    StatementReader,
    UpkeepSchedule,
    UsageCount,
)
from memory.ports.paging import batched, sized_batches
from memory.runtime.metrics import Metrics
from memory.runtime.task_groups import pause_before
from memory.runtime.tracing import Telemetry
from memory.service import old_rows
from memory.service.locked_writes import write_rows
from memory.service.memory_scan import newest

ROWS_MAX = 200_000  # of one user per round: the newest
ROWS_PER_WRITE = 200  # under one hold of the lock: well within its expiry, since a chat's refresh waits for it
SPLIT_MAX = 2_000  # old rows read again in one round, some ten milliseconds each
USES_MAX = 20_000  # usage counts stored in one round; the rest follows in the next
LOOK_SECONDS = 60.0  # between two checks for a due user
REST_SECONDS = 0.5  # between two users, so that other writers of Milvus Lite get their turn
PATIENCE_SECONDS = 900.0  # other processes take over a round that takes longer

log = structlog.get_logger(__name__)

Unit: TypeAlias = list[RetentionStep]
"""Steps that depend on each other, hence one write."""


class UpkeepTask(StrEnum):
    SPLIT = "split"
    CONSOLIDATE = "consolidate"
    PRUNE = "prune"
    REFLECT = "reflect"


EVERY_TASK = tuple(UpkeepTask)


class Upkeep:
    """Upkeep for one user at a time. Several processes may run it: they only delay each other."""

    def __init__(
        self,
        *,
        memories: MemoryBank,
        stores: RequestStores,
        telemetry: Telemetry,
        rules: RetentionRules,
        reflecting: Reflector | None = None,
        reader: Callable[[], Awaitable[StatementReader]] | None = None,
    ) -> None:
        """`reflecting`: None if there is no model for reflections. `reader`: of old rows, loaded if there are some."""
        self._store = memories.store
        self._embedded = embedded_by(memories.embedder)
        self._ledger = memories.ledger
        self._usage_counts = stores.usage_counts
        self._notes = stores.notes
        self._opt_outs = stores.opt_outs
        self._clock = telemetry.clock
        self._metrics = telemetry.metrics
        self._rules = rules
        self._reflecting = reflecting
        self._reader = reader

    async def run(
        self, user_id: str, tasks: Sequence[UpkeepTask] = EVERY_TASK, *, is_dry: bool = False
    ) -> list[RetentionStep]:
        """The steps that were applied, or, in a dry run, would be. Raises `Unavailable`, `Conflict`."""
        done: list[RetentionStep] = []
        with self._metrics.upkeep_seconds.time():
            rows = await newest(self._store, MemoryFilter(user_id, status=None), most=ROWS_MAX)
            if is_dry:
                waiting = await self._usage_counts.unstored(user_id, limit=USES_MAX)
                rows |= {i: _used(rows[i], use) for i, use in waiting.items() if i in rows}
            else:
                rows |= await self._with_uses_stored(user_id)
            for task in tasks:
                planned = await self._planned(user_id, task, rows)
                for units in sized_batches(planned, len, items_max=ROWS_PER_WRITE, size_max=ROWS_PER_WRITE):
                    steps = [step for unit in units for step in unit] if is_dry else await self._write(user_id, units)
                    done += [step for step in steps if not old_rows.is_mark(step.before, step.after)]
                    for step in steps:
                        _take(rows, step)
        return done

    async def _planned(self, user_id: str, task: UpkeepTask, rows: dict[str, Memory]) -> list[Unit]:
        """Units of dependent steps."""
        now, memories = self._clock(), list(rows.values())
        match task:
            case UpkeepTask.SPLIT:
                if self._reader is None or not any(map(old_rows.is_old, memories)):
                    return []
                units = await old_rows.split(memories, await self._reader(), now=now, most=SPLIT_MAX)
                return [[RetentionStep(RetentionReason.SPLIT, *pair) for pair in rows] for rows in units]
            case UpkeepTask.CONSOLIDATE:
                return retention.united(memories, now=now)
            case UpkeepTask.PRUNE:
                steps = [
                    *retention.pruned(memories, self._rules, now=now),
                    *retention.erasable(memories, self._rules, now=now),
                ]
                gone = {step.memory.id for step in steps}
                dated = retention.dated([m for m in memories if m.id not in gone], self._rules, now=now)
                return [[step] for step in (*steps, *dated)]
            case UpkeepTask.REFLECT:
                steps = stale(memories, now=now)
                if self._reflecting is not None and await self._opt_outs.since(user_id) is None:
                    gone = {step.memory.id for step in steps}
                    steps += await self._reflecting.derive([m for m in memories if m.id not in gone], now=now)
                return [[step] for step in steps]

    async def _with_uses_stored(self, user_id: str) -> dict[str, Memory]:
        """Store the pending usage counts in the rows; no other field changes, not even `updated_at`."""
        ids = list(await self._usage_counts.unstored(user_id, limit=USES_MAX))
        written: dict[str, Memory] = {}
        for batch in batched(ids, ROWS_PER_WRITE):
            async with self._ledger.write(user_id) as held:
                records = await self._store.get(user_id, batch)
                uses = await self._usage_counts.take(user_id, batch)
                counted = [
                    Record(_used(one.memory, uses[one.memory.id]), one.vector)
                    for one in records
                    if one.memory.id in uses
                ]
                await self._apply(user_id, held, counted)
            written |= {record.memory.id: record.memory for record in counted}
        return written

    async def _write(self, user_id: str, units: Sequence[Unit]) -> list[RetentionStep]:
        """Apply those units that still match the stored rows, and return their steps."""
        vectors = await self._vectors_of_new(units)  # before the lock, because it takes longest
        async with self._ledger.write(user_id) as held:
            named = [row.id for unit in units for step in unit for row in (step.before, step.after) if row is not None]
            grounds = [memory_id for unit in units for step in unit for memory_id in grounds_of(step)]
            found = {record.memory.id: record for record in await self._store.get(user_id, [*named, *grounds])}
            forgotten = await held.forgotten(named)
            steps = [step for unit in units if all(_fits(step, found, forgotten) for step in unit) for step in unit]
            erased = [step.memory.id for step in steps if step.after is None]
            if erased:
                await held.forget(erased)  # first: if we die in between, no stored plan restores them
                await self._drop_traces(user_id, erased)
                await held.renew()
                await self._store.delete(user_id, erased)
            vectors = {memory_id: record.vector for memory_id, record in found.items()} | vectors
            rows = [step.after for step in steps if step.after is not None]
            await self._apply(user_id, held, [Record(row, vectors[row.id]) for row in rows])
        if erased:
            await self._drop_traces(user_id, erased)  # a request in progress may have stored a note of them meanwhile
        for step in steps:
            self._metrics.upkeep_changes.labels(step.why.value).inc()
        return steps

    async def _vectors_of_new(self, units: Sequence[Unit]) -> dict[str, Vector]:
        steps = [step for unit in units for step in unit]
        new = [s.after for s in steps if s.after and (s.before is None or s.before.content != s.after.content)]
        vectors = await self._embedded([memory.content for memory in new])
        return {memory.id: vectors[memory.content] for memory in new}

    async def _apply(self, user_id: str, held: LedgerWrite, records: Sequence[Record]) -> None:
        if records:
            changes = [Change(ChangeKind.UPDATE, record.memory) for record in records]
            await write_rows(self._store, held, user_id, changes, np.stack([record.vector for record in records]))

    async def _drop_traces(self, user_id: str, memory_ids: Sequence[str]) -> None:
        await self._notes.drop(user_id, memory_ids, now=self._clock())
        await self._usage_counts.drop(user_id, memory_ids)


def _used(memory: Memory, use: UsageCount) -> Memory:
    used_at = use.used_at if memory.used_at is None else max(memory.used_at, use.used_at)
    return replace(memory, access_count=memory.access_count + use.counted, used_at=used_at)


def _fits(step: RetentionStep, found: Mapping[str, Record], forgotten: Collection[str]) -> bool:
    """Whether the row is still as it was at planning, apart from usage counts."""
    if step.memory.id in forgotten and step.after is not None:  # an erasure that was interrupted is completed
        return False
    if step.before is None:
        grounds = [found.get(memory_id) for memory_id in grounds_of(step)]
        return all(one is not None and one.memory.status is MemoryStatus.ACTIVE for one in grounds)
    stored = found.get(step.before.id)
    usage_counts = {"access_count": step.before.access_count, "used_at": step.before.used_at}
    return stored is not None and replace(stored.memory, **usage_counts) == step.before  # type: ignore[arg-type]


def _take(rows: dict[str, Memory], step: RetentionStep) -> None:
    if step.after is None:
        del rows[step.memory.id]
    else:
        rows[step.after.id] = step.after


class UpkeepLoop:
    """Upkeep of all users until told to stop. Any number of workers may run it; one at a time is active."""

    def __init__(
        self, upkeep: Upkeep, *, upkeep_schedule: UpkeepSchedule, clock: Clock, metrics: Metrics, every: float
    ) -> None:
        """`every`: seconds between two rounds for one user."""
        self._upkeep = upkeep
        self._schedule = upkeep_schedule
        self._clock = clock
        self._metrics = metrics
        self._every = every

    async def run(self, until: asyncio.Event) -> None:
        while not until.is_set():
            had_work = await self.look_after_next()
            await pause_before(until, REST_SECONDS if had_work else LOOK_SECONDS)

    async def look_after_next(self) -> bool:
        """One round for the user who is due; False if nobody is, or if that is not known now."""
        try:
            user_id = await self._schedule.next_due(now=self._clock(), every=self._every, patience=PATIENCE_SECONDS)
            if user_id is None:
                return False
            self._metrics.upkeep_rounds.labels(await self._looked_after(user_id)).inc()
            await self._schedule.ended(user_id, now=self._clock())
        except Unavailable:  # of the turn log; a round in progress will be taken over
            return False
        return True

    async def _looked_after(self, user_id: str) -> str:
        try:
            steps = await self._upkeep.run(user_id)
        except MemproxyError as error:
            log.warning("a round of upkeep was broken off", error=type(error).__name__)
            return "broken_off"
        if steps:
            log.info("memories were looked after", **totals(steps))
        return "done"
