"""Reads all of a user's memories that a filter admits, a batch at a time, without their vectors.

The ids are read once, so that the cost grows with their number alone. What is written meanwhile may be missing; what is
deleted meanwhile is left out.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from memory.model import Memory
from memory.ports import LedgerWrite, MemoryFilter, MemoryStore

BATCH = 1_000  # about 1 MB


async def scanned(
    store: MemoryStore, where: MemoryFilter, *, held: LedgerWrite | None = None
) -> AsyncIterator[list[Memory]]:
    """Newest first. `held`: the user's lock, renewed after each batch, since there may be many."""
    ids = await store.ids(where)
    for start in range(0, len(ids), BATCH):
        batch = await store.memories(where.user_id, ids[start : start + BATCH])
        if held is not None:
            await held.renew()
        yield batch


__all__ = ["scanned"]
