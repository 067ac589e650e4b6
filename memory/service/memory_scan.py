"""Reads memories by filter and by id, a batch or a page at a time, without their vectors.

The ids of a scan are read once, so that its cost grows with their number alone. What is written meanwhile may be
missing; what is deleted meanwhile is left out.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence

from memory.errors import NotFound
from memory.model import Memory, Record, is_valid_id
from memory.model.claim_filters import ANY_CLAIM, ClaimFilter
from memory.model.memories import refuse_changed
from memory.ports import LedgerWrite, MemoryFilter, MemoryStore, Page
from memory.ports.paging import batched

BATCH = 1_000  # about 1 MB
PAGES_PER_LOOK_MAX = 50  # store pages read for one page: limits the cost of a rare match


async def scanned(
    store: MemoryStore, where: MemoryFilter, *, held: LedgerWrite | None = None
) -> AsyncIterator[list[Memory]]:
    """Newest first. `held`: the user's lock, renewed after each batch, since there may be many."""
    for ids in batched(await store.ids(where), BATCH):
        batch = await store.memories(where.user_id, ids)
        if held is not None:
            await held.renew()
        yield batch


async def newest(store: MemoryStore, where: MemoryFilter, *, most: int) -> dict[str, Memory]:
    """By id, newest first; up to the batch that reaches `most`."""
    found = dict[str, Memory]()
    async for memories in scanned(store, where):
        found |= {memory.id: memory for memory in memories}
        if len(found) >= most:
            break
    return found


async def own_record(
    store: MemoryStore, user_id: str, memory_id: str, *, expected: Collection[str] | None = None
) -> Record:
    """A memory of the user. Raises `NotFound`, and `VersionChanged` unless it has one of the expected versions."""
    found = await store.get(user_id, [memory_id]) if is_valid_id(memory_id) else []
    if not found:
        raise NotFound("there is no such memory")
    refuse_changed(found[0].memory, expected)
    return found[0]


async def chosen_page(
    store: MemoryStore,
    where: MemoryFilter,
    chosen: Callable[[Sequence[Memory]], Awaitable[list[Memory]]],
    *,
    claim: ClaimFilter = ANY_CLAIM,
    limit: int,
    cursor: str,
) -> Page[Memory]:
    """One page of what is chosen of the memories that the filter admits."""
    found: list[Memory] = []
    for _ in range(PAGES_PER_LOOK_MAX):
        page = await store.page(where, limit=limit - len(found), cursor=cursor, claim=claim)
        found += await chosen(page.items)
        cursor = page.next_cursor
        if not cursor or len(found) >= limit:
            break
    return Page(tuple(found), cursor)
