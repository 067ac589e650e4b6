"""Makes a user's memories show which branches of their conversations are abandoned: reads, decides, writes.

`branch_evidence` decides. Everything happens under the user's lock: a window that was being learnt when its turn was
abandoned has then either written its rows or lost its lease. Interrupted anywhere, it is repeated. Logs no content.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from memory.errors import MemproxyError
from memory.model import Change, ChangeKind, Memory
from memory.model.withdrawn import is_of_abandoned_branch
from memory.ports import ConversationTrees, LedgerWrite, MemoryBank, MemoryFilter, RequestTraces
from memory.runtime.instruments import Instruments
from memory.service.branch_evidence import shifted
from memory.service.locked_writes import write_rows

ROWS_PER_PAGE = 1_000
BACK_OFF_SECONDS = 0.2  # of a user, doubled at each failure
BACK_OFF_SECONDS_MAX = 5.0
FAILURES_MAX = 3  # of different users in one run: then a part is down, and the next run tries others


@dataclass(slots=True)
class _BackOff:
    """Of a user whose memories could not be changed: not tried again before `until`, by our clock."""

    seconds: float = 0.0
    until: float = 0.0

    def lengthen(self, now: float) -> None:
        self.seconds = min(max(2 * self.seconds, BACK_OFF_SECONDS), BACK_OFF_SECONDS_MAX)
        self.until = now + self.seconds


class BranchMemories:
    """Several workers may run it: they only delay each other. It remembers whose memories could not be changed, so that
    others do not wait for them.
    """

    def __init__(
        self, *, trees: ConversationTrees, memories: MemoryBank, traces: RequestTraces, instruments: Instruments
    ) -> None:
        self._trees = trees
        self._store = memories.store
        self._ledger = memories.ledger
        self._notes = traces.notes
        self._profiles = traces.profiles
        self._clock = instruments.clock
        self._metrics = instruments.metrics
        self._back_offs: dict[str, _BackOff] = {}

    async def run(self) -> None:
        """Settle the shifts of all users. Raises the error of the last user for whom that failed."""
        failure: MemproxyError | None = None
        tried: set[str] = set()
        while user_id := await self._trees.next_shift(without=tried | self._waiting()):
            tried.add(user_id)
            self._back_offs.setdefault(user_id, _BackOff()).lengthen(self._clock())  # first: it may fail in any way
            try:
                await self._settle(user_id)
            except MemproxyError as error:
                failure = error
                if len(tried & self._back_offs.keys()) >= FAILURES_MAX:
                    break
            else:
                self._back_offs.pop(user_id, None)
                tried.discard(user_id)  # a shift of many turns takes several rounds
        if failure is not None:
            raise failure

    def _waiting(self) -> set[str]:
        now = self._clock()
        return {user_id for user_id, back_off in self._back_offs.items() if back_off.until > now}

    async def _settle(self, user_id: str) -> None:
        async with self._ledger.write(user_id) as held:
            shift = await self._trees.shift(user_id)
            stored = await self._rows(user_id)
            changed = shifted(stored.values(), shift, now=self._clock())
            withdrawn = [
                row.id for row in changed if is_of_abandoned_branch(row) and not is_of_abandoned_branch(stored[row.id])
            ]
            restored = [
                row.id for row in changed if not is_of_abandoned_branch(row) and is_of_abandoned_branch(stored[row.id])
            ]
            await self._drop_notes(user_id, withdrawn)
            await self._write(user_id, held, changed)
        await self._drop_notes(user_id, withdrawn)  # a request in progress may have stored a note of them meanwhile
        await self._trees.settle(user_id, shift)
        self._metrics.facts.labels("withdrawn").inc(len(withdrawn))
        self._metrics.facts.labels("restored").inc(len(restored))

    async def _rows(self, user_id: str) -> dict[str, Memory]:
        """All rows of the user by id, of any status."""
        rows: dict[str, Memory] = {}
        where, cursor, seen = MemoryFilter(user_id, status=None), "", False
        while not seen or cursor:
            page = await self._store.page(where, limit=ROWS_PER_PAGE, cursor=cursor)
            rows |= {memory.id: memory for memory in page.memories}
            cursor, seen = page.next_cursor, True
        return rows

    async def _write(self, user_id: str, held: LedgerWrite, rows: Sequence[Memory]) -> None:
        """In one write, since the rows depend on each other."""
        if not rows:
            return
        vectors = {one.memory.id: one.vector for one in await self._store.get(user_id, [row.id for row in rows])}
        kept = [row for row in rows if row.id in vectors]
        if kept:
            changes = [Change(ChangeKind.UPDATE, row) for row in kept]
            await write_rows(self._store, held, user_id, changes, np.stack([vectors[row.id] for row in kept]))

    async def _drop_notes(self, user_id: str, memory_ids: Sequence[str]) -> None:
        if memory_ids:
            await self._profiles.drop(user_id, memory_ids, now=self._clock())
            await self._notes.drop(user_id, memory_ids, now=self._clock())
