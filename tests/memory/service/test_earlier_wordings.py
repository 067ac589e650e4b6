"""What a memory said before it was corrected goes where it goes; what it took along goes with the fact it is of."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import memory_rows
import pytest
from library_parts import NOW, Parts, sent

from memory.adapters.row_codec import JSON_BYTES_MAX
from memory.errors import BadInput
from memory.model import Evidence, Memory, MemoryStatus, Message, Scope, wordings
from memory.model.raw_words import raw_row_ids
from memory.model.withdrawn import Withdrawn, with_withdrawn
from memory.model.wordings import Corrector, earlier_in, reworded, without_wordings, wordings_of
from memory.ports import MemoryFilter
from memory.service.carried_words import without_carried
from memory.service.erasure import by_turn, narrowed
from memory.service.requests import MemoryEdit, NewMemory


def memory(content: str = "Lives in Porto", **fields: Any) -> Memory:
    return Memory("m1", "ann", content, NOW, NOW, NOW, **fields)


def reworded_as(before: Memory, content: str, *, after: float = 60.0, by: Corrector = Corrector.USER) -> Memory:
    return reworded(before, replace(before, content=content, updated_at=before.updated_at + after), by=by)


def test_each_wording_has_its_time_and_who_corrected_it() -> None:
    first = reworded_as(memory(metadata={"source": "crm"}), "Lives in Faro")
    second = reworded_as(first, "Lives in Lisbon", by=Corrector.MEMBER)
    assert [(one.content, one.since - NOW, one.until - NOW, one.corrected_by) for one in wordings_of(second)] == [
        ("Lives in Porto", 0, 60, "user"),
        ("Lives in Faro", 60, 120, "member"),
    ]
    assert second.metadata["source"] == "crm"
    left = without_wordings(second, lambda one: "Porto" in one.content)
    assert [one.content for one in wordings_of(left)] == ["Lives in Faro"]
    assert without_wordings(second, lambda _: False) is second
    assert without_wordings(second).metadata == {"source": "crm"}, "the key goes with the last"
    old = reworded_as(memory("Lives in Brga"), "Lives in Braga")
    old = replace(old, id="m0", status=MemoryStatus.SUPERSEDED, superseded_at=NOW + 500)
    newest = reworded_as(memory(), "Lives in Oporto", after=900.0)
    assert [(one.memory_id, one.content, one.corrected_by) for one in earlier_in([newest, old], newest_id="m1")] == [
        ("m1", "Lives in Porto", "user"),
        ("m0", "Lives in Braga", "learning"),
        ("m0", "Lives in Brga", "user"),
    ]


@pytest.mark.parametrize("content", ["x" * 8_000, "猫" * 8_000, "😀" * 8_000, '"\\' * 4_000])
def test_however_long_and_often_corrected_they_fit_into_a_row(content: str) -> None:
    row = memory(content)
    for number in range(3 * wordings.WORDINGS_MAX):
        row = reworded_as(row, f"{number}{content}"[:8_000])
    stored = json.dumps(row.metadata, ensure_ascii=False).encode()
    assert 0 < len(stored) <= wordings.WORDINGS_BYTES_MAX + 100 < JSON_BYTES_MAX
    assert wordings_of(row)[-1].content[:100] == f"{3 * wordings.WORDINGS_MAX - 2}{content}"[:100]


def test_of_many_corrections_the_latest_are_kept() -> None:
    row = memory()
    for number in range(wordings.WORDINGS_MAX + 5):
        row = reworded_as(row, f"version {number}")
    assert [one.content for one in wordings_of(row)] == [f"version {n}" for n in range(4, wordings.WORDINGS_MAX + 4)]


@pytest.mark.parametrize(
    "stored",
    [
        None,
        "text",
        {"a": 1},
        [["content", "yesterday", "user"], ["content", 1.0], [1, 1.0, "user"], [" ", 1.0, "user"]],
        [["content", 1.0, "learning"], ["content", 1.0, "somebody"]],
        [["content", 10**320, "user"], ["content", -1, "user"], ["content", float("nan"), "user"]],
    ],
)
def test_what_is_not_ours_is_no_wording(stored: object) -> None:
    assert wordings_of(memory(metadata={wordings.WORDINGS: stored})) == []


ANN = Scope("ann")
MARKER = "xylophone quartz"


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


async def test_other_changes_leave_them_and_nobody_writes_them_from_outside(parts: Parts) -> None:
    one = await corrected(parts, "a cat", "a dog")
    await parts.library.patch("ann", one, MemoryEdit(metadata={"source": "other"}, importance=0.9, content="a dog"))
    [wording] = wordings_of(await parts.library.get("ann", one))
    assert (wording.content, wording.since - NOW, wording.until - NOW, wording.corrected_by) == ("a cat", 0, 60, "user")
    forged = {wordings.WORDINGS: [["planted", 1.0, "user"]]}
    with pytest.raises(BadInput, match=wordings.WORDINGS):
        await parts.library.patch("ann", one, MemoryEdit(metadata=forged))
    with pytest.raises(BadInput, match=wordings.WORDINGS):
        await parts.library.add(ANN, [NewMemory("x", metadata=forged)])


async def test_they_are_in_an_export_and_come_back_with_an_import(parts: Parts) -> None:
    one = await corrected(parts, "猫" * 8_000, "a dog", MARKER)
    lines = [line async for line in parts.library.transfers.export("ann")]
    await parts.library.erase("ann")
    assert await rows_saying(parts, MARKER) == []

    assert (await parts.library.transfers.load("ann", sent(lines))).stored == 1
    (back,) = (await parts.library.page(ANN)).items
    assert back.id != one
    assert [w.content[:6] for w in wordings_of(back)] == ["猫" * 6, "a dog"]


async def test_they_are_erased_with_the_memory_the_project_and_the_user(parts: Parts) -> None:
    one = await corrected(parts, MARKER, "a dog")
    await corrected(parts, MARKER, "a bird")
    assert len(await rows_saying(parts, MARKER)) == 2
    await parts.library.delete("ann", one)
    assert len(await rows_saying(parts, MARKER)) == 1
    await parts.library.erase("ann")
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
    row = Memory(raw_row_ids("ann", turn_id)[0], "ann", f"the {MARKER} it is", NOW, NOW, NOW, status=MemoryStatus.RAW)
    await parts.put(replace(row, evidence=(Evidence(row.content, turn_id),)))
    one = await corrected(parts, f"the {MARKER}", "a dog")
    await parts.library.delete("ann", one)
    assert await rows_saying(parts, MARKER) == []


TOLD = "I got a red scarf, which my dog ate"
GOT = Evidence(TOLD, "t1", clause="I got a red scarf")
SCARF = memory_rows.memory("scarf", GOT.clause, evidence=(GOT,))


def ate(content: str = TOLD, *, turn_id: str = "t1") -> Memory:
    return memory_rows.memory("ate", content, evidence=(Evidence(TOLD, turn_id, clause="which my dog ate"),))


@pytest.mark.parametrize(
    ("content", "turn_id", "left"),
    [
        (TOLD, "t1", "which my dog ate"),
        (f"{TOLD} (2025-06-05)", "t1", "which my dog ate (2025-06-05)"),
        ("I got a … which my dog ate", "t1", "I got a … which my dog ate"),
        (TOLD, "t2", TOLD),
    ],
)
def test_it_keeps_its_own_words_and_its_days(content: str, turn_id: str, left: str) -> None:
    assert without_carried(ate(content, turn_id=turn_id), [SCARF]).content == left
    assert without_carried(SCARF, [SCARF]) is SCARF, "it takes nothing along from itself"


def test_what_is_forgotten_stands_in_no_other_fact() -> None:
    eaten = ate()
    left = narrowed(eaten, by_turn([SCARF]), now=9.0)
    assert (left.content, left.evidence[0].quote, left.updated_at) == ("which my dog ate", "which my dog ate", 9.0)
    assert narrowed(eaten, by_turn([ate("x", turn_id="t2")]), now=9.0) is eaten
    abandoned = with_withdrawn(replace(SCARF, evidence=()), Withdrawn(SCARF.evidence))
    assert narrowed(eaten, by_turn([abandoned]), now=9.0) == left
