"""Reads all of a user's memories that a filter admits, a batch at a time, without their vectors.

The ids are read once, so that the cost grows with their number alone. What is written meanwhile may be missing; what is
deleted meanwhile is left out.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

from memory.model import Memory, MemoryStatus
from memory.model.claim_filters import ClaimFilter
from memory.ports import LedgerWrite, MemoryFilter, MemoryStore, Page

BATCH = 1_000  # about 1 MB
PAGES_PER_LOOK_MAX = 50  # store pages read for one page: limits the cost of a rare match


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


async def page_as_of(
    store: MemoryStore, where: MemoryFilter, as_of: float, *, claim: ClaimFilter, limit: int, cursor: str
) -> Page:
    """One page of the memories that had the status of the filter then, by when things were said."""
    found: list[Memory] = []
    for _ in range(PAGES_PER_LOOK_MAX):
        page = await store.page(replace(where, status=None), limit=limit - len(found), cursor=cursor, claim=claim)
        found += [memory for memory in page.memories if _stood(memory, where.status, as_of)]
        cursor = page.next_cursor
        if not cursor or len(found) >= limit:
            break
    return Page(tuple(found), cursor)


def _stood(memory: Memory, status: MemoryStatus | None, as_of: float) -> bool:
    was = memory.status_at(as_of)
    return was is not None and (status is None or was == status)
