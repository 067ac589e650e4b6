"""Reembedding of the store in memory, and snapshots in a dictionary."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from weakref import WeakKeyDictionary

import numpy as np

from memory.adapters import row_codec
from memory.adapters.in_memory import InMemoryStore
from memory.model import Record, Vector, VectorOrigin
from memory.ports import ReembeddingStatus, StoredText

# Per store: whose vectors it holds, if no longer the first ones; and vectors by origin that are not in use yet. They
# outlive a run.
_ORIGINS: WeakKeyDictionary[InMemoryStore, VectorOrigin] = WeakKeyDictionary()
_OTHERS: WeakKeyDictionary[InMemoryStore, dict[VectorOrigin, dict[str, Record]]] = WeakKeyDictionary()


def others_of(store: InMemoryStore) -> dict[VectorOrigin, dict[str, Record]]:
    """Its vectors that are not in use, by origin."""
    return _OTHERS.setdefault(store, {})


def _origin_of(store: InMemoryStore) -> VectorOrigin:
    return _ORIGINS.get(store, VectorOrigin("old", store._dimension))


class InMemoryReembedding:
    """`memory.ports.Reembedding` of such a store."""

    def __init__(self, store: InMemoryStore, wanted: VectorOrigin) -> None:
        self._store = store
        self._wanted = wanted

    async def status(self) -> ReembeddingStatus:
        store, begun = self._store, others_of(self._store).get(self._wanted, {})
        return ReembeddingStatus(_origin_of(store), len(store._records), len(begun))

    async def begin(self) -> None:
        _OTHERS[self._store] = {self._wanted: others_of(self._store).get(self._wanted, {})}

    async def remaining(self) -> AsyncIterator[Sequence[StoredText]]:
        begun = others_of(self._store).get(self._wanted, {})
        for memory_id, record in sorted(self._store._records.items()):
            if memory_id not in begun or begun[memory_id].memory != record.memory:
                row = row_codec.row_of(record)
                del row[row_codec.VECTOR_FIELD]
                yield [StoredText(memory_id, row_codec.embedded_text_of(row), row)]

    async def put(self, texts: Sequence[StoredText], vectors: Vector) -> None:
        assert vectors.shape == (len(texts), self._wanted.dimension), f"vectors {vectors.shape}"
        for text, vector in zip(texts, vectors, strict=True):
            others_of(self._store)[self._wanted][text.id] = row_codec.record_of(
                {**text.row, row_codec.VECTOR_FIELD: vector}
            )

    async def copy(self, texts: Sequence[StoredText]) -> None:
        await self.put(texts, np.stack([self._store._records[text.id].vector for text in texts]))

    async def remove_deleted(self) -> bool:
        begun = others_of(self._store)[self._wanted]
        for memory_id in begun.keys() - self._store._records.keys():
            del begun[memory_id]
        return len(begun) == len(self._store._records)

    async def switch(self) -> None:
        store = self._store
        old = (_origin_of(store), store._records)
        store._records = others_of(store).pop(self._wanted)
        _ORIGINS[store], store._dimension = self._wanted, self._wanted.dimension
        others_of(store)[old[0]] = old[1]

    async def clear(self) -> None:
        _OTHERS[self._store] = {}


class InMemorySnapshots:
    """`memory.ports.Snapshots` in a dictionary."""

    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}

    async def read(self, user_id: str) -> bytes | None:
        return self.kept.get(user_id)

    async def write(self, user_id: str, snapshot: bytes) -> None:
        self.kept[user_id] = snapshot

    async def erase(self, user_id: str) -> None:
        self.kept.pop(user_id, None)

    async def erase_all(self) -> None:
        self.kept.clear()
