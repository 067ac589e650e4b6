"""What counts as the same statement, and which of several rows stays."""

from __future__ import annotations

from typing import Any

import pytest

from memory.learn.duplicates import united
from memory.learn.retention import RetentionReason
from memory.model import Evidence, Memory, MemoryStatus, Trust

NOW = 1_750_000_000.0


def memory(memory_id: str, content: str, **fields: Any) -> Memory:
    values = {"created_at": NOW, "updated_at": NOW, "said_at": NOW} | fields
    return Memory(id=memory_id, user_id="ann", content=content, **values)


def are_one(one: Memory, other: Memory) -> bool:
    return united([one, other], now=NOW) != []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("I really like green tea.", "i really like  GREEN tea"),
        ("My locker number is 12!", "My locker number is 12"),
        ("I like tea: green, not black", "I like tea (green, not black)"),
        ("我喜欢茶。", "我喜欢茶"),
    ],
)
def test_the_same_words_in_the_same_order_are_one_statement(one: str, other: str) -> None:
    assert are_one(memory("a", one), memory("b", other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("I am allergic to nuts", "I am not allergic to nuts"),
        ("My locker number is 12", "My locker number is 13"),
        ("Rex bit Tom", "Tom bit Rex"),
        ("I like tea", "I liked tea"),
        ("I like tea", "I really like tea"),
        ("My budget is 1.5k", "My budget is 15k"),
        ("It is -3 degrees here", "It is 3 degrees here"),
        ("我喜欢茶", "我不喜欢茶"),
    ],
)
def test_any_other_word_number_or_order_keeps_statements_apart(one: str, other: str) -> None:
    assert not are_one(memory("a", one), memory("b", other))


@pytest.mark.parametrize(
    "fields",
    [{"subject": "sibling"}, {"name": "Ana"}, {"attribute": "drink"}, {"is_affirmed": False}],
    ids=["subject", "name", "attribute", "polarity"],
)
def test_the_same_words_that_claim_something_else_stay_apart(fields: dict[str, Any]) -> None:
    assert not are_one(memory("a", "She likes tea"), memory("b", "She likes tea", **fields))


def test_one_row_stays_with_all_the_evidence_and_the_best_of_each() -> None:
    first, second = Evidence("I like tea", "t1"), Evidence("i like tea!", "t2")
    rows = [
        memory("late", "i like tea!", evidence=(second,), confidence=0.9, said_at=NOW, access_count=1),
        memory("early", "I like tea", evidence=(first,), importance=0.8, said_at=NOW - 50, access_count=7, used_at=NOW),
        memory("other", "I like coffee"),
    ]
    [[kept, put]] = united(rows, now=NOW + 1)
    assert (kept.why, kept.memory.id) == (RetentionReason.UNITED, "early")
    assert kept.after is not None
    assert kept.after.evidence == (first, second)
    assert (kept.after.importance, kept.after.said_at, kept.after.access_count) == (0.8, NOW, 7)
    assert (put.why, put.memory.id, put.memory.status) == (RetentionReason.DUPLICATE, "late", MemoryStatus.ARCHIVED)
    assert put.memory.metadata["archived"] == {"why": "duplicate", "at": NOW + 1, "of": "early"}
    assert put.memory.content == "i like tea!"
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
        {"status": MemoryStatus.SUPERSEDED},
        {"metadata": {"restored": {"at": NOW}}, "trust": Trust.BOOTSTRAPPED},
    ],
    ids=["project", "agent", "superseded", "brought back"],
)
def test_rows_of_different_places_are_not_compared(fields: dict[str, Any]) -> None:
    stays = memory("a", "I like tea", trust=Trust.BOOTSTRAPPED)
    assert united([stays, memory("b", "I like tea", **fields)], now=NOW) == []


def test_what_was_brought_back_is_not_put_away_again() -> None:
    both = [memory(n, "I like tea", metadata={"restored": {"at": NOW}}) for n in ("a", "b")]
    assert united(both, now=NOW) == []
