"""Applies a plan under the user's lock: deletes what is to be forgotten, then writes the rows.

A plan may be applied twice, or long after it was made: rows that were forgotten, deleted or changed since are then left
alone; deleting again is harmless. Decides nothing else, and logs no content.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from memory.learn import consolidation
from memory.learn.closeness import embedded_by
from memory.learn.plan import Plan
from memory.model import Change, ChangeKind, MemoryStatus, Turn, Vector, statement_key
from memory.model.outcomes import with_kept
from memory.model.raw_words import embedded_text
from memory.ports import ConversationRecord, LedgerWrite, MemoryBank, MemoryFilter, RequestStores
from memory.runtime.tracing import Telemetry
from memory.service.erasure import Erasure
from memory.service.locked_writes import write_rows

OUTCOMES = {ChangeKind.CREATE: "created", ChangeKind.UPDATE: "updated", ChangeKind.SUPERSEDE: "superseded"}


class PlanWriter:
    """Stateless. Methods raise `Unavailable` or `Conflict`."""

    def __init__(
        self, *, turn_log: ConversationRecord, memories: MemoryBank, stores: RequestStores, telemetry: Telemetry
    ) -> None:
        self._record = turn_log.messages
        self._store = memories.store
        self._embedded = embedded_by(memories.embedder)
        self._erasure = Erasure(memories=memories, turn_log=turn_log, stores=stores, clock=telemetry.clock)
        self.erase = self._erasure.erase_rows  # of rows that were written twice: what they say is not forgotten
        self._receipts = stores.receipts
        self._clock = telemetry.clock
        self._metrics = telemetry.metrics

    async def apply(self, user_id: str, held: LedgerWrite, plan: Plan, vectors: Mapping[str, Vector]) -> list[str]:
        """Returns the ids of the memories that were deleted; the caller passes them to `finish` after the lock.

        `vectors`: known vectors by the text that is embedded.
        """
        gone = await self._erasure.forget_held(user_id, held, plan.forget) if plan.forget else []
        raw = [Change(ChangeKind.CREATE, row) for row in plan.raw]
        await self._write(user_id, held, [*plan.changes, *raw], vectors)
        if gone:
            self._metrics.facts.labels("forgotten").inc(len(gone))
        return gone

    async def forget_conversation(self, user_id: str, session_id: str) -> Sequence[str]:
        """What was learnt of its turns goes, but for what other conversations say too. Returns the ids of what went; to
        repeat it is harmless.
        """
        turn_ids = await self._record.turn_ids(user_id, session_id)
        return (await self._erasure.sources(user_id, turn_ids)).forgotten

    async def finish(self, user_id: str, plan: Plan, gone: Sequence[str], turns: Sequence[Turn]) -> None:
        """After the lock: drop notes that hold deleted memories, and add the outcomes to the receipts of the turns."""
        await self._erasure.drop_notes(user_id, gone)
        claims = plan.inputs.claims if plan.inputs is not None else ()
        for receipt_id, outcome in with_kept(plan.outcomes, claims, plan.changes, turns).items():
            await self._receipts.amend(user_id, receipt_id, outcome)

    async def without_outdated(self, user_id: str, held: LedgerWrite, changes: Sequence[Change]) -> list[Change]:
        """The changes of a stored plan without rows that were forgotten, deleted or changed since it was made."""
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
        texts = [embedded_text(change.memory) for change in changes]
        known = {**vectors, **await self._embedded([text for text in texts if text not in vectors])}
        await write_rows(self._store, held, user_id, changes, np.stack([known[text] for text in texts]))
        for change in changes:
            if change.memory.status is not MemoryStatus.RAW:
                self._metrics.facts.labels(OUTCOMES[change.kind]).inc()
