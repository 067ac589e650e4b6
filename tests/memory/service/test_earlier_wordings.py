"""What a memory said before it was corrected is kept with it, goes where it goes, and is erased with it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from library_parts import NOW, Parts, library_parts

from memory.errors import BadInput
from memory.model import Evidence, Memory, MemoryStatus, Message, Scope
from memory.model.raw_words import raw_row_ids
from memory.model.wordings import WORDINGS, wordings_of
from memory.ports import MemoryFilter
from memory.service.requests import MemoryEdit, NewMemory

ANN = Scope("ann")
MARKER = "xylophone quartz"


@pytest_asyncio.fixture
async def parts(tmp_path: Path) -> AsyncIterator[Parts]:
    async with library_parts(tmp_path) as built:
        yield built


async def said_before(parts: Parts, memory_id: str) -> list[str]:
    return [one.content for one in wordings_of(await parts.library.get("ann", memory_id))]


async def corrected(parts: Parts, *contents: str) -> str:
    """The id of a memory that said all of these, one after the other."""
    (memory_id,) = await parts.library.add(ANN, [NewMemory(contents[0], metadata={"source": "crm"})])
    for content in contents[1:]:
        parts.now += 60
        await parts.library.patch("ann", memory_id, MemoryEdit(content=content))
    return memory_id


async def rows_saying(parts: Parts, text: str) -> list[str]:
    wheres = (MemoryFilter("ann", status=None), MemoryFilter("ann", status=MemoryStatus.RAW))
    rows = [record.memory for where in wheres for record in await parts.store.load(where, limit=1_000)]
    return [row.id for row in rows if text in repr(row)]


async def test_each_correction_keeps_what_was_said_before(parts: Parts) -> None:
    one = await corrected(parts, "a cat", "a dog", "a bird")
    memory = await parts.library.get("ann", one)
    assert memory.content == "a bird"
    assert [(w.content, w.since - NOW, w.until - NOW, w.corrected_by) for w in wordings_of(memory)] == [
        ("a cat", 0, 60, "user"),
        ("a dog", 60, 120, "user"),
    ]


async def test_other_changes_leave_them_and_nobody_writes_them_from_outside(parts: Parts) -> None:
    one = await corrected(parts, "a cat", "a dog")
    await parts.library.patch("ann", one, MemoryEdit(metadata={"source": "other"}, importance=0.9, content="a dog"))
    assert await said_before(parts, one) == ["a cat"]
    forged = {WORDINGS: [["planted", 1.0, "user"]]}
    with pytest.raises(BadInput, match=WORDINGS):
        await parts.library.patch("ann", one, MemoryEdit(metadata=forged))
    with pytest.raises(BadInput, match=WORDINGS):
        await parts.library.add(ANN, [NewMemory("x", metadata=forged)])


async def test_they_are_in_an_export_and_come_back_with_an_import(parts: Parts) -> None:
    one = await corrected(parts, "猫" * 8_000, "a dog", MARKER)
    lines = [line async for line in parts.library.transfers.export("ann")]
    await parts.library.erase_everything("ann")
    assert await rows_saying(parts, MARKER) == []

    async def given() -> AsyncIterator[bytes]:
        for line in lines:
            yield line

    assert (await parts.library.transfers.load("ann", given())).stored == 1
    (back,) = (await parts.library.page(ANN)).memories
    assert back.id != one
    assert [w.content[:6] for w in wordings_of(back)] == ["猫" * 6, "a dog"]


async def test_they_are_erased_with_the_memory_the_project_and_the_user(parts: Parts) -> None:
    one = await corrected(parts, MARKER, "a dog")
    await corrected(parts, MARKER, "a bird")
    assert len(await rows_saying(parts, MARKER)) == 2
    await parts.library.delete("ann", one)
    assert len(await rows_saying(parts, MARKER)) == 1
    await parts.library.erase_everything("ann")
    assert await rows_saying(parts, MARKER) == []


async def test_they_go_with_a_source_that_they_may_come_from(parts: Parts) -> None:
    said = (Evidence("I like tea", "t1"), Evidence("I like tea", "t2"))
    await parts.put(Memory("m1", "ann", "I like tea", NOW, NOW, NOW, evidence=said))
    await parts.library.patch("ann", "m1", MemoryEdit(content="I like green tea"))
    assert await said_before(parts, "m1") == ["I like tea"]
    assert (await parts.library.forget_source("ann", "t2")).kept == ("m1",)
    assert await said_before(parts, "m1") == []


async def test_forgetting_the_memory_forgets_the_turns_that_said_what_it_said_before(parts: Parts) -> None:
    scope = Scope("ann", session_id="s1")
    turn_id = await parts.library.append_turn(scope, [Message("user", f"By the way, the {MARKER} it is")])
    row_id, quoted = raw_row_ids("ann", turn_id)[0], (Evidence(f"the {MARKER} it is", turn_id),)
    await parts.put(
        Memory(row_id, "ann", f"the {MARKER} it is", NOW, NOW, NOW, status=MemoryStatus.RAW, evidence=quoted)
    )
    one = await corrected(parts, f"the {MARKER}", "a dog")
    await parts.library.delete("ann", one)
    assert await rows_saying(parts, MARKER) == []
