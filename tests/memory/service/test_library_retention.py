"""What was put away: listed, brought back, forgotten; and what is forgotten takes along."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from library_parts import NOW, Parts, library_parts

from memory.errors import BadInput, NotFound
from memory.learn.retention import RetentionReason, put_away
from memory.model import Memory, MemoryStatus, PastNote, Scope, Trust
from memory.service.requests import MemoryEdit


@pytest.fixture
async def parts(tmp_path: Path) -> AsyncIterator[Parts]:
    async with library_parts(tmp_path) as opened:
        yield opened


def memory(memory_id: str, **fields: Any) -> Memory:
    values = {"content": f"content of {memory_id}", "created_at": NOW, "updated_at": NOW, "said_at": NOW} | fields
    return Memory(id=memory_id, user_id="ann", **values)


def away(memory_id: str, why: RetentionReason = RetentionReason.QUOTA, **details: str) -> Memory:
    row = put_away(memory(memory_id), why, now=NOW, **details).after
    assert row is not None
    return row


async def ids(parts: Parts, status: MemoryStatus | None) -> set[str]:
    page = await parts.library.page(Scope("ann"), status=status)
    return {one.id for one in page.memories}


async def test_what_is_put_away_is_listed_counted_and_brought_back(parts: Parts) -> None:
    await parts.put(memory("here"), away("gone"))
    assert await ids(parts, MemoryStatus.ACTIVE) == {"here"}
    assert await ids(parts, MemoryStatus.ARCHIVED) == {"gone"}
    assert await ids(parts, None) == {"here", "gone"}
    stats = await parts.library.stats("ann")
    assert (stats.active, stats.superseded, stats.archived) == (1, 0, 1)
    before = (await parts.ledger.revision("ann")).number

    back = await parts.library.patch("ann", "gone", MemoryEdit(status="active"))

    assert back == replace(memory("gone"), metadata={"restored": {"at": NOW}})
    assert await ids(parts, MemoryStatus.ACTIVE) == {"here", "gone"}
    assert await parts.ledger.changed_since("ann", before) == {"gone"}


@pytest.mark.parametrize("status", ["archived", "superseded", "x"])
async def test_a_status_can_only_become_active(parts: Parts, status: str) -> None:
    await parts.put(memory("here"))
    with pytest.raises(BadInput, match="only be set to active"):
        await parts.library.patch("ann", "here", MemoryEdit(status=status))


async def test_what_is_superseded_stays_so(parts: Parts) -> None:
    old = memory("old", status=MemoryStatus.SUPERSEDED, superseded_by="new")
    await parts.put(old)
    with pytest.raises(BadInput, match="only archived memories"):
        await parts.library.patch("ann", "old", MemoryEdit(status="active"))
    assert await parts.library.get("ann", "old") == old


async def test_an_edit_of_the_metadata_leaves_our_own_marks(parts: Parts) -> None:
    await parts.put(away("gone"), memory("here", metadata={"archived": "mine", "color": "red"}))
    gone = await parts.library.patch("ann", "gone", MemoryEdit(metadata={"color": "blue"}))
    assert gone.metadata == {"color": "blue", "archived": {"why": "quota", "at": NOW}}
    here = await parts.library.patch("ann", "here", MemoryEdit(metadata={"color": "blue"}))
    assert here.metadata == {"color": "blue"}


async def test_forgetting_takes_duplicates_reflections_notes_and_uses_along(parts: Parts) -> None:
    reflection = memory("r", memory_type="reflective", trust=Trust.TOOL, metadata={"reflects": ["d", "other"]})
    await parts.put(
        memory("m"), away("d", RetentionReason.DUPLICATE, of="m"), reflection, away("apart"), memory("other")
    )
    await parts.notes.keep("ann", "k", PastNote("what they share", ("r",), 5), made_at=NOW - 1)
    parts.usage_counts.count("ann", ["m", "d", "other"], at=NOW)

    await parts.library.delete("ann", "m")

    assert await ids(parts, None) == {"apart", "other"}
    assert await parts.notes.find("ann", ["k"]) == {}
    async with parts.usage_counts:
        pass  # what was counted is on its way now
    await parts.usage_counts.end_store("bob", [])  # and this comes after it
    assert set(await parts.usage_counts.unstored("ann", limit=10)) == {"other"}
    for gone in ("m", "d", "r"):
        with pytest.raises(NotFound):
            await parts.library.get("ann", gone)


async def test_what_is_put_away_can_be_forgotten(parts: Parts) -> None:
    await parts.put(memory("m"), away("d", RetentionReason.DUPLICATE, of="m"))
    await parts.library.delete("ann", "d")
    assert await ids(parts, None) == {"m"}


async def test_a_look_back_in_time_never_shows_what_was_put_away_as_active(parts: Parts) -> None:
    await parts.put(memory("here"), away("gone"))
    page = await parts.library.page(Scope("ann"), status=MemoryStatus.ACTIVE, as_of=NOW + 1)
    assert [one.id for one in page.memories] == ["here"]
