"""A note that stands is never reworded, so the newest one corrects what it told; and nothing is told twice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from memory.model import CandidateVerdict, MemoryStatus, Query, Question, Record, Scope, Selection, Vector
from memory.recall.ranking.combining import fused
from memory.recall.ranking.corpus import Corpus
from memory.recall.ranking.lexical import wording
from memory.recall.ranking.ranking import Budget, Ranked, rank, select
from memory.recall.ranking.superseded_in_notes import review_notes

DIMENSION = 8
NOW_IN_WINTER = 1_765_800_000.0
Remember = Callable[..., Record]
SUPERSEDED = MemoryStatus.SUPERSEDED
AMPLE = Budget(10_000)
OFF_THE_TOPIC, OF_STONES = "why do volcanoes erupt", "which stones hold the heat of my sauna"


def leaning(cosine: float, axis: int) -> Vector:
    vector = np.zeros(DIMENSION, dtype=np.float32)
    vector[0], vector[axis] = cosine, np.sqrt(1 - cosine**2)
    return vector


def asked(records: Sequence[Record], question: str, *, in_notes: Sequence[str], scope: Scope | None = None) -> Ranked:
    corpus, vector = Corpus(records, dimension=DIMENSION), leaning(1.0, 1)
    return rank(corpus, Question(Query(question), scope or Scope("u"), NOW_IN_WINTER, in_notes=in_notes), vector)


def chosen(ranked: Ranked, *, in_notes: Sequence[str], budget: Budget = AMPLE, **options: Any) -> Selection:
    return select(
        ranked, budget, tokens=lambda candidate: len(candidate.memory.content), in_notes=frozenset(in_notes), **options
    )


def ids(selection: Selection) -> list[str]:
    return [candidate.memory.id for candidate in selection.candidates]


@pytest.fixture
def moved(remember: Remember) -> list[Record]:
    """Leeds, then Bristol, then Bath; and something else."""
    return [
        remember("I live in Leeds", id="leeds", status=SUPERSEDED, superseded_by="bristol", vector=leaning(0.0, 2)),
        remember("I live in Bristol", id="bristol", status=SUPERSEDED, superseded_by="bath", vector=leaning(0.0, 3)),
        remember("I live in Bath", id="bath", vector=leaning(0.0, 4)),
        remember("Lava stones hold my sauna's heat", id="sauna", vector=leaning(0.1, 5)),
    ]


@pytest.mark.parametrize(
    ("question", "in_notes", "options", "expected"),
    [
        (OF_STONES, ["leeds"], {}, ["bath", "sauna"]),
        (OF_STONES, ["leeds"], {"similarity_threshold": 0.95, "budget": Budget(10_000, memories=1)}, ["bath"]),
        (OFF_THE_TOPIC, ["leeds"], {}, ["bath"]),
        (OFF_THE_TOPIC, ["leeds", "bristol"], {}, ["bath"]),
        (OFF_THE_TOPIC, ["leeds", "bath"], {}, []),  # once
        (OFF_THE_TOPIC, [], {}, []),  # the question alone would not find it
    ],
)
def test_what_holds_now_is_told_first(moved: Any, question: str, in_notes: Any, options: Any, expected: Any) -> None:
    found = chosen(asked(moved, question, in_notes=in_notes), in_notes=in_notes, **options)
    assert ids(found) == expected
    assert not set(expected) & found.cuts.keys()


def test_it_is_found_in_a_crowd_by_another_question_or_over_budget(moved: list[Record], remember: Remember) -> None:
    crowd = [remember(f"Stone {n} of the sauna", vector=leaning(0.5, 6)) for n in range(300)]
    found = asked([*moved, *crowd], "the sauna's stones", in_notes=["leeds"])
    assert ids(chosen(found, in_notes=["leeds"], budget=Budget(10_000, memories=3)))[0] == "bath"
    plain, rewritten = (asked(moved, text, in_notes=["leeds"]) for text in (OFF_THE_TOPIC, "sauna stones"))
    assert ids(chosen(fused(plain, rewritten), in_notes=["leeds"])) == ["bath", "sauna"]
    poor = chosen(plain, in_notes=["leeds"], budget=Budget(3))
    assert (ids(poor), poor.cuts["bath"]) == ([], CandidateVerdict.OVER_BUDGET)


@pytest.mark.parametrize("fields", [{"project_id": "other"}, {"agent_id": "other"}])
def test_a_successor_of_another_project_or_agent_stays_invisible(moved: list[Record], fields: dict[str, str]) -> None:
    moved[2] = Record(replace(moved[2].memory, **fields), moved[2].vector)  # type: ignore[arg-type]
    scope = Scope("u", project_id="mine", agent_id="mine")
    assert ids(chosen(asked(moved, OFF_THE_TOPIC, in_notes=["leeds"], scope=scope), in_notes=["leeds"])) == []


def test_a_successor_that_was_deleted_corrects_nothing_and_a_circle_ends(moved: list[Record]) -> None:
    corpus = Corpus(moved, dimension=DIMENSION)
    corpus.remove("bath")
    assert review_notes(corpus.prepare(), ["leeds"]).corrections == ()
    corpus.add(Record(replace(moved[1].memory, superseded_by="leeds"), moved[1].vector))
    assert review_notes(corpus.prepare(), ["leeds"]).corrections == ()


def test_a_successor_that_says_the_same_is_no_news_unless_something_else_was_told_since(remember: Remember) -> None:
    there_and_back = [
        remember("I live in Leeds", id="1", status=SUPERSEDED, superseded_by="2"),
        remember("I live in York", id="2", status=SUPERSEDED, superseded_by="3"),
        remember("I live in Leeds.", id="3"),
    ]
    layout = Corpus(there_and_back, dimension=DIMENSION).prepare()
    assert review_notes(layout, ["1"]).corrections == ()
    assert review_notes(layout, ["1", "2"]).corrections == (layout.places["3"],)
    assert ids(chosen(asked(there_and_back, OFF_THE_TOPIC, in_notes=["1", "2"]), in_notes=["1", "2"])) == ["3"]


def test_other_words_for_what_an_earlier_note_told_are_not_told_again(remember: Remember) -> None:
    records = [
        remember("I am allergic to the nuts", id="told", vector=leaning(0.6, 2)),
        remember("User is allergic to nuts.", id="again", vector=leaning(0.6, 2)),
        remember("I am not allergic to nuts", id="not", vector=leaning(0.6, 2)),
    ]
    found = chosen(asked(records, "my nuts allergic", in_notes=["told"]), in_notes=["told"])
    assert ids(found) == ["not"]
    assert found.cuts == {"told": CandidateVerdict.ALREADY_TOLD, "again": CandidateVerdict.DUPLICATE}
    assert set(ids(chosen(asked(records, "my nuts allergic", in_notes=[]), in_notes=[]))) == {"told", "not"}


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("I have a cat", "User have the cat", True), ("用户喜欢喝茶", "我喜欢喝茶", True),
        ("我不喜欢喝茶", "我喜欢喝茶", False), ("My wife is tall", "I am tall", False),
        ("I was a vegetarian", "I am a vegetarian", False),
        ("Flight from Rome to Oslo", "Flight from Oslo to Rome", False), ("Locker 118", "Locker 181", False),
        ("the", "a", False), ("My blood type is O+.", "My blood type is O-.", False),
        ("我的血型是O+", "我的血型是O-", False), ("I write C++", "I write C#", False),
        ("It costs $50.", "It costs €50.", False), ("I moved (to Rome)", "I moved to Rome.", True),
    ],
)  # fmt: skip
def test_statements_are_the_same_where_nothing_that_matters_differs(one: str, other: str, *, is_same: bool) -> None:
    assert (wording(one) == wording(other)) is is_same
