"""Which consistency reads ask for: those of a request never wait for the server's clock, which takes up to 400 ms."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, ClassVar

import numpy as np
import pymilvus
import pytest
from memory_rows import DIMENSION, direction, memory, put
from milvus_kinds import PATIENT, RealMilvus, empty_address, prepared
from prometheus_client import CollectorRegistry

from memory.adapters.milvus.store import BOUNDED, STRONG, MilvusStore
from memory.ports import MemoryFilter
from memory.runtime.metrics import Metrics

ANN = MemoryFilter("ann")
READS: dict[str, Callable[[MilvusStore], Awaitable[object]]] = {
    "search": lambda store: store.search(ANN, direction(1.0), limit=3),
    "load of a user": lambda store: store.load(ANN, limit=10),
    "load of a small user": lambda store: store.load_few(ANN, most=10),
    "load of a part of a user": lambda store: store.load(ANN, limit=1),
    "refresh by ids": lambda store: store.get("ann", ["m1", "m2"]),
    "memories by ids": lambda store: store.memories("ann", ["m1"]),
    "nearest": lambda store: store.nearest(ANN, np.stack([direction(1.0)]), limit=3),
    "nearest with a word": lambda store: store.nearest(ANN, np.stack([direction(1.0)]), limit=3, words=["content"]),
    "page": lambda store: store.page(ANN, limit=3, cursor=""),
}


class RecordingClient(pymilvus.AsyncMilvusClient):  # type: ignore[misc] # the library is untyped
    """The client, which also records the level of each read; None: that of the collection, which may be any."""

    levels: ClassVar[list[str | None]] = []

    async def search(self, *words: Any, **named: Any) -> Any:
        self.levels.append(named.get("consistency_level"))
        return await super().search(*words, **named)

    async def query(self, *words: Any, **named: Any) -> Any:
        self.levels.append(named.get("consistency_level"))
        return await super().query(*words, **named)


async def test_reads_of_a_request_are_bounded_and_those_that_erasing_needs_are_strong(
    milvus: RealMilvus, collection: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pymilvus, "AsyncMilvusClient", RecordingClient)
    levels: dict[str, set[str | None]] = {}
    address = empty_address(milvus, collection, DIMENSION)
    async with MilvusStore(address, metrics=Metrics(CollectorRegistry()), timeouts=PATIENT) as store:
        await put(await prepared(store), memory("m1"), memory("m2"))
        for name, read in {**READS, "ids": lambda store: store.ids(ANN)}.items():
            RecordingClient.levels.clear()
            assert await read(store), name
            levels[name] = set(RecordingClient.levels)
    assert levels == {**{name: {BOUNDED} for name in READS}, "ids": {STRONG}}
