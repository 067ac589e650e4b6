"""The texts of summaries that stand in notes, by id, for whoever explains a note."""

from __future__ import annotations

from collections.abc import Collection

from memory.ports import SessionSummaries

SUMMARIES_MAX = 1_000  # of a user, the latest


async def summary_contents(summaries: SessionSummaries, user_id: str, ids: Collection[str]) -> dict[str, str]:
    """Of those that are current. Raises `Unavailable`."""
    if not ids:
        return {}
    found = [one.summary for one in await summaries.of_user(user_id, limit=SUMMARIES_MAX)]
    return {one.id: f"{one.title}: {one.text}" if one.text else one.title for one in found if one.id in ids}


__all__ = ["summary_contents"]
