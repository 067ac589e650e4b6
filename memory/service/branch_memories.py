"""Makes a user's memories show which branches of their conversations are abandoned: reads, decides, writes.

`branch_evidence` decides. Everything happens under the user's lock: a window that was being learnt when its turn was
abandoned has then either written its rows or lost its lease. Interrupted anywhere, it is repeated. Logs no content.
"""

from __future__ import annotations

from collections.abc import Sequence

from memory.model import Memory
from memory.model.withdrawn import is_of_abandoned_branch
from memory.ports import ConversationTrees, LedgerWrite, MemoryBank, MemoryFilter, RequestStores
from memory.runtime.telemetry import Telemetry
from memory.service.branch_evidence import shifted
from memory.service.locked_writes import delete_raw_words, rewrite_rows
from memory.service.memory_scan import scanned
from memory.service.user_back_off import UserBackOff


class BranchMemories:
    """Several workers may run it: they only delay each other. It remembers whose memories could not be changed, so that
    others do not wait for them.
    """

    def __init__(
        self, *, trees: ConversationTrees, memories: MemoryBank, stores: RequestStores, telemetry: Telemetry
    ) -> None:
        self._trees = trees
        self._store = memories.store
        self._ledger = memories.ledger
        self._notes = stores.notes
        self._profiles = stores.profiles
        self._clock = telemetry.clock
        self._metrics = telemetry.metrics
        self._back_off = UserBackOff(telemetry.clock)

    async def run(self) -> None:
        """Settle the shifts of all users. Raises as `UserBackOff.work_off`."""
        await self._back_off.work_off(self._trees.next_shift, self._settle)

    async def _settle(self, user_id: str) -> None:
        async with self._ledger.write(user_id) as held:
            shift = await self._trees.shift(user_id)
            stored = await self._rows(user_id, held)
            changed = shifted(stored.values(), shift, now=self._clock())
            withdrawn = [
                row.id for row in changed if is_of_abandoned_branch(row) and not is_of_abandoned_branch(stored[row.id])
            ]
            restored = [
                row.id for row in changed if not is_of_abandoned_branch(row) and is_of_abandoned_branch(stored[row.id])
            ]
            await self._drop_notes(user_id, withdrawn)
            records = await self._store.get(user_id, [row.id for row in changed]) if changed else []
            await rewrite_rows(self._store, held, user_id, changed, records)  # at once: they depend on each other
            # they do not come back with the branch: what the user chose to say is what was said instead
            await delete_raw_words(
                self._store, self._notes, user_id, [turn.turn_id for turn in shift.abandoned], now=self._clock()
            )
        await self._drop_notes(user_id, withdrawn)  # a request in progress may have stored a note of them meanwhile
        await self._trees.settle(user_id, shift)
        self._metrics.facts.labels("withdrawn").inc(len(withdrawn))
        self._metrics.facts.labels("restored").inc(len(restored))

    async def _rows(self, user_id: str, held: LedgerWrite) -> dict[str, Memory]:
        """All rows of the user by id, of any status, without raw words."""
        batches = scanned(self._store, MemoryFilter(user_id, status=None), held=held)
        return {memory.id: memory async for memories in batches for memory in memories}

    async def _drop_notes(self, user_id: str, memory_ids: Sequence[str]) -> None:
        if memory_ids:
            await self._profiles.drop(user_id, memory_ids, now=self._clock())
            await self._notes.drop(user_id, memory_ids, now=self._clock())
