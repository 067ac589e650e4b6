"""Which summaries, and which passages of the assistant's answers, answer a question about past conversations."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest

from memory.model import Candidate, Evidence, Memory, Role, Scope, SessionSummary, StoredSummary, Turn, Vector
from memory.model.raw_words import answer_rows_of
from memory.recall import past_conversations as past
from memory.recall.past_conversations import PastTalkQuestion, answering, answers_to

NOW = 1_750_000_000.0
NO_TOPIC, ANY_TOPIC = np.zeros(3, dtype=np.float32), np.array([0.0, 0.0, 1.0], dtype=np.float32)
SUGGESTED = "Try the Trattoria Sole, it has a terrace."
LONG = [f"{number}. {name} is open on all days. " + "It has a garden. " * 20 for number, name in enumerate("ABCDEF")]


def answer(text: str, question: str = "", *, session: str = "rome", days_ago: float = 1.0) -> Memory:
    turn = Turn(f"{session}-{days_ago}", Scope("u", session_id=session), NOW - days_ago * 86_400, ())
    (row,) = answer_rows_of(turn, text, question=question)
    return row


def quoted(text: str, *rows: tuple[float, Memory]) -> list[str]:
    """Of these rows, as the store finds them, with their cosines."""
    asks = PastTalkQuestion(text, NO_TOPIC, Scope("u"), NOW)
    return [one.text for one in answers_to(asks, [Candidate(row, score=cosine) for cosine, row in rows])]


def test_answers_are_compared_by_likeness_and_by_words_in_them_and_in_what_they_reply_to() -> None:
    close = answer("Osteria Luna is in the old town.")
    says = answer("It is the terrace of Trattoria Sole.")
    replies = answer("Sole.", "Which trattoria has a terrace?")
    asks = "You named a trattoria with a terrace, which?"
    assert quoted(asks, (0.5, close), (0.45, says)) == [says.content]
    assert quoted(asks, (0.5, close), (0.45, replies)) == [replies.content]
    assert quoted("Which, which?", (0.5, close), (0.45, says)) == [close.content, says.content]  # near the best


def test_words_of_most_answers_say_little() -> None:
    all_of_them = [
        (0.5 - n / 1_000, answer(f"Trattoria number {n}", session=f"s{n}")) for n in range(past.ANSWERS_MAX - 1)
    ]
    asks = "Which trattoria had the terrace?"
    (first, *_) = quoted(asks, *all_of_them, (0.4, answer("The terrace, yes.")))
    assert first == "The terrace, yes."


@pytest.mark.parametrize("cosine", [past.ANSWER_MIN - 0.01, 0.0])
def test_a_topic_of_another_time_that_never_came_up_gets_nothing(cosine: float) -> None:
    told_then = (cosine, answer(SUGGESTED, days_ago=400.0))
    assert quoted("What did you say about Norway yesterday?", told_then) == []
    assert quoted("What did you say about the trattoria yesterday?", (past.ELSEWHEN_MIN, told_then[1])) == [SUGGESTED]


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


JUNE = datetime(2026, 6, 20, 12, tzinfo=UTC).timestamp()
BOATS = np.array([1.0, 0.0, 0.0], dtype=np.float32)
FOOD = np.array([0.0, 1.0, 0.0], dtype=np.float32)


def stored(
    name: str, month: int, day: int, vector: Vector | None = ANY_TOPIC, *, project: str = "", agent: str = ""
) -> StoredSummary:
    at = datetime(2026, month, day, 10, tzinfo=UTC).timestamp()
    return StoredSummary(SessionSummary("u", name, 1, f"About {name}", "", at, at + 3_600, (), project, agent), vector)


def question(text: str, vector: Vector = ANY_TOPIC, **scope: str) -> PastTalkQuestion:
    return PastTalkQuestion(text, vector, Scope("u", **scope), JUNE)


def found(asked: PastTalkQuestion, *summaries: StoredSummary) -> list[str]:
    return [one.session_id for one in answering(asked, summaries)]


NEWEST_FIRST = (
    stored("taxes", 6, 18, np.array([0.0, 0.6, 0.8], dtype=np.float32)),
    stored("curry", 6, 2, FOOD),
    stored("kitchen", 5, 20, None),
    stored("sailing", 5, 12, BOATS),
)


def test_a_time_in_the_question_restricts_them() -> None:
    assert found(question("What did we talk about in May?", NO_TOPIC), *NEWEST_FIRST) == ["kitchen", "sailing"]
    assert found(question("What did we talk about in April?"), *NEWEST_FIRST) == []
    assert found(question("Was haben wir gestern besprochen?"), *NEWEST_FIRST) == []
    assert found(question("¿De qué hablamos en mayo?", BOATS), *NEWEST_FIRST) == ["sailing"]


def test_a_session_counts_for_each_day_that_it_spans() -> None:
    one = stored("long", 5, 31).summary
    spanning = StoredSummary(replace(one, last_at=one.first_at + 86_400), None)
    for month in ("May", "June"):
        assert found(question(f"What did we talk about in {month}?"), spanning) == ["long"]
    assert found(question("What did we talk about in July?"), spanning) == []


def test_a_topic_is_found_by_its_vector_or_by_its_words_and_without_one_the_latest_count() -> None:
    assert found(question("What was our chat about boats?", BOATS), *NEWEST_FIRST) == ["sailing"]
    assert found(question("What did we say of the kitchen, the kitchen?"), *NEWEST_FIRST[2:]) == ["kitchen", "sailing"]
    words = question("Our chat about sailing", NO_TOPIC)
    assert found(words, stored("curry", 6, 2, None), stored("sailing boats", 5, 12, None))[0] == "curry"  # one word
    ski, other = stored("我想学滑雪", 6, 1), stored("我家的厨房要装修", 6, 2)
    assert found(question("我们聊滑雪的时候说了什么？"), other, ski) == ["我想学滑雪"]
    assert found(question("我们上次聊了什么？"), other, ski) == ["我家的厨房要装修", "我想学滑雪"], "not in topic"
    odd = StoredSummary(NEWEST_FIRST[3].summary, np.ones(8, dtype=np.float32))  # of another length
    assert found(question("What was our chat about?", BOATS), odd) == ["sailing"]
    assert found(question("What did we discuss last time?", NO_TOPIC), *NEWEST_FIRST) == ["taxes", "curry"]
    assert answering(question("What?"), []) == []


def test_a_project_an_agent_and_the_conversation_itself_bound_them() -> None:
    all_of_them = (
        stored("atlas", 6, 3, project="atlas"),
        stored("other", 6, 2, project="other"),
        stored("agent", 6, 2, agent="planner"),
        stored("plain", 6, 1),
    )
    text = "What did we discuss in June?"
    assert found(question(text), *all_of_them) == ["atlas", "other", "agent", "plain"]
    assert found(question(text, project_id="atlas"), *all_of_them) == ["atlas", "agent", "plain"]
    assert found(question(text, agent_id="critic"), *all_of_them) == ["atlas", "other", "plain"]
    assert found(question(text, session_id="plain"), *all_of_them) == ["atlas", "other", "agent"]
