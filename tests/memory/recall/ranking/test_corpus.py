"""A corpus after any changes equals one built at once, knows who stands beside whom, and outlives no reading."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from memory_rows import direction, memory

import memory.recall.ranking.ranking as ranking_module
from memory.chat.plain_lines import on_one_line
from memory.model import Candidate, Query, Question, Record, Scope
from memory.recall.notes.injection import line_tokens
from memory.recall.ranking.corpus import Corpus
from memory.recall.ranking.features import TextFeatures
from memory.recall.ranking.layout import windowed
from memory.recall.ranking.ranking import Ranked, rank, read_ahead

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
ANY = np.ones(DIMENSION, dtype=np.float32)


def record(number: int, text: str, session_id: str) -> Record:
    said = memory(f"m{number}", text, user_id="u", at=NOW + 20.0 * number, session_id=session_id)
    return Record(said, np.eye(DIMENSION, dtype=np.float32)[number % DIMENSION])


changes = st.lists(
    st.tuples(st.booleans(), st.integers(0, 9), st.sampled_from(TEXTS), st.sampled_from(["", "s1", "s2"])), max_size=30
)


@given(changes)
def test_changing_step_by_step_gives_what_building_at_once_gives(steps: list[tuple[bool, int, str, str]]) -> None:
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
    one, other = ({c.memory.id: c for c in rank(corpus, asked, vector).candidates} for corpus in (changed, built))
    assert {i: found.memory for i, found in one.items()} == {i: found.memory for i, found in other.items()}
    scores = {i: found.score for i, found in one.items()}
    assert scores == pytest.approx({i: found.score for i, found in other.items()}, abs=1e-4)
    assert len(changed) == len(kept)


def test_turns_of_one_session_are_neighbours_and_facts_of_different_days_are_not(remember: Remember) -> None:
    minute = 1 / 1_440
    turns = [remember(f"turn {i}", days_ago=10 - i * minute, session_id="talk") for i in range(3)]
    facts = [remember(f"fact {i}", days_ago=20 - i) for i in range(3)]
    layout = Corpus(turns + facts, dimension=DIMENSION).prepare()
    linked = {m.content for m, is_linked in zip(layout.memories, layout.is_linked, strict=True) if is_linked}
    assert linked == {"turn 1", "turn 2"}
    assert len(layout.session_starts) == 4


def test_facts_of_one_instant_a_session_used_again_later_and_projects_are_no_neighbours(remember: Remember) -> None:
    minute = 1 / 1_440
    at_once = [remember(f"fact {i}", days_ago=5) for i in range(4)]
    used_again = [remember(f"turn {i}", days_ago=3 - i, session_id="s") for i in range(2)]
    apart = [remember(f"turn {i}", days_ago=3 - i * minute, session_id="s", project_id=f"p{i}") for i in range(2)]
    for records in (at_once, used_again, apart):
        assert not Corpus(records, dimension=DIMENSION).prepare().has_neighbours
    assert len(Corpus(used_again, dimension=DIMENSION).prepare().session_starts) == 2


def test_a_window_weighs_two_neighbours_to_either_side() -> None:
    ones = np.ones((1, 5), dtype=np.float32)
    first = np.array([0, 1, 1, 0, 1], dtype=np.float32)
    second = np.array([0, 0, 0.5, 0, 0], dtype=np.float32)
    assert windowed(ones, (first, second)).tolist() == [[2.5, 3.0, 2.5, 2.0, 2.0]]


def test_the_size_grows_with_what_is_kept(remember: Remember) -> None:
    corpus = Corpus(dimension=DIMENSION)
    empty = corpus.size_bytes
    for i in range(200):
        corpus.add(remember(f"User has seen film number {i} and liked it"))
    assert corpus.size_bytes > empty + 200 * 1_000
    assert "m001" in corpus
    assert "m999" not in corpus


def test_what_a_line_costs_is_counted_once_for_all_questions_or_by_whoever_words_a_note(remember: Remember) -> None:
    counted: list[str] = []

    def tokens(text: str) -> int:
        counted.append(text)
        return len(text)

    def found(corpus: Corpus) -> Candidate:
        return rank(corpus, Question(Query("cat"), Scope("u"), NOW), ANY).candidates[0]

    said = remember("a  cat <b>")
    corpus = Corpus([said], dimension=DIMENSION, tokens=tokens)
    assert found(corpus).tokens == found(corpus).tokens == len(on_one_line("a  cat <b>"))
    assert len(counted) == 1
    uncounted = found(Corpus([said], dimension=DIMENSION))  # as a store's results are
    assert uncounted.tokens is None
    assert line_tokens(uncounted, tokens=len, label="- [x]") == len("- [x]") + len(on_one_line("a  cat <b>"))


def test_few_of_the_best_become_candidates(remember: Remember) -> None:
    corpus = Corpus([remember(f"cat {i}") for i in range(9)], dimension=DIMENSION)
    found = rank(corpus, Question(Query("cat"), Scope("u"), NOW), ANY)
    assert len(found.ids) == len(found.candidates) == 9
    assert found.ids == tuple(candidate.memory.id for candidate in found.candidates)
    assert found.candidates[3] is found.candidates[3]
    assert found.candidates[-1] is found.candidates[8]
    with pytest.raises(IndexError):
        found.candidates[9]


ASKED = Question(Query("When did Anna and I repair the blue tent last spring?"), Scope("u"), NOW)
TOLD = (
    "I repaired the blue tent with Anna in May.",
    "Did Anna repair the tent?",
    "Yes, the blue tent is repaired.",
    "I always want short answers.",
    "我的猫叫小白",
)


@pytest.fixture
def talk(remember: Remember) -> Corpus:
    records = [
        remember(content, vector=direction(1.0, number, 0.5, 0.2), session_id="s", said_at=NOW - 9e6 + 60 * number)
        for number, content in enumerate(TOLD)
    ]
    return Corpus(records, dimension=DIMENSION)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[TextFeatures]:
    """Each reading that was made."""
    made: list[TextFeatures] = []
    read = ranking_module.text_features
    monkeypatch.setattr(
        ranking_module, "text_features", lambda *given, **named: made.append(read(*given, **named)) or made[-1]
    )  # type: ignore[func-returns-value]
    return made


def ranked_with(talk: Corpus, reading: TextFeatures | None = None) -> Ranked:
    return rank(talk, ASKED, direction(1.0, 0.3, 0.3, 0.1), reading=reading)


def test_reading_ahead_changes_no_score_and_saves_a_reading(talk: Corpus, reads: list[TextFeatures]) -> None:
    reading = read_ahead(talk, ASKED)
    ahead = ranked_with(talk, reading)
    assert len(reads) == 1
    again = ranked_with(talk)
    assert replace(ahead, candidates=[*ahead.candidates]) == replace(again, candidates=[*again.candidates])
    assert len(ahead.candidates) == len(TOLD)


def test_what_was_read_before_a_write_is_void(talk: Corpus, reads: list[TextFeatures], remember: Remember) -> None:
    reading = read_ahead(talk, ASKED)
    talk.add(remember("Anna sold the blue tent in spring.", vector=direction(1.0, 0.3, 0.3, 0.1)))
    assert len(ranked_with(talk, reading).candidates) == len(TOLD) + 1
    assert len(reads) == 2
    assert read_ahead(Corpus(dimension=DIMENSION), ASKED) is None, "without memories there is nothing to read"


def test_a_vector_of_another_dimension_is_refused_and_what_it_was_to_replace_stays(remember: Remember) -> None:
    held = remember("User lives in Ghent")
    corpus = Corpus([held], dimension=DIMENSION)
    for size in (1, DIMENSION + 1):  # of one number, numpy would make a row of equal ones
        with pytest.raises(ValueError, match="shape"):
            corpus.add(Record(held.memory, np.ones(size, dtype=np.float32)))
    assert held.memory.id in corpus
