"""The ranking held to its bars with the real embedding model, and the report that shows it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from own_embedder import own_embedder

from memory.evaluation.recall import BUDGETS, OURS, evaluate_recall
from memory.evaluation.report import markdown

ABSTENTION = Path(__file__).parents[2] / "data" / "abstention.jsonl"

TOPICS = ("kiln", "barge", "violin", "orchard", "telescope", "bakery")
"""One session each: a talk in which the answer names its topic in the turn before, not in its own."""


class Evaluate:
    """`evaluate_recall` over the real model, from a test that is not async."""

    def __call__(self, path: Path, **options: Any) -> dict[str, Any]:
        return asyncio.run(self._evaluated(path, **options))

    async def _evaluated(self, path: Path, **options: Any) -> dict[str, Any]:
        async with own_embedder(cache_texts=4) as embedder:
            return await evaluate_recall(path, embedder, **options)


@pytest.fixture(scope="module")
def evaluate() -> Evaluate:
    return Evaluate()


@pytest.fixture(scope="module")
def facts(evaluate: Evaluate) -> dict[str, Any]:
    return evaluate(ABSTENTION)


@pytest.fixture(scope="module")
def talks(evaluate: Evaluate, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    conversation: dict[str, object] = {"speaker_a": "Ann", "speaker_b": "Bo"}
    questions = []
    for number, topic in enumerate(TOPICS, start=1):
        texts = [
            ("Bo", f"How did things go with the {topic}, Ann?"),
            ("Ann", f"Better than I feared. It took {number + 2} hours and some patience."),
            ("Bo", "Good to hear! Shall we have lunch?"),
            ("Ann", "Yes, see you at noon."),
        ]
        conversation[f"session_{number}_date_time"] = f"10:00 am on {number} March, 2024"
        conversation[f"session_{number}"] = [
            {"speaker": speaker, "dia_id": f"D{number}:{place}", "text": text}
            for place, (speaker, text) in enumerate(texts, start=1)
        ]
        questions.append(
            {"question": f"How long did the {topic} take?", "answer": "", "evidence": [f"D{number}:2"], "category": 1}
        )
    path = tmp_path_factory.mktemp("talks") / "talks.json"
    path.write_text(json.dumps([{"sample_id": "made-up", "conversation": conversation, "qa": questions}]))
    return evaluate(path)


def test_at_least_four_in_five_questions_without_an_answer_among_the_memories_recall_nothing(
    facts: dict[str, Any],
) -> None:
    asked = [record for record in facts["records"] if record["recall@5"] is None]
    assert len(asked) == 54
    assert facts["all"]["abstention"] >= 0.80


def test_abstaining_does_not_cost_the_answers(facts: dict[str, Any]) -> None:
    assert facts["all"]["recall@5"] >= 0.92
    assert facts["by_language"]["en"]["recall@5"] >= 0.93
    assert facts["by_language"]["zh"]["recall@5"] >= 0.97
    assert facts["all"]["superseded_leak"] == 0.0


def test_in_a_talk_neighbours_lead_to_an_answer_that_words_and_a_threshold_miss(talks: dict[str, Any]) -> None:
    assert talks["methods"][OURS]["recall@5"] == 1.0
    assert talks["methods"]["BM25"]["recall@5"] == 0.0
    assert talks["methods"]["cosine ≥ 0.7"]["2000 tokens"] < 0.5


def test_a_larger_budget_never_recalls_less(talks: dict[str, Any]) -> None:
    for row in talks["methods"].values():
        recalled = [row[f"{budget} tokens"] for budget in BUDGETS]
        assert recalled == sorted(recalled)


def test_progress_counts_every_question(evaluate: Evaluate, tmp_path: Path) -> None:
    path = tmp_path / "few.jsonl"
    path.write_text("".join(ABSTENTION.read_text().splitlines(keepends=True)[:3]))
    seen: list[tuple[int, int]] = []
    evaluate(path, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(1, 3), (2, 3), (3, 3)]


def test_the_result_is_plain_json_and_every_method_has_a_row(talks: dict[str, Any]) -> None:
    assert json.loads(json.dumps(talks)) == talks
    table = markdown(talks)
    for method in talks["methods"]:
        assert f"| {method} |" in table


def test_the_table_of_facts_shows_languages_and_tags_with_empty_cells_where_nothing_applies(
    facts: dict[str, Any],
) -> None:
    table = markdown(facts)
    assert "| zh |" in table
    assert "| negative | 54 |  |" in table
