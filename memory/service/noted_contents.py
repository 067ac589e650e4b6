"""The texts of memories and summaries that stand in notes, by id, for whoever explains a note."""

from __future__ import annotations

from collections.abc import Collection

from memory.errors import Unavailable
from memory.ports import MemoryStore, SessionSummaries


async def noted_contents(
    store: MemoryStore, summaries: SessionSummaries, user_id: str, ids: Collection[str]
) -> dict[str, str]:
    """Without forgotten memories and summaries that are not current; no memories while the store is down.

    Raises `Unavailable`.
    """
    try:
        records = await store.get(user_id, sorted(ids)) if ids else []
    except Unavailable:  # a note may be about this very outage, and messages can be shown all the same
        records = []
    current = await summaries.get(user_id, ids) if ids else []
    texts = {one.id: f"{one.title}: {one.text}" if one.text else one.title for one in current}
    return texts | {record.memory.id: record.memory.content for record in records}
