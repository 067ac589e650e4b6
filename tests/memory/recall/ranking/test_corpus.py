"""A corpus after any changes equals one built at once, and knows who stands beside whom."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.chat.plain_lines import on_one_line
from memory.model import Memory, Query, Question, Record, Scope
from memory.recall.notes.injection import line_tokens
from memory.recall.ranking.corpus import Corpus
from memory.recall.ranking.layout import windowed
from memory.recall.ranking.ranking import rank

NOW = 1_765_800_000.0
DIMENSION = 8
TEXTS = (
    "Alice: I adopted a cat",
    "Bob: what is it called?",
    "Alice: Misty",
    "用户喜欢喝茶",
    "rent is 900 euros",
    "cat",
)

Remember = Callable[..., Record]


def record(number: int, text: str, session_id: str) -> Record:
    at = NOW + 20.0 * number
    memory = Memory(
        id=f"m{number}", user_id="u", content=text, created_at=at, updated_at=at, said_at=at, session_id=session_id
    )
    vector = np.zeros(DIMENSION, dtype=np.float32)
    vector[number % DIMENSION] = 1.0
    return Record(memory, vector)


changes = st.lists(
    st.tuples(st.booleans(), st.integers(0, 9), st.sampled_from(TEXTS), st.sampled_from(["", "s1", "s2"])), max_size=30
)


@given(changes)
def test_changing_step_by_step_gives_what_building_at_once_gives(
    steps: list[tuple[bool, int, str, str]],
) -> None:
    changed = Corpus(dimension=DIMENSION)
    kept: dict[str, Record] = {}
    for position, (adds, number, text, session_id) in enumerate(steps):
        one = record(number, text, session_id)
        if adds:
            changed.add(one)
            kept[one.memory.id] = one
        else:
            changed.remove(one.memory.id)
            kept.pop(one.memory.id, None)
        if position % 7 == 0:
            changed.prepare()
    built = Corpus(kept.values(), dimension=DIMENSION)
    asked = Question(Query("Alice's cat"), Scope("u"), NOW)
    vector = record(1, "cat", "").vector
    one, other = (rank(corpus, asked, vector) for corpus in (changed, built))
    assert [c.memory for c in one.candidates] == [c.memory for c in other.candidates]
    assert [c.score for c in one.candidates] == pytest.approx([c.score for c in other.candidates], abs=1e-4)
    assert len(changed) == len(kept)


def test_turns_of_one_session_are_neighbours_and_facts_of_different_days_are_not(remember: Remember) -> None:
    minute = 1 / 1_440
    turns = [remember(f"turn {i}", days_ago=10 - i * minute, session_id="talk") for i in range(3)]
    facts = [remember(f"fact {i}", days_ago=20 - i) for i in range(3)]
    layout = Corpus(turns + facts, dimension=DIMENSION).prepare()
    linked = {m.content for m, is_linked in zip(layout.memories, layout.is_linked, strict=True) if is_linked}
    assert linked == {"turn 1", "turn 2"}
    assert len(layout.session_starts) == 4


def test_a_list_of_facts_stored_at_one_instant_has_no_order(remember: Remember) -> None:
    layout = Corpus([remember(f"fact {i}", days_ago=5) for i in range(4)], dimension=DIMENSION).prepare()
    assert not layout.has_neighbours


def test_a_session_id_used_again_a_day_later_is_another_session(remember: Remember) -> None:
    turns = [remember("a", days_ago=3, session_id="s"), remember("b", days_ago=2, session_id="s")]
    layout = Corpus(turns, dimension=DIMENSION).prepare()
    assert not layout.has_neighbours
    assert len(layout.session_starts) == 2


def test_projects_are_no_neighbours_even_within_a_session(remember: Remember) -> None:
    turns = [
        remember("a", days_ago=3, session_id="s", project_id="p"),
        remember("b", days_ago=3 - 1 / 1_440, session_id="s", project_id="q"),
    ]
    assert not Corpus(turns, dimension=DIMENSION).prepare().has_neighbours


def test_a_window_weighs_two_neighbours_to_either_side() -> None:
    ones = np.ones((1, 5), dtype=np.float32)
    first = np.array([0, 1, 1, 0, 1], dtype=np.float32)
    second = np.array([0, 0, 0.5, 0, 0], dtype=np.float32)
    assert windowed(ones, (first, second)).tolist() == [[2.5, 3.0, 2.5, 2.0, 2.0]]


def test_a_vector_of_another_dimension_is_refused(remember: Remember) -> None:
    with pytest.raises(ValueError, match="shape"):
        Corpus(dimension=384).add(remember("short"))


def test_a_memory_added_again_replaces_itself(remember: Remember) -> None:
    old = remember("User lives in Ghent")
    corpus = Corpus([old], dimension=DIMENSION)
    corpus.add(Record(replace(old.memory, content="User lives in Bruges"), old.vector))
    assert len(corpus) == 1
    assert corpus.prepare().memories[0].content == "User lives in Bruges"


def test_the_size_grows_with_what_is_kept(remember: Remember) -> None:
    corpus = Corpus(dimension=DIMENSION)
    empty = corpus.size_bytes
    for i in range(200):
        corpus.add(remember(f"User has seen film number {i} and liked it"))
    assert corpus.size_bytes > empty + 200 * 1_000
    assert "m001" in corpus
    assert "m999" not in corpus


def test_what_a_line_costs_is_counted_once_for_all_questions(remember: Remember) -> None:
    counted: list[str] = []

    def tokens(text: str) -> int:
        counted.append(text)
        return len(text)

    corpus = Corpus(dimension=DIMENSION, tokens=tokens)
    corpus.add(remember("a  cat <b>"))
    first, again = (rank(corpus, Question(Query("cat"), Scope("u"), NOW), None).candidates[0] for _ in range(2))
    assert first.tokens == again.tokens == len(on_one_line("a  cat <b>"))
    assert len(counted) == 1


def test_without_a_tokenizer_whoever_words_a_note_counts(remember: Remember) -> None:
    corpus = Corpus([remember("a cat")], dimension=DIMENSION)
    (found,) = rank(corpus, Question(Query("cat"), Scope("u"), NOW), None).candidates
    assert found.tokens is None
    assert line_tokens(found, tokens=len, label="- [x]") == len("- [x]") + len("a cat")


def test_few_of_the_best_become_candidates(remember: Remember) -> None:
    corpus = Corpus([remember(f"cat {i}") for i in range(9)], dimension=DIMENSION)
    found = rank(corpus, Question(Query("cat"), Scope("u"), NOW), None)
    assert len(found.ids) == len(found.candidates) == 9
    assert found.ids == tuple(candidate.memory.id for candidate in found.candidates)
    assert found.candidates[3] is found.candidates[3]
    assert found.candidates[-1] is found.candidates[8]
    with pytest.raises(IndexError):
        found.candidates[9]
