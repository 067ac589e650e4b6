"""The earlier wordings of a memory: bounded, in its metadata, and nothing that an application may have put there."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from memory.adapters.row_codec import JSON_BYTES_MAX
from memory.model import Memory, MemoryStatus
from memory.model.wordings import (
    WORDINGS,
    WORDINGS_BYTES_MAX,
    WORDINGS_MAX,
    Corrector,
    earlier_in,
    reworded,
    without_wordings,
    wordings_of,
)

NOW = 1_750_000_000.0


def memory(content: str = "Lives in Porto", **fields: Any) -> Memory:
    return Memory("m1", "ann", content, NOW, NOW, NOW, **fields)


def corrected(before: Memory, content: str, *, after: float = 60.0, by: Corrector = Corrector.USER) -> Memory:
    return reworded(before, replace(before, content=content, updated_at=before.updated_at + after), by=by)


def test_each_wording_has_its_time_and_who_corrected_it() -> None:
    first = corrected(memory(metadata={"source": "crm"}), "Lives in Faro")
    second = corrected(first, "Lives in Lisbon", by=Corrector.MEMBER)
    assert [(one.content, one.since - NOW, one.until - NOW, one.corrected_by) for one in wordings_of(second)] == [
        ("Lives in Porto", 0, 60, "user"),
        ("Lives in Faro", 60, 120, "member"),
    ]
    assert second.metadata["source"] == "crm"


def test_a_change_of_anything_else_is_no_correction() -> None:
    before = memory()
    after = replace(before, importance=0.9, updated_at=NOW + 1)
    assert reworded(before, after, by=Corrector.USER) is after


@pytest.mark.parametrize("content", ["x" * 8_000, "猫" * 8_000, "😀" * 8_000, '"\\' * 4_000])
def test_however_long_and_often_corrected_they_fit_into_a_row(content: str) -> None:
    row = memory(content)
    for number in range(3 * WORDINGS_MAX):
        row = corrected(row, f"{number}{content}"[:8_000])
    stored = json.dumps(row.metadata, ensure_ascii=False).encode()
    assert 0 < len(stored) <= WORDINGS_BYTES_MAX + 100 < JSON_BYTES_MAX
    assert wordings_of(row)[-1].content[:100] == f"{3 * WORDINGS_MAX - 2}{content}"[:100]


def test_of_many_corrections_the_latest_are_kept() -> None:
    row = memory()
    for number in range(WORDINGS_MAX + 5):
        row = corrected(row, f"version {number}")
    assert [one.content for one in wordings_of(row)] == [f"version {n}" for n in range(4, WORDINGS_MAX + 4)]


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
    assert wordings_of(memory(metadata={WORDINGS: stored})) == []


def test_those_that_are_meant_go_and_the_key_goes_with_the_last() -> None:
    row = corrected(corrected(memory(), "Lives in Faro"), "Lives in Lisbon")
    left = without_wordings(row, lambda one: "Porto" in one.content)
    assert [one.content for one in wordings_of(left)] == ["Lives in Faro"]
    assert without_wordings(row, lambda _: False) is row
    assert without_wordings(row).metadata == {}


def test_what_was_superseded_is_an_earlier_wording_that_learning_corrected() -> None:
    old = replace(
        corrected(memory("Lives in Brga"), "Lives in Braga"),
        id="m0",
        status=MemoryStatus.SUPERSEDED,
        superseded_at=NOW + 500,
    )
    newest = corrected(memory(), "Lives in Oporto", after=900.0)
    assert [(one.memory_id, one.content, one.corrected_by) for one in earlier_in([newest, old], newest_id="m1")] == [
        ("m1", "Lives in Porto", "user"),
        ("m0", "Lives in Braga", "learning"),
        ("m0", "Lives in Brga", "user"),
    ]
