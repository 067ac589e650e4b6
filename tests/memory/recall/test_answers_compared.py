"""Which answers of the assistant, and which passages of them, answer a question about what was said."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from memory.model import Candidate, Evidence, Memory, Role, Scope, Turn
from memory.model.raw_words import answer_rows_of
from memory.recall.past_conversations import ANSWER_MIN, ANSWERS_MAX, ELSEWHEN_MIN, PastTalkQuestion, answers_to

NOW = 1_750_000_000.0
SUGGESTED = "Try the Trattoria Sole, it has a terrace."
NO_TOPIC = np.zeros(3, dtype=np.float32)
LONG = [f"{number}. {name} is open on all days. " + "It has a garden. " * 20 for number, name in enumerate("ABCDEF")]


def answer(text: str, question: str = "", *, session: str = "rome", days_ago: float = 1.0) -> Memory:
    turn = Turn(f"{session}-{days_ago}", Scope("u", session_id=session), NOW - days_ago * 86_400, ())
    (row,) = answer_rows_of(turn, text, question=question)
    return row


def near(*rows: tuple[float, Memory]) -> list[Candidate]:
    """As the store finds them, with their cosines."""
    return [Candidate(row, score=cosine) for cosine, row in rows]


def quoted(text: str, *rows: tuple[float, Memory]) -> list[str]:
    asks = PastTalkQuestion(text, NO_TOPIC, Scope("u"), NOW)
    return [one.text for one in answers_to(asks, near(*rows))]


def test_answers_are_compared_by_likeness_and_by_words_in_them_and_in_what_they_reply_to() -> None:
    close = answer("Osteria Luna is in the old town.")
    says = answer("It is the terrace of Trattoria Sole.")
    replies = answer("Sole.", "Which trattoria has a terrace?")
    asks = "You named a trattoria with a terrace, which?"
    assert quoted(asks, (0.5, close), (0.45, says)) == [says.content]
    assert quoted(asks, (0.5, close), (0.45, replies)) == [replies.content]
    assert quoted("Which, which?", (0.5, close), (0.45, says)) == [close.content, says.content]  # near the best


def test_words_of_most_answers_say_little() -> None:
    all_of_them = [(0.5 - n / 1_000, answer(f"Trattoria number {n}", session=f"s{n}")) for n in range(ANSWERS_MAX - 1)]
    asks = "Which trattoria had the terrace?"
    (first, *_) = quoted(asks, *all_of_them, (0.4, answer("The terrace, yes.")))
    assert first == "The terrace, yes."


@pytest.mark.parametrize("cosine", [ANSWER_MIN - 0.01, 0.0])
def test_a_topic_of_another_time_that_never_came_up_gets_nothing(cosine: float) -> None:
    told_then = (cosine, answer(SUGGESTED, days_ago=400.0))
    assert quoted("What did you say about Norway yesterday?", told_then) == []
    assert quoted("What did you say about the trattoria yesterday?", (ELSEWHEN_MIN, told_then[1])) == [SUGGESTED]


def test_of_an_answer_the_passages_with_words_of_the_question_come_first_else_in_the_order_of_the_text() -> None:
    passages = [one.strip() for one in LONG]
    row = answer("\n".join([*LONG[:3], LONG[3].replace("garden", "terrace"), *LONG[4:]]))
    (first, *others) = quoted("Which of them had a terrace?", (0.6, row))
    assert (first, others) == (passages[3].replace("garden", "terrace"), [*passages[:3], *passages[4:]])


def test_rows_of_the_release_before_are_passages_of_their_own() -> None:
    row = answer("Two passages.")
    rows = [
        replace(row, id=text, content=text, evidence=(Evidence(text, "t", Role.ASSISTANT),))
        for text in ("Try Sole.", "It has a terrace.")
    ]
    assert quoted("Which one had a terrace?", (0.6, rows[0]), (0.5, rows[1])) == ["It has a terrace.", "Try Sole."]
