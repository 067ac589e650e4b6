"""What the evaluations of learning, signals and recall count, on numbers small enough to check by hand."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hashing_embedder import HashingEmbedder
from plain_reader import NEVER
from sandboxes import running_sandbox

from memory.errors import BadInput
from memory.evaluation.adversarial import evaluate_adversarial
from memory.evaluation.dataset import RecallCase, holds_talks, read_recall, read_talks
from memory.evaluation.extraction import evaluate_extraction, matches
from memory.evaluation.recall import BUDGETS, OURS, evaluate_recall
from memory.evaluation.report import markdown
from memory.evaluation.score import by_group, figures, score_case, within_budget
from memory.evaluation.signals import evaluate_signals, read_signals, score_signals
from memory.evaluation.updates import evaluate_updates
from memory.learn.readers import OffReader
from memory.model import Act, Claim, Evidence, Turn
from memory.ports import PairVerdict, StatementPair
from memory.recall.signals.classifier import SignalClassifier, SignalLabel
from memory.recall.signals.linear_model import Phrase
from memory.recall.signals.search_decision import Decision
from memory.recall.signals.training import ClassifierTraining

DATA = Path(__file__).parents[2] / "data"

# Recall

RECORD = {
    "id": "r1",
    "lang": "en",
    "memories": [
        {"at": "2025-01-01T09:00:00Z", "text": f"memory {i}", "status": "superseded" if i == 4 else "active"}
        for i in range(6)
    ],
    "history": [{"role": "user", "content": "about the barge"}],
    "query": "how long is it?",
    "now": "2025-02-01T09:00:00Z",
    "relevant": [0, 1],
    "acceptable": [2],
    "irrelevant_ok": False,
    "tag": "multi",
}
TALK = {
    "sample_id": "talk-1",
    "conversation": {
        "speaker_a": "Ann",
        "speaker_b": "Bo",
        "session_2": [{"speaker": "Bo", "dia_id": "D2:1", "text": "The kiln broke.", "blip_caption": "a cracked pot"}],
        "session_2_date_time": "9:05 am on 3 June, 2024",
        "session_10": [{"speaker": "Ann", "dia_id": "D10:1", "text": "I sold it."}],
        "session_10_date_time": "12:30 pm on 1 July, 2024",
        "session_11_date_time": "1:00 pm on 2 July, 2024",
    },
    "qa": [
        {"question": "What broke?", "answer": "the kiln", "evidence": ["D2:1"], "category": 4},
        {"question": "What was sold?", "answer": "it", "evidence": ["D10:1; D2:1", "D99:9"], "category": 1},
        {"question": "Who is Cy?", "evidence": ["D2:1"], "category": 5},
        {"question": "Why?", "answer": "?", "evidence": [], "category": 3},
    ],
}

Case = Callable[..., RecallCase]


@pytest.fixture
def case(tmp_path: Path) -> Case:
    def build(**changes: object) -> RecallCase:
        path = tmp_path / "records.jsonl"
        path.write_text(json.dumps({**RECORD, **changes}) + "\n\n")
        [only] = read_recall(path)
        return only

    return build


def test_recall_at_k_divides_by_what_k_places_can_hold_and_acceptable_or_no_memories_do_not_count(case: Case) -> None:
    score = score_case(case(), [2, 0, 3])
    assert (score.recall, score.precision, score.reciprocal_rank) == ({3: 0.5, 5: 0.5, 8: 0.5}, 0.5, 1.0)
    score = score_case(case(relevant=[0, 1, 3, 5], acceptable=[]), [0, 1, 2, 3])
    assert score.recall == {3: 2 / 3, 5: 3 / 4, 8: 3 / 4}
    silent, nothing = score_case(case(), []), case(relevant=[], acceptable=[2])
    assert (silent.precision, silent.reciprocal_rank, silent.abstained) == (0.0, 0.0, None)
    assert [score_case(nothing, found).abstained for found in ([], [2], [3])] == [True, True, False]
    assert score_case(nothing, [3]).recall is None


def test_a_superseded_memory_leaks_unless_it_is_listed(case: Case) -> None:
    assert score_case(case(), [0, 4]).leaked_superseded
    assert not score_case(case(relevant=[4]), [4]).leaked_superseded
    assert not score_case(case(acceptable=[4]), [4]).leaked_superseded
    assert score_case(case(relevant=[]), [4]).leaked_superseded


def test_figures_are_means_over_the_records_that_they_apply_to(case: Case) -> None:
    good, bad, silent = case(), case(lang="zh"), case(relevant=[], lang="zh")
    scores = [score_case(good, [0, 1]), score_case(bad, [3]), score_case(silent, [])]
    every = figures(scores)
    assert (every["recall@5"], every["precision"]) == (0.5, 0.5)
    assert (every["abstention"], every["superseded_leak"]) == (1.0, 0.0)
    by_language = by_group(scores, lambda score: score.case.language, figures)
    assert (by_language["en"]["recall@5"], by_language["en"]["abstention"]) == (1.0, None)
    assert by_language["zh"]["records"] == 2


def test_a_budget_passes_over_what_does_not_fit() -> None:
    assert within_budget([0, 1, 2], ["a" * 42, "b" * 420, "c" * 42], budget=20) == [0, 2]


def test_talks_are_read_in_the_order_of_their_sessions_with_one_memory_per_turn(tmp_path: Path) -> None:
    """Questions without answer or evidence are left out, and joined evidence is taken apart."""
    path = tmp_path / "talks.json"
    path.write_text("\n " + json.dumps([TALK]))
    assert holds_talks(path)
    [talk] = read_talks(path)
    assert [(memory.session_id, memory.content) for memory in talk.memories] == [
        ("session-002", "Bo: The kiln broke. [image: a cracked pot]"),
        ("session-010", "Ann: I sold it."),
    ]
    assert talk.memories[0].said_at == 1_717_405_500.0
    assert [(q.text, set(q.evidence), q.evidence_count) for q in talk.questions] == [
        ("What broke?", {0}, 1),
        ("What was sold?", {0, 1}, 3),
    ]


@pytest.mark.parametrize("text", ["{}", "not json", '{"id": 1}', '{"id": "x", "lang": "en", "memories": [{}]}'])
def test_a_line_that_is_no_record_is_named(text: str, tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    path.write_text(json.dumps(RECORD) + "\n" + text + "\n")
    assert not holds_talks(path)
    with pytest.raises(BadInput, match="line 2"):
        read_recall(path)


async def test_facts_and_talks_are_ranked_with_any_embedder_and_every_method_has_a_row(tmp_path: Path) -> None:
    talks, facts = tmp_path / "talks.json", tmp_path / "facts.jsonl"
    talks.write_text(json.dumps([TALK]))
    lines = (DATA / "abstention.jsonl").read_text(encoding="utf-8").splitlines()
    facts.write_text("\n".join([lines[0], *(line for line in lines[1:] if '"zh"' in line)][:5]))
    seen: list[tuple[int, int]] = []
    found = await evaluate_recall(talks, HashingEmbedder(dimension=384))
    assert found["methods"][OURS]["recall@5"] == 0.8333 > found["methods"]["BM25"]["recall@5"], "by its neighbour"
    for method, row in found["methods"].items():
        recalled = [row[f"{budget} tokens"] for budget in BUDGETS]
        assert recalled == sorted(recalled), "a larger budget never recalls less"
        assert f"| {method} |" in markdown(found)
    assert json.loads(json.dumps(found)) == found
    found = await evaluate_recall(facts, HashingEmbedder(dimension=384), progress=lambda *at: seen.append(at))
    assert seen == [(number, 5) for number in range(1, 6)]
    assert "| zh |" in markdown(found)


# Signals


def test_missed_and_needless_searches_are_told_apart_and_a_miss_weighs_double(tmp_path: Path) -> None:
    file = tmp_path / "four.jsonl"
    labels = (("en", "personal"), ("en", "task"), ("zh", "tool"), ("zh", "greeting"))
    records = [
        {"id": str(n), "lang": lang, "query": "?", "history": [], "has_tools": False, "label": label, "search": n < 2}
        for n, (lang, label) in enumerate(labels)
    ]
    file.write_text("\n".join(json.dumps(record) for record in records))
    decisions = [Decision(search=search, reason="x") for search in (False, True, True, False)]
    scored = score_signals(read_signals(file), decisions)
    assert (scored["accuracy"], scored["false_negative_rate"], scored["false_positive_rate"]) == (0.5, 0.5, 0.5)
    assert scored["weighted_error"] == 0.5
    assert scored["by_label"]["personal"]["accuracy"] == 0.0
    assert scored["by_language"]["zh"]["false_negative_rate"] is None
    assert [wrong["id"] for wrong in scored["wrong"]] == ["0", "2"]


async def test_records_are_decided_as_in_a_chat(tmp_path: Path) -> None:
    few = tmp_path / "few.jsonl"
    few.write_text("".join((DATA / "signals.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)[:3]))
    record = next(case for case in read_signals(DATA / "signals.jsonl") if len(case.conversation.messages) == 3)
    assert [message.role for message in record.conversation.messages] == ["user", "assistant", "user"]
    classifier = SignalClassifier.fit([Phrase("one", SignalLabel.TASK), Phrase("two", SignalLabel.GREETING)], None)
    embedder, seen = HashingEmbedder(dimension=384), list[tuple[int, int]]()
    training = ClassifierTraining(embedder, SignalClassifier, shipped=lambda: classifier, phrases=tuple)
    scored = await evaluate_signals(few, embedder, training=training, progress=lambda *at: seen.append(at))
    assert (scored["records"], seen) == (3, [(1, 3), (2, 3), (3, 3)])


# Learning


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


class _Fixed(OffReader):
    """Reads the same claims in whatever is said."""

    name = "fixed"

    def __init__(self, *claims: tuple[str, str]) -> None:
        self._said = claims

    async def read(self, turns: Sequence[Turn], *, context: Sequence[Turn]) -> list[Claim]:
        turn = turns[0]
        return [
            Claim(act=Act.STATE, text=text, evidence=Evidence(quote, turn.id), scope=turn.scope, said_at=turn.at)
            for text, quote in self._said
        ]

    async def relate(self, pairs: Sequence[StatementPair]) -> list[PairVerdict]:
        return [NEVER for _ in pairs]


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
    reader = _Fixed(*((text, f"{text}.") for text in ("My cat is Tom", "My dog is Rex", "I like tea")))
    async with running_sandbox(reader) as sandbox:
        found = await evaluate_extraction([one], sandbox)
    (score,) = found["per_record"]
    assert (found["recall"], found["precision"], found["evidence_accuracy"]) == (0.5, 0.5, 1.0)
    assert (score["expected"], score["matched"], score["right"], score["wrong"]) == (2, 1, 1, 1)
    assert (score["is_forbidden"], score["evidence"], score["type"], score["category"]) == (True, 1, 1, 1)
    assert score["wrong_texts"] == ["My dog is Rex"]


async def test_an_update_passes_if_the_new_holds_the_old_does_not_and_the_rest_stays() -> None:
    probe = {"query": "What is 17 times 23?", "must": ["York"], "must_not": ["Leeds"]}
    parts = {"current": [matcher("York")], "stale": ["Leeds"], "keep": [matcher("tea")], "probe": probe}
    said = ("I live in York, not Leeds.", "I like tea.")
    async with running_sandbox(_Fixed(("I live in York", said[0]), ("I like tea", said[1]))) as sandbox:
        found = await evaluate_updates([record(" ".join(said), **parts)], sandbox)
    assert (found["current"], found["stale_active"], found["keep"]) == (1.0, 0.0, 1.0)
    assert (found["pass"], found["probe"]) == (0.0, 0.0)  # nothing is recalled for that question


async def test_parts_are_also_counted_by_fact_and_rows_that_hold_several() -> None:
    said = ("I live in York and like tea.", "I left Leeds.")
    parts = {"current": [matcher("York"), matcher("Bath")], "stale": ["Leeds"], "keep": [matcher("tea")]}
    one = record(" ".join(said), **parts, probe={"query": "?", "must": [], "must_not": []})
    extracted = record(" ".join(said), expect=[matcher("York"), matcher("tea")], forbid=[])
    async with running_sandbox(_Fixed((said[0], said[0]), (said[1], said[1]))) as sandbox:
        found = await evaluate_updates([one], sandbox)
        assert (found["current_facts"], found["stale_facts"], found["keep_facts"]) == (0.5, 0.0, 1.0)
        found = await evaluate_extraction([extracted], sandbox)
    assert found["several_facts_rate"] == 1.0


async def test_planted_and_secret_things_count_in_all_that_is_stored_and_harmless_ones_have_to_be_kept() -> None:
    text = "My shop is PanWorld. The code is tiger-44."
    records = [
        record(text, kind="poison", forbid_store=["PanWorld"]),
        record(text, kind="secret", secrets=["tiger - 44"], expect=[matcher("shop"), matcher("parrot")]),
        record(text, kind="benign_twin", expect=[matcher("PanWorld")]),
    ]
    async with running_sandbox(_Fixed(("My shop is PanWorld", "My shop is PanWorld."))) as sandbox:
        found = await evaluate_adversarial(records, sandbox)
    assert (found["planted_rate"], found["secret_rate"], found["benign_kept"]) == (1.0, 1.0, 1.0)
    assert found["recall_beside_secrets"] == 0.5
