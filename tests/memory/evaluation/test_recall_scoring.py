"""The counting rules of recall, on numbers small enough to check by hand, and the reading of both formats."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from memory.errors import BadInput
from memory.evaluation.dataset import RecallCase, TalkQuestion, holds_talks, read_recall, read_talks
from memory.evaluation.score import evidence_recall, figures, grouped, score_case, within_budget

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


def test_acceptable_memories_are_left_out_of_every_count(case: Case) -> None:
    score = score_case(case(), [2, 0, 3])
    assert score.recall == {3: 0.5, 5: 0.5, 8: 0.5}
    assert score.precision == 0.5
    assert score.reciprocal_rank == 1.0


def test_recall_at_k_divides_by_what_k_places_can_hold(case: Case) -> None:
    score = score_case(case(relevant=[0, 1, 3, 5], acceptable=[]), [0, 1, 2, 3])
    assert score.recall == {3: 2 / 3, 5: 3 / 4, 8: 3 / 4}


def test_a_record_that_returns_nothing_has_no_precision_to_show(case: Case) -> None:
    score = score_case(case(), [])
    assert (score.precision, score.reciprocal_rank) == (0.0, 0.0)
    assert score.abstained is None


def test_abstention_counts_only_where_nothing_is_relevant(case: Case) -> None:
    nothing = case(relevant=[], acceptable=[2])
    assert score_case(nothing, []).abstained is True
    assert score_case(nothing, [2]).abstained is True
    assert score_case(nothing, [3]).abstained is False
    assert score_case(nothing, [3]).recall is None


def test_a_superseded_memory_leaks_unless_it_is_listed(case: Case) -> None:
    assert score_case(case(), [0, 4]).leaked_superseded
    assert not score_case(case(relevant=[4]), [4]).leaked_superseded
    assert not score_case(case(acceptable=[4]), [4]).leaked_superseded
    assert score_case(case(relevant=[]), [4]).leaked_superseded


def test_figures_are_means_over_the_records_that_they_apply_to(case: Case) -> None:
    good, bad, silent = case(), case(lang="zh"), case(relevant=[], lang="zh")
    pairs = [(good, score_case(good, [0, 1])), (bad, score_case(bad, [3])), (silent, score_case(silent, []))]
    every = figures([score for _, score in pairs])
    assert every["recall@5"] == 0.5
    assert every["precision"] == 0.5
    assert every["abstention"] == 1.0
    assert every["superseded_leak"] == 0.0
    by_language = grouped(pairs, lambda one: one.language)
    assert by_language["en"]["recall@5"] == 1.0
    assert by_language["en"]["abstention"] is None
    assert by_language["zh"]["records"] == 2


def test_evidence_that_the_talk_does_not_hold_counts_against_recall() -> None:
    question = TalkQuestion("?", evidence=frozenset({1, 2}), evidence_count=4, category=1)
    assert evidence_recall(question, [1, 2, 3]) == 0.5


def test_a_budget_passes_over_what_does_not_fit() -> None:
    assert within_budget([0, 1, 2], ["a" * 42, "b" * 420, "c" * 42], budget=20) == [0, 2]


def test_talks_are_read_in_the_order_of_their_sessions_with_one_memory_per_turn(tmp_path: Path) -> None:
    path = tmp_path / "talks.json"
    path.write_text(json.dumps([TALK]))
    [talk] = read_talks(path)
    assert [memory.content for memory in talk.memories] == [
        "Bo: The kiln broke. [image: a cracked pot]",
        "Ann: I sold it.",
    ]
    assert talk.memories[0].said_at == 1_717_405_500.0
    assert [memory.session_id for memory in talk.memories] == ["session-002", "session-010"]


def test_questions_without_answer_or_evidence_are_left_out_and_joined_evidence_is_taken_apart(tmp_path: Path) -> None:
    path = tmp_path / "talks.json"
    path.write_text(json.dumps([TALK]))
    [talk] = read_talks(path)
    assert [(q.text, set(q.evidence), q.evidence_count) for q in talk.questions] == [
        ("What broke?", {0}, 1),
        ("What was sold?", {0, 1}, 3),
    ]


def test_the_two_formats_are_told_apart_by_their_first_character(tmp_path: Path) -> None:
    talks, facts = tmp_path / "a", tmp_path / "b"
    talks.write_text("\n [" + json.dumps(TALK) + "]")
    facts.write_text(json.dumps(RECORD))
    assert holds_talks(talks)
    assert not holds_talks(facts)


@pytest.mark.parametrize("text", ["{}", "not json", '{"id": 1}', '{"id": "x", "lang": "en", "memories": [{}]}'])
def test_a_line_that_is_no_record_is_named(text: str, tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    path.write_text(json.dumps(RECORD) + "\n" + text + "\n")
    with pytest.raises(BadInput, match="line 2"):
        read_recall(path)


def test_a_list_that_is_no_talk_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "talks.json"
    path.write_text('[{"sample_id": "x"}]')
    with pytest.raises(BadInput, match="LoCoMo"):
        read_talks(path)
