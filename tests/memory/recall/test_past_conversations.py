"""Which summaries answer a question about past conversations: by time, by topic, else the latest."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np

from memory.model import Scope, SessionSummary, StoredSummary, Vector
from memory.recall.past_conversations import LATEST_MAX, PastTalkQuestion, answering

NOW = datetime(2026, 6, 20, 12, tzinfo=UTC).timestamp()
ANY_TOPIC = np.array([0.0, 0.0, 1.0], dtype=np.float32)
BOATS = np.array([1.0, 0.0, 0.0], dtype=np.float32)
FOOD = np.array([0.0, 1.0, 0.0], dtype=np.float32)


def stored(
    name: str, month: int, day: int, vector: Vector | None = ANY_TOPIC, *, project: str = "", agent: str = ""
) -> StoredSummary:
    at = datetime(2026, month, day, 10, tzinfo=UTC).timestamp()
    summary = SessionSummary("u", name, 1, f"About {name}", "", at, at + 3_600, (), project, agent)
    return StoredSummary(summary, vector)


def asked(text: str, vector: Vector = ANY_TOPIC, **scope: str) -> PastTalkQuestion:
    return PastTalkQuestion(text, vector, Scope("u", **scope), NOW)


def found(question: PastTalkQuestion, *summaries: StoredSummary) -> list[str]:
    return [one.session_id for one in answering(question, summaries)]


NEWEST_FIRST = (
    stored("taxes", 6, 18, np.array([0.0, 0.6, 0.8], dtype=np.float32)),
    stored("curry", 6, 2, FOOD),
    stored("kitchen", 5, 20, None),
    stored("sailing", 5, 12, BOATS),
)


def test_a_time_in_the_question_restricts_them() -> None:
    question = asked("What did we talk about in May?", np.zeros(3, dtype=np.float32))
    assert found(question, *NEWEST_FIRST) == ["kitchen", "sailing"]
    assert found(asked("What did we talk about in April?"), *NEWEST_FIRST) == []
    assert found(asked("Was haben wir gestern besprochen?"), *NEWEST_FIRST) == []
    assert found(asked("¿De qué hablamos en mayo?", BOATS), *NEWEST_FIRST) == ["sailing"]


def test_a_session_counts_for_each_day_that_it_spans() -> None:
    (one,) = [stored("long", 5, 31)]
    start, end = one.summary.first_at, one.summary.first_at + 86_400
    summary = SessionSummary("u", "long", 1, "About long", "", start, end, ())
    spanning = StoredSummary(summary, None)
    for month in ("May", "June"):
        assert found(asked(f"What did we talk about in {month}?"), spanning) == ["long"]
    assert found(asked("What did we talk about in July?"), spanning) == []


def test_a_topic_is_found_by_its_vector_or_by_its_words() -> None:
    assert found(asked("What was our chat about boats?", BOATS), *NEWEST_FIRST) == ["sailing"]
    assert found(asked("What did we say of the kitchen, the kitchen?"), *NEWEST_FIRST[2:]) == ["kitchen", "sailing"]
    words = asked("Our chat about sailing", np.zeros(3, dtype=np.float32))
    assert found(words, stored("curry", 6, 2, None), stored("sailing boats", 5, 12, None))[0] == "curry"  # one word


def test_a_chinese_topic_is_found_by_its_characters() -> None:
    ski = StoredSummary(SessionSummary("u", "ski", 1, "我想学滑雪", "", NOW - 9e6, NOW - 9e6, ()), ANY_TOPIC)
    other = StoredSummary(SessionSummary("u", "other", 1, "我家的厨房要装修", "", NOW, NOW, ()), ANY_TOPIC)
    assert found(asked("我们聊滑雪的时候说了什么？"), other, ski) == ["ski"]
    assert found(asked("我们上次聊了什么？"), other, ski) == ["other", "ski"]  # alike in script, not in topic


def test_without_a_topic_the_latest_count() -> None:
    question = asked("What did we discuss last time?", np.zeros(3, dtype=np.float32))
    assert found(question, *NEWEST_FIRST) == ["taxes", "curry"]
    assert LATEST_MAX == 2


def test_a_project_an_agent_and_the_conversation_itself_bound_them() -> None:
    all_of_them = (
        stored("atlas", 6, 3, project="atlas"),
        stored("other", 6, 2, project="other"),
        stored("agent", 6, 2, agent="planner"),
        stored("plain", 6, 1),
    )
    text = "What did we discuss in June?"
    assert found(asked(text), *all_of_them) == ["atlas", "other", "agent", "plain"]
    assert found(asked(text, project_id="atlas"), *all_of_them) == ["atlas", "agent", "plain"]
    assert found(asked(text, agent_id="critic"), *all_of_them) == ["atlas", "other", "plain"]
    assert found(asked(text, session_id="plain"), *all_of_them) == ["atlas", "other", "agent"]


def test_vectors_of_another_length_do_not_count() -> None:
    odd = StoredSummary(NEWEST_FIRST[3].summary, np.ones(8, dtype=np.float32))
    assert found(asked("What was our chat about?", BOATS), odd) == ["sailing"]
    assert answering(asked("What?"), []) == []
