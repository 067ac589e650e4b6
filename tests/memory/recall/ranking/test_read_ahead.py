"""What was read of a question's words beside its embedding changes no score, and never outlives the corpus it read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import memory.recall.ranking.ranking as ranking_module
from memory.model import Query, Question, Record, Scope, Vector
from memory.recall.ranking.corpus import Corpus
from memory.recall.ranking.features import TextFeatures
from memory.recall.ranking.ranking import Ranked, rank, read_ahead

NOW = 1_765_800_000.0  # 15 December 2025, noon UTC
QUESTION = Question(Query("When did Anna and I repair the blue tent last spring?"), Scope("u"), NOW)
TOLD = (
    "I repaired the blue tent with Anna in May.",
    "Did Anna repair the tent?",
    "Yes, the blue tent is repaired.",
    "I always want short answers.",
    "我的猫叫小白",
)
Remember = Callable[..., Record]


def unit(*numbers: float) -> Vector:
    vector = np.array(numbers, dtype=np.float32)
    return vector / np.linalg.norm(vector)


@pytest.fixture
def corpus(remember: Remember) -> Corpus:
    records = [
        remember(content, vector=unit(1.0, number, 0.5, 0.2), session_id="s", said_at=NOW - 9e6 + 60 * number)
        for number, content in enumerate(TOLD)
    ]
    return Corpus(records, dimension=4)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[TextFeatures]:
    """Each reading that was made."""
    made: list[TextFeatures] = []
    read = ranking_module.text_features
    monkeypatch.setattr(
        ranking_module, "text_features", lambda *given, **named: made.append(read(*given, **named)) or made[-1]
    )  # type: ignore[func-returns-value]
    return made


def ranked(corpus: Corpus, reading: TextFeatures | None = None) -> Ranked:
    return rank(corpus, QUESTION, unit(1.0, 0.3, 0.3, 0.1), reading=reading)


def test_reading_ahead_changes_no_score_and_saves_a_reading(corpus: Corpus, reads: list[TextFeatures]) -> None:
    reading = read_ahead(corpus, QUESTION)
    ahead = ranked(corpus, reading)
    assert len(reads) == 1
    again = ranked(corpus)
    assert replace(ahead, candidates=[*ahead.candidates]) == replace(again, candidates=[*again.candidates])
    assert len(ahead.candidates) == len(TOLD)


def test_what_was_read_before_a_write_counts_for_nothing(
    corpus: Corpus, reads: list[TextFeatures], remember: Remember
) -> None:
    reading = read_ahead(corpus, QUESTION)
    corpus.add(remember("Anna sold the blue tent in spring.", vector=unit(1.0, 0.3, 0.3, 0.1)))
    assert len(ranked(corpus, reading).candidates) == len(TOLD) + 1
    assert len(reads) == 2


def test_without_memories_there_is_nothing_to_read() -> None:
    assert read_ahead(Corpus(dimension=4), QUESTION) is None
