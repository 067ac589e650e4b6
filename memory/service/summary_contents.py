"""The texts of summaries that stand in notes, by id, for whoever explains a note."""

from __future__ import annotations

from collections.abc import Collection

from memory.ports import SessionSummaries


async def summary_contents(summaries: SessionSummaries, user_id: str, ids: Collection[str]) -> dict[str, str]:
    """Of those that are current. Raises `Unavailable`."""
    found = await summaries.get(user_id, ids)
    return {one.id: f"{one.title}: {one.text}" if one.text else one.title for one in found}
