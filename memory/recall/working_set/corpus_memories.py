"""Answers the lookups of learning from a user's working set instead of the store.

The calls are coroutines that never wait, so that the set cannot change between two of them. A set holds neither
archived memories nor other users', and must not be asked for them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import numpy.typing as npt

from memory.model import MemoryStatus, Record, Vector, statement_key
from memory.ports import MemoryFilter
from memory.recall.ranking.corpus import Corpus
from memory.recall.ranking.lexical import terms
from memory.recall.ranking.rows import STATEMENT_DIGITS, Places

STATUSES = (MemoryStatus.ACTIVE, MemoryStatus.SUPERSEDED)


class CorpusMemories:
    """`memory.ports.MemoryLookup`. Raises ValueError for a filter that a working set cannot answer."""

    def __init__(self, user_id: str, corpus: Corpus) -> None:
        self._user_id = user_id
        self._corpus = corpus
        self._layout = corpus.prepare()

    async def nearest(
        self, where: MemoryFilter, vectors: Vector, *, limit: int, words: Collection[str] = ()
    ) -> list[Record]:
        rows = self._rows(where)
        if words:
            rows = rows[self._holds(words)[rows]]
        if not len(rows) or limit < 1:
            return []
        cosines = self._corpus.vectors(rows) @ np.asarray(vectors, dtype=np.float32).T
        nearest = np.unique(np.argsort(-cosines, axis=0, kind="stable")[:limit])  # of equals the first, as a store
        return self._records(rows[nearest])

    async def load_few(self, where: MemoryFilter, *, most: int) -> list[Record] | None:
        rows = self._rows(where)
        return self._records(rows) if len(rows) <= most else None

    async def same_statement(self, where: MemoryFilter, key: str) -> Record | None:
        rows = self._rows(where)
        alike = rows[self._layout.facts["statement"][rows] == np.uint64(int(key[:STATEMENT_DIGITS], 16))]
        same = [r for r in self._records(alike) if statement_key(r.memory.content) == key]
        return max(same, key=lambda r: (r.memory.created_at, r.memory.id), default=None)

    async def get(self, user_id: str, memory_ids: Sequence[str]) -> list[Record]:
        if user_id != self._user_id:
            return []
        places = (self._layout.places.get(memory_id) for memory_id in dict.fromkeys(memory_ids))
        return self._records(np.array([row for row in places if row is not None], dtype=np.intp))

    def _rows(self, where: MemoryFilter) -> Places:
        is_everything = where == MemoryFilter(where.user_id, status=where.status)
        of_project = MemoryFilter(where.user_id, where.project_id, status=where.status, exact_project=True)
        if not is_everything and where != of_project:
            raise ValueError("a working set has all of a user or whole projects, and no archived memories")
        layout = self._layout
        if where.status not in STATUSES:
            raise ValueError(f"a working set is asked for {' or '.join(STATUSES)} memories")
        if where.user_id != self._user_id or not layout.size:
            return np.zeros(0, dtype=np.intp)
        is_superseded = where.status is MemoryStatus.SUPERSEDED
        of_status = layout.is_superseded == is_superseded
        if is_everything:
            return np.flatnonzero(of_status)
        return np.flatnonzero(of_status & (layout.projects == layout.project_numbers.get(where.project_id, -1)))

    def _holds(self, words: Collection[str]) -> npt.NDArray[np.bool_]:
        """Which rows contain a term of one of the words."""
        starts, held = self._layout.laid.posting_starts, np.zeros(self._layout.size, dtype=np.bool_)
        numbers = self._corpus.names.terms
        for number in {numbers.get(term, -1) for word in words for term in terms(word)}:
            if 0 <= number < len(starts) - 1:
                held[self._layout.laid.posting_rows[starts[number] : starts[number + 1]]] = True
        return held

    def _records(self, rows: Places) -> list[Record]:
        """Copies the vectors, since the set may change."""
        memories, vectors = self._layout.memories, self._corpus.vectors(rows)
        return [Record(memories[row], vector) for row, vector in zip(rows.tolist(), vectors, strict=True)]
