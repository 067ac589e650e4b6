"""What a user calls right gets surer, and nothing else; behind a reply that broke off nothing is confirmed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from claims import NOW, claim, turn

from memory.learn.feedback import CONFIDENCE_SURE, confirmations_of, is_restated, raised
from memory.model import Act, Memory, TurnStatus

YES = claim("Exactly right", act=Act.CONFIRM, turn="t2")
BEFORE = turn("What do you know?", turn_id="t1", at=NOW - 9, answer="You live in Leeds and keep two goats.")
AFTER = turn("Exactly right", turn_id="t2")


def row(content: str, *, values: tuple[str, ...] = (), confidence: float = 0.8) -> Memory:
    return Memory(
        id="m",
        user_id="ann",
        content=content,
        created_at=NOW,
        updated_at=NOW,
        said_at=NOW - 99,
        values=values,
        confidence=confidence,
    )


def test_a_confirmation_is_of_the_answer_right_before_it() -> None:
    (confirmation,) = confirmations_of([YES], [BEFORE, AFTER])
    assert (confirmation.answer, confirmation.at) == (BEFORE.answer, YES.said_at)


@pytest.mark.parametrize("status", [TurnStatus.FAILED, TurnStatus.ABORTED])
def test_behind_a_reply_that_broke_off_nothing_is_confirmed(status: TurnStatus) -> None:
    broken = replace(BEFORE, status=status)
    assert confirmations_of([YES], [BEFORE, replace(broken, id="t1b"), AFTER]) == []


def test_the_first_turn_of_a_session_confirms_nothing() -> None:
    assert confirmations_of([YES], [AFTER]) == []


@pytest.mark.parametrize(
    ("content", "values", "expected"),
    [
        ("I live in Leeds", ("Leeds",), True),
        ("I live in Oslo", ("Oslo",), False),
        ("I keep two goats", (), True),
        ("I play the cello on Sundays", (), False),
    ],
)
def test_a_memory_is_restated_where_its_words_and_values_are(
    content: str, values: tuple[str, ...], *, expected: bool
) -> None:
    assert is_restated(row(content, values=values), BEFORE.answer) is expected


def test_what_is_as_sure_as_can_be_is_not_written_again() -> None:
    surer = raised(row("I live in Leeds"), now=NOW)
    assert surer is not None
    assert 0.8 < surer.confidence < 1.0
    assert raised(row("I live in Leeds", confidence=CONFIDENCE_SURE), now=NOW) is None
