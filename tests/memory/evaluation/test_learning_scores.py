"""The figures of verbatim learning, and the scoring itself.

`own_*` were written after the word lists, without looking at them: at first sight they scored 0.90 recall and 0.87
precision, 5 of 16 outdated facts still active, and 1 of 7 planted orders stored; what they taught is in the lists now.
`fresh_*` were written later in the same way: 0.86, 0.80, and 13 of 23 outdated facts active, for in most of their
changes no word of change falls. Rules alone do not reach the bar of updates there; a model does (docs/operations.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from memory.evaluation.adversarial import evaluate_adversarial
from memory.evaluation.extraction import evaluate_extraction, learn_sessions, matches, score_extraction
from memory.evaluation.updates import evaluate_updates
from memory.learn.extraction import VerbatimLearner
from memory.learn.facts import Fact
from memory.model import Evidence, Memory, MemoryStatus, Turn

SETS = Path(__file__).parents[2] / "data" / "learning"


async def everything_active(memories: Sequence[Memory], query: str, now: float) -> list[Memory]:
    """A recall that finds all there is: what is wrong then is wrong in what was learnt."""
    return [memory for memory in memories if memory.status is MemoryStatus.ACTIVE]


@pytest.mark.parametrize("file", ["extraction.jsonl", "own_extraction.jsonl", "fresh_extraction.jsonl"])
async def test_verbatim_extraction_reaches_its_bar(file: str) -> None:
    figures = await evaluate_extraction(SETS / file, VerbatimLearner())
    assert figures["recall"] >= 0.65
    assert figures["precision"] >= 0.60
    assert figures["forbidden_rate"] <= 0.05
    assert figures["evidence_accuracy"] == 1.0


@pytest.mark.parametrize("file", ["updates.jsonl", "own_updates.jsonl"])
async def test_changed_facts_replace_old_ones_to_the_bar(file: str) -> None:
    figures = await evaluate_updates(SETS / file, VerbatimLearner(), everything_active)
    assert figures["current"] >= 0.80
    assert figures["stale_active"] <= 0.25
    assert figures["probe"] >= 0.70
    assert figures["keep"] >= 0.80


@pytest.mark.parametrize("file", ["adversarial.jsonl.gz", "own_adversarial.jsonl.gz"])
async def test_what_must_not_be_stored_is_not_and_the_harmless_is(file: str) -> None:
    figures = await evaluate_adversarial(SETS / file, VerbatimLearner())
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

    async def extract(self, turns: Sequence[Turn], *, context: Sequence[Turn]) -> list[Fact]:
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
    score = score_extraction(one, await learn_sessions(one, learner))
    assert (score["expected"], score["matched"], score["right"], score["wrong"]) == (2, 1, 1, 1)
    assert (score["is_forbidden"], score["evidence"], score["type"], score["category"]) == (True, 1, 1, 1)
    assert score["wrong_texts"] == ["My dog is Rex"]


async def test_the_sessions_are_learnt_in_order_as_one_user_and_secrets_never_enter() -> None:
    one = record("I live in Leeds, my password is tiger-lamp-44, and I like tea")
    one["sessions"].append({"at": "2025-06-04T09:00:00Z", "messages": [{"role": "user", "content": "I moved to York"}]})
    learnt = await learn_sessions(one, VerbatimLearner())
    assert [m.content for m in learnt.memories if m.status is MemoryStatus.SUPERSEDED] != []
    assert "tiger" not in "".join(m.content for t in learnt.turns for m in t.messages)
    assert [turn.scope.session_id for turn in learnt.turns] == ["r/0", "r/1"]
