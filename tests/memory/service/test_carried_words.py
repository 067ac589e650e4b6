"""What a fact took along from another one goes when that one does."""

from __future__ import annotations

import pytest
from memory_rows import memory

from memory.model import Evidence, Memory
from memory.service.carried_words import without_carried
from memory.service.erasure import by_turn, narrowed

SCARF = memory(
    "scarf",
    "I got a red scarf",
    evidence=(Evidence("I got a red scarf, which my dog ate", "t1", clause="I got a red scarf"),),
)


def ate(content: str, *, turn_id: str = "t1") -> Memory:
    quoted = Evidence("I got a red scarf, which my dog ate", turn_id, clause="which my dog ate")
    return memory("ate", content, evidence=(quoted,))


@pytest.mark.parametrize(
    ("content", "turn_id", "left"),
    [
        ("I got a red scarf, which my dog ate", "t1", "which my dog ate"),
        ("I got a red scarf, which my dog ate (2025-06-05)", "t1", "which my dog ate (2025-06-05)"),
        ("I got a … which my dog ate", "t1", "I got a … which my dog ate"),
        ("I got a red scarf, which my dog ate", "t2", "I got a red scarf, which my dog ate"),
    ],
)
def test_it_keeps_its_own_words_and_its_days(content: str, turn_id: str, left: str) -> None:
    row = ate(content, turn_id=turn_id)
    assert without_carried(row, [SCARF]).content == left


def test_what_is_forgotten_stands_in_no_other_fact() -> None:
    row = ate("I got a red scarf, which my dog ate")
    left = narrowed(row, by_turn([SCARF]), now=9.0)
    assert (left.content, left.evidence[0].quote, left.updated_at) == ("which my dog ate", "which my dog ate", 9.0)
    assert narrowed(row, by_turn([ate("x", turn_id="t2")]), now=9.0) is row


def test_a_fact_takes_nothing_along_from_itself() -> None:
    assert without_carried(SCARF, [SCARF]) is SCARF
