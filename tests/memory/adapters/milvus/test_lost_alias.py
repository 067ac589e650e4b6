"""What parts do not find is dropped only where it cannot be the one that counts."""

from __future__ import annotations

import numpy as np
import pytest
from memory_rows import memory
from milvus_kinds import PATIENT, RealMilvus
from prometheus_client import CollectorRegistry

from memory.adapters.milvus.collections import LIVE
from memory.adapters.milvus.connection import Link
from memory.adapters.milvus.reembedding import MilvusReembedding
from memory.adapters.milvus.store import MilvusStore
from memory.errors import Unavailable
from memory.model import Change, ChangeKind, VectorOrigin
from memory.ports import MemoryFilter
from memory.runtime.metrics import Metrics

OLD, NEW = VectorOrigin("old", 8), VectorOrigin("new", 16)
NAME = "lost"


async def test_a_generation_whose_alias_was_lost_is_not_dropped(milvus: RealMilvus) -> None:
    metrics = Metrics(CollectorRegistry())
    async with MilvusStore(milvus.address(NAME, 8, OLD), metrics=metrics, timeouts=PATIENT) as store:
        await store.apply("ann", [Change(ChangeKind.CREATE, memory("m"))], np.eye(1, 8, dtype=np.float32))
    address = milvus.address(NAME, 16, NEW)
    async with MilvusReembedding(address, wanted=NEW, metrics=Metrics(CollectorRegistry())) as again:
        await again.begin()
        async for texts in again.remaining():
            await again.put(texts, np.eye(len(texts), 16, dtype=np.float32))
        assert await again.remove_deleted()
        await again.switch()
        await again.clear()

        async def lose(link: Link) -> None:
            await link.client.drop_alias(NAME + LIVE, timeout=10)

        await again._call("lose", lose)
        with pytest.raises(Unavailable, match="it is kept"):
            await again.clear()

        async def find(link: Link) -> None:
            await link.collections.make_live(f"{NAME}__2")

        await again._call("find", find)
    async with MilvusStore(address, metrics=Metrics(CollectorRegistry()), timeouts=PATIENT) as store:
        assert len(await store.load(MemoryFilter("ann"), limit=9)) == 1
