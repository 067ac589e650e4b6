"""What counts as the same statement, and which of several rows stays."""

from __future__ import annotations

from typing import Any

import pytest

from memory.learn.duplicates import says_the_same, united
from memory.learn.life import Why
from memory.model import Evidence, Memory, MemoryStatus, Trust

NOW = 1_750_000_000.0


def memory(memory_id: str, content: str, **fields: Any) -> Memory:
    values = {"created_at": NOW, "updated_at": NOW, "said_at": NOW} | fields
    return Memory(id=memory_id, user_id="ann", content=content, **values)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("I really like green tea.", "i like the green tea"),
        ("I'm vegan", "I am vegan"),
        ("I can't eat nuts", "I cannot eat nuts"),
        ("My locker number is 12!", "My locker number is 12"),
        ("我真的喜欢茶。", "我喜欢茶"),
    ],
)
def test_the_same_words_are_one_statement(one: str, other: str) -> None:
    assert says_the_same(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("I am allergic to nuts", "I am not allergic to nuts"),
        ("I can eat nuts", "I can't eat nuts"),
        ("My locker number is 12", "My locker number is 13"),
        ("Rex bit Tom", "Tom bit Rex"),
        ("I like tea", "I liked tea"),
        ("I eat fish", "I eat only fish"),
        ("I drive to Rome", "I drive from Rome"),
        ("My sister likes tea", "My brother likes tea"),
        ("The meeting is on Monday", "The meeting is on Tuesday"),
        ("My budget is 1.5k", "My budget is 15k"),
        ("我喜欢茶", "我不喜欢茶"),
        ("我住三楼", "我住四楼"),
        ("I no longer smoke", "I smoke"),
    ],
)
def test_other_names_numbers_days_or_denials_keep_statements_apart(one: str, other: str) -> None:
    assert not says_the_same(one, other)


def test_one_row_stays_with_all_the_evidence_and_the_best_of_each() -> None:
    first, second = Evidence("I like tea", "t1"), Evidence("I really like tea", "t2")
    rows = [
        memory("late", "I really like tea", evidence=(second,), confidence=0.9, said_at=NOW, access_count=1),
        memory("early", "I like tea", evidence=(first,), importance=0.8, said_at=NOW - 50, access_count=7, used_at=NOW),
        memory("other", "I like coffee"),
    ]
    [[kept, put]] = united(rows, now=NOW + 1)
    assert (kept.why, kept.memory.id) == (Why.UNITED, "early")
    assert kept.after is not None
    assert kept.after.evidence == (first, second)
    assert (kept.after.importance, kept.after.said_at, kept.after.access_count) == (0.8, NOW, 7)
    assert (put.why, put.memory.id, put.memory.status) == (Why.DUPLICATE, "late", MemoryStatus.ARCHIVED)
    assert put.memory.metadata["archived"] == {"why": "duplicate", "at": NOW + 1, "of": "early"}
    assert put.memory.content == "I really like tea"
    assert united([kept.after, put.memory, rows[2]], now=NOW + 2) == []


def test_what_an_application_stored_is_never_put_away_for_its_likeness() -> None:
    stored = [memory(f"s{n}", "I like tea", trust=Trust.BOOTSTRAPPED) for n in range(2)]
    assert united(stored, now=NOW) == []
    [[put]] = united([memory("guess", "I like tea", said_at=NOW - 1), *stored], now=NOW)
    assert put.memory.id == "guess"


@pytest.mark.parametrize(
    "fields",
    [
        {"project_id": "p"},
        {"agent_id": "a"},
        {"subject": "sister"},
        {"status": MemoryStatus.SUPERSEDED},
        {"metadata": {"restored": {"at": NOW}}, "trust": Trust.BOOTSTRAPPED},
    ],
    ids=["project", "agent", "subject", "superseded", "brought back"],
)
def test_rows_of_different_places_are_not_compared(fields: dict[str, Any]) -> None:
    stays = memory("a", "I like tea", trust=Trust.BOOTSTRAPPED)
    assert united([stays, memory("b", "I like tea", **fields)], now=NOW) == []


def test_what_was_brought_back_is_not_put_away_again() -> None:
    both = [memory(n, "I like tea", metadata={"restored": {"at": NOW}}) for n in ("a", "b")]
    assert united(both, now=NOW) == []
