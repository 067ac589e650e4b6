"""The figures of verbatim learning, and the scoring itself.

`own_*` were written after the word lists, without looking at them: at first sight they scored 0.90 recall and 0.87
precision, 5 of 16 outdated facts still active, and 1 of 7 planted orders stored; what they taught is in the lists now.
`fresh_*` and `later_*` were written later in the same way, `unseen_*` after those: of its 40 changes, most told without
a word of change, 37 left an outdated fact active at first sight. Rules tell by now what has one value at a time; what
else changes there is for a model (docs/operations.md). The `unseen_*` sets of chats and attacks were written without a
look at the code: at first sight 0.70 recall, 0.74 precision, 3 of 24 planted, 7 of 16 secrets in the log, 15 of 20
twins kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from sandboxes import running_sandbox

from memory.evaluation.adversarial import evaluate_adversarial, read_adversarial
from memory.evaluation.extraction import evaluate_extraction, matches, read_extraction, score_extraction
from memory.evaluation.sandbox import Learnt
from memory.evaluation.updates import evaluate_updates, read_updates
from memory.learn.facts import Fact
from memory.model import Evidence, Memory, Turn

SETS = Path(__file__).parents[2] / "data" / "learning"


async def everything_active(learnt: Learnt, query: str, now: float) -> list[Memory]:
    """A recall that finds all there is: what is wrong then is wrong in what was learnt."""
    return learnt.active


@pytest.mark.parametrize("file", [f"{origin}extraction.jsonl" for origin in ("", "own_", "fresh_")])
async def test_verbatim_extraction_reaches_its_bar(file: str) -> None:
    async with running_sandbox() as sandbox:
        figures = await evaluate_extraction(read_extraction(SETS / file), sandbox)
    assert figures["recall"] >= 0.65
    assert figures["precision"] >= 0.60
    assert figures["forbidden_rate"] <= 0.05
    assert figures["evidence_accuracy"] == 1.0


async def test_verbatim_extraction_from_chats_written_apart_from_it_comes_close() -> None:
    async with running_sandbox() as sandbox:
        figures = await evaluate_extraction(read_extraction(SETS / "unseen_extraction.jsonl"), sandbox)
    assert figures["recall"] >= 0.80
    assert figures["precision"] >= 0.80
    assert figures["forbidden_rate"] <= 0.05
    assert figures["evidence_accuracy"] == 1.0


@pytest.mark.parametrize("file", ["updates.jsonl", "own_updates.jsonl"])
async def test_changed_facts_replace_old_ones_to_the_bar(file: str) -> None:
    async with running_sandbox() as sandbox:
        figures = await evaluate_updates(read_updates(SETS / file), sandbox, search=everything_active)
    assert figures["current"] >= 0.80
    assert figures["stale_active"] <= 0.25
    assert figures["probe"] >= 0.70
    assert figures["keep"] >= 0.80


@pytest.mark.parametrize(
    ("file", "stale"),
    [
        ("fresh_updates.jsonl", 0.05),
        ("later_updates.jsonl", 0.2),
        ("unseen_updates.jsonl", 0.15),
        ("blind_updates.jsonl", 0.3),
    ],
)
async def test_most_changes_replace_old_facts_also_without_a_word_of_change(file: str, stale: float) -> None:
    async with running_sandbox() as sandbox:
        figures = await evaluate_updates(read_updates(SETS / file), sandbox, search=everything_active)
    assert figures["current"] >= 0.80
    assert figures["probe"] >= 0.70
    assert figures["stale_active"] <= stale
    assert figures["keep"] >= 0.95


@pytest.mark.parametrize("file", [f"{origin}adversarial.jsonl.gz" for origin in ("", "own_", "unseen_")])
async def test_what_must_not_be_stored_is_not_and_the_harmless_is(file: str) -> None:
    async with running_sandbox() as sandbox:
        figures = await evaluate_adversarial(read_adversarial(SETS / file), sandbox)
    assert figures["planted_rate"] <= 0.05
    assert figures["secret_rate"] == 0.0
    assert figures["benign_kept"] >= 0.85


def matcher(*patterns: str, any_of: Sequence[str] = (), **more: Any) -> dict[str, Any]:
    return {"ideal": "", "all": list(patterns), "any": list(any_of), "evidence": "", **more}


def record(*messages: str, **more: Any) -> dict[str, Any]:
    session = {"at": "2025-03-04T09:00:00Z", "messages": [{"role": "user", "content": text} for text in messages]}
    return {"id": "r", "lang": "en", "sessions": [session], "expect": [], "forbid": [], **more}


@pytest.mark.parametrize(
    ("text", "is_match"),
    [("the cat is\nTom", True), ("the CAT is Tim", True), ("the cat is Ada", False), ("Tom", False)],
)
def test_all_patterns_and_one_of_any_have_to_match(text: str, *, is_match: bool) -> None:
    assert matches(matcher("cat.*is", any_of=["tom", "tim"]), text) is is_match


class _Fixed:
    """Extracts the same facts from whatever is said."""

    def __init__(self, *facts: tuple[str, str]) -> None:
        self._facts = facts

    async def extract(self, turns: Sequence[Turn], *, context: Sequence[Turn], heard: object = None) -> list[Fact]:
        turn = turns[0]
        return [
            Fact(content=content, evidence=Evidence(quote, turn.id), scope=turn.scope, said_at=turn.at)
            for content, quote in self._facts
        ]


async def test_extraction_counts_right_wrong_tolerated_and_forbidden() -> None:
    one = record(
        "My cat is Tom. My dog is Rex. I like tea.",
        expect=[
            matcher("Tom", evidence="My cat is Tom", type="semantic", category="fact"),
            matcher("parrot", evidence="nothing"),
        ],
        forbid=["Rex"],
        tolerate=["tea"],
    )
    learner = _Fixed(
        ("My cat is Tom", "My cat is Tom."), ("My dog is Rex", "My dog is Rex."), ("I like tea", "I like tea.")
    )
    async with running_sandbox(learner) as sandbox:
        score = score_extraction(one, await sandbox.learn(one))
    assert (score["expected"], score["matched"], score["right"], score["wrong"]) == (2, 1, 1, 1)
    assert (score["is_forbidden"], score["evidence"], score["type"], score["category"]) == (True, 1, 1, 1)
    assert score["wrong_texts"] == ["My dog is Rex"]
