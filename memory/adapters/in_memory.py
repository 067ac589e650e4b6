"""The memory store without a server: a dictionary and a dot product: for evaluations and tests.

It keeps all promises of the port except durability. Rows pass through the same codec as in Milvus, so that it returns
no more than Milvus does.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

import numpy as np

from memory.adapters import pages, row_codec
from memory.model import Candidate, Change, Memory, Record, Vector, statement_key
from memory.model.claim_filters import ANY_CLAIM, ClaimFilter
from memory.ports import MemoryFilter, Page


class InMemoryStore:
    """`memory.ports.MemoryStore` in a dictionary of rows by id."""

    def __init__(self, *, dimension: int = 384) -> None:
        self._dimension = dimension
        self._records: dict[str, Record] = {}

    async def prepare(self) -> None:
        return

    async def search(self, where: MemoryFilter, vector: Vector, *, limit: int) -> list[Candidate]:
        records = list(self._matching(where))
        if not records or limit < 1:
            return []
        cosines = np.stack([record.vector for record in records]) @ np.asarray(vector, dtype=np.float32)
        nearest = np.argsort(-cosines, kind="stable")[:limit]
        return [row_codec.candidate(records[i].memory, float(cosines[i])) for i in nearest]

    async def nearest(
        self, where: MemoryFilter, vectors: Vector, *, limit: int, words: Collection[str] = ()
    ) -> list[Record]:
        records = [record for record in self._matching(where) if pages.holds(words, record.memory.content)]
        if not records or limit < 1:
            return []
        cosines = np.stack([record.vector for record in records]) @ np.asarray(vectors, dtype=np.float32).T
        found = np.argsort(-cosines, axis=0, kind="stable")[:limit]
        return [records[i] for i in sorted(set(found.ravel().tolist()))]

    async def load(self, where: MemoryFilter, *, limit: int) -> list[Record]:
        return self._newest(where)[: max(limit, 0)]

    async def load_few(self, where: MemoryFilter, *, most: int) -> list[Record] | None:
        found = list(self._matching(where))
        return found if len(found) <= most else None

    async def same_statement(self, where: MemoryFilter, key: str) -> Record | None:
        return next((r for r in self._newest(where) if statement_key(r.memory.content) == key), None)

    async def get(self, user_id: str, memory_ids: Sequence[str]) -> list[Record]:
        found = (self._records.get(memory_id) for memory_id in memory_ids)
        return [record for record in found if record is not None and record.memory.user_id == user_id]

    async def ids(self, where: MemoryFilter) -> list[str]:
        return [record.memory.id for record in self._newest(where)]

    async def memories(self, user_id: str, memory_ids: Sequence[str]) -> list[Memory]:
        return [record.memory for record in await self.get(user_id, memory_ids)]

    async def page(
        self, where: MemoryFilter, *, limit: int, cursor: str, claim: ClaimFilter = ANY_CLAIM
    ) -> Page[Memory]:
        found = [record.memory for record in self._matching(where)]
        positions = [pages.position(m) for m in found if claim.admits(m.subject, m.name, m.attribute, m.values)]
        shown, next_cursor = pages.cut(positions, limit=limit, cursor=cursor)
        return Page(tuple(self._records[memory_id].memory for _, memory_id in shown), next_cursor)

    async def count(self, where: MemoryFilter) -> int:
        return sum(1 for _ in self._matching(where))

    async def apply(
        self, user_id: str, changes: Sequence[Change], vectors: Vector, *, before_each: Callable[[], None] | None = None
    ) -> None:
        written = row_codec.written(user_id, changes, vectors, dimension=self._dimension)
        row_codec.refuse_foreign(user_id, {i: r.memory.user_id for i in written if (r := self._records.get(i))})
        if before_each is not None:
            before_each()
        self._records |= {memory_id: row_codec.record_of(row) for memory_id, row in written.items()}

    async def delete(self, user_id: str, memory_ids: Collection[str]) -> None:
        for record in await self.get(user_id, list(memory_ids)):
            self._records.pop(record.memory.id, None)

    async def is_ready(self) -> bool:
        return True

    def _matching(self, where: MemoryFilter) -> Iterator[Record]:
        return (record for record in self._records.values() if pages.admits(where, record.memory))

    def _newest(self, where: MemoryFilter) -> list[Record]:
        return sorted(self._matching(where), key=lambda record: pages.position(record.memory), reverse=True)
