"""A question about the user as a whole, or about their project: what is most important over all attributes, and not
what resembles the question.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from recall_rig import KAYAK, NOW, Rig, request_of, rigged

from memory.model import Memory, MemoryStatus, RecallStatus, RequestOptions, Scope, Vector
from memory.recall.ranking.ranking import WHOLE_EXAMINED_MAX
from memory.recall.signals.classifier import NO_KIND, KindScores, QuestionClassifier, QuestionKind

USER, PROJECT = Scope("u"), Scope("u", "boat")
WHO, OF_PROJECT = "Who am I?", "What is the project about?"
DAY = 86_400.0


class ByTwoQuestions(QuestionClassifier):
    def __init__(self) -> None:
        """No weights."""

    def scores(self, text: str, vector: Vector | None) -> KindScores:
        kinds = {WHO: QuestionKind.ABOUT_USER, OF_PROJECT: QuestionKind.ABOUT_PROJECT}
        return {kind: float(kinds.get(text) is kind) for kind in NO_KIND}


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    async with rigged(tmp_path, questions=ByTwoQuestions) as running:
        yield running


def fact(content: str, attribute: str = "none", *, days: float = 0.0, **fields: object) -> Memory:
    at = NOW - days * DAY
    return replace(Memory(content, "u", content, at, at, at, attribute=attribute), **fields)  # type: ignore[arg-type]


FACTS = (
    fact("I was at the opera", category="event", importance=0.1),
    fact("I am a beekeeper", "occupation", days=3),
    fact("My name is Ada", "name", days=4),
    fact("I cannot eat celery", "diet", days=2),
)


async def lines(rig: Rig, question: str, scope: Scope = USER, **config: object) -> list[str]:
    outcome = await rig.recall.recall(scope, request_of(question, **config))
    text = "\n".join(note.text for note in outcome.notes)
    return [line.partition("] ")[2] for line in text.splitlines() if line.startswith("- [")]


async def test_it_gets_each_fact_in_one_line_in_the_order_of_a_profile(rig: Rig) -> None:
    await rig.write(*FACTS)
    found = await lines(rig, WHO)
    assert found[:3] == ["My name is Ada", "I am a beekeeper", "I cannot eat celery"]
    assert set(found[3:]) == {"I was at the opera", KAYAK}  # what no profile holds follows


async def test_of_a_single_value_it_gets_the_newest_and_of_none_what_no_longer_holds(rig: Rig) -> None:
    moved = fact("I live in Leeds", "home", days=9, status=MemoryStatus.SUPERSEDED, superseded_by="x")
    former = fact("My name is Adele", "name", days=9)
    await rig.write(*FACTS, moved, former, fact("The sale is on", days=2, invalid_at=NOW - DAY))
    found = await lines(rig, WHO)
    assert "My name is Ada" in found
    assert not {"I live in Leeds", "My name is Adele", "The sale is on"} & set(found)


async def test_the_budget_is_filled_and_not_exceeded(rig: Rig) -> None:
    await rig.write(*(fact(f"I own boat number {number} of the fleet", importance=0.4) for number in range(90)))
    assert 10 < len(await lines(rig, WHO, token_budget=400)) < 60


async def test_of_very_many_the_important_ones_are_looked_at(rig: Rig) -> None:
    await rig.write(*(fact(f"I saw bird {number}", importance=0.1) for number in range(WHOLE_EXAMINED_MAX)), *FACTS[1:])
    assert {"My name is Ada", "I cannot eat celery"} <= set(await lines(rig, WHO))


async def test_without_a_loaded_set_the_store_is_asked_and_where_it_holds_nothing_there_is_no_note(rig: Rig) -> None:
    async def not_loaded(*_: object, **__: object) -> None:
        return None

    await rig.write(*FACTS)
    rig.corpora.corpus = not_loaded  # type: ignore[method-assign, assignment]
    assert "I cannot eat celery" in await lines(rig, WHO)
    outcome = await rig.recall.recall(Scope("nobody"), request_of(WHO))
    assert (outcome.status, outcome.notes) == (RecallStatus.EMPTY, ())


async def test_a_project_as_a_whole_is_what_was_said_in_it(rig: Rig) -> None:
    keel = fact("The keel is made of oak", project_id="boat")
    await rig.write(*FACTS, keel, fact("The roof leaks", project_id="house"))
    assert await lines(rig, OF_PROJECT, PROJECT) == ["The keel is made of oak"]
    assert "The roof leaks" not in await lines(rig, WHO, PROJECT)
    assert (await lines(rig, OF_PROJECT))[:1] != ["My name is Ada"]  # no project is named: an ordinary question


async def test_a_search_of_the_api_finds_it_in_the_same_order(rig: Rig) -> None:
    await rig.write(*FACTS)
    options = RequestOptions(retrieval_limit=2, token_budget=900)
    found = await rig.recall.search(USER, query=WHO, history=(), options=options)
    assert [one.memory.content for one in found] == ["My name is Ada", "I am a beekeeper"]
