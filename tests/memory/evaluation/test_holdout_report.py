"""The report on held-out conversations, from turns whose figures can be counted by hand."""

from __future__ import annotations

from memory.evaluation.holdout import compared_session, holdout_report
from memory.model.arms import Arm, ComparedTurn


def turn(session: str, at: float, arm: Arm | None = None, **fields: float) -> ComparedTurn:
    return ComparedTurn(session, at, arm, **fields)  # type: ignore[arg-type]


NOTED = [
    turn("a", 1, corrections=1),  # before anything was done to the conversation
    turn("a", 2, Arm.NOTED, note_tokens=40, answer_tokens=10.0),
    turn("a", 3, answer_tokens=30.0, repeated_facts=2),
    turn("b", 1, Arm.NOTED, note_tokens=20),
]
HELD_OUT = [
    turn("c", 1, Arm.HELD_OUT, note_tokens=30, answer_tokens=100.0, corrections=1),
    turn("c", 2, Arm.HELD_OUT, note_tokens=50, answer_tokens=200.0, corrections=1),
    turn("c", 3, corrections=3),
]
MIXED = [turn("d", 1, Arm.NOTED), turn("d", 2, Arm.HELD_OUT)]
UNTOUCHED = [turn("e", 1, corrections=1, answer_tokens=5.0)]


def test_each_arm_has_its_own_conversations_and_those_of_neither_are_left_out() -> None:
    report = holdout_report([*NOTED, *HELD_OUT, *MIXED, *UNTOUCHED])
    assert (report["noted"]["conversations"], report["noted"]["questions"]) == (2, 2)
    assert (report["held_out"]["conversations"], report["held_out"]["questions"]) == (1, 2)
    assert report["mixed"] == 1
    values = {
        arm: {name: one["value"] for name, one in report[arm].items() if isinstance(one, dict)}
        for arm in report
        if arm != "mixed"
    }
    assert values["noted"] == {
        "corrected": 0.0,
        "repeated_facts": 0.5,
        "follow_ups": 0.5,
        "turns": 2.0,
        "answer_tokens": 20.0,
        "note_tokens": 30.0,
    }
    assert values["held_out"] == {
        "corrected": 1.0,
        "repeated_facts": 0.0,
        "follow_ups": 2.0,
        "turns": 3.0,
        "answer_tokens": 150.0,
        "note_tokens": 40.0,
    }
    assert values["difference"]["corrected"] == 1.0
    assert values["difference"]["follow_ups"] == 1.5


def test_a_correction_counts_only_after_the_first_question_with_an_arm() -> None:
    first_only = compared_session([turn("a", 2, Arm.NOTED, corrections=1), turn("a", 1, corrections=1)])
    assert first_only is not None
    assert not first_only.is_corrected
    later = compared_session([turn("a", 1, Arm.NOTED), turn("a", 2, corrections=1)])
    assert later is not None
    assert later.is_corrected


def test_an_empty_record_has_no_figures() -> None:
    report = holdout_report([])
    assert report["noted"]["conversations"] == report["held_out"]["conversations"] == report["mixed"] == 0
    assert report["difference"]["corrected"] == {"value": None, "low": None, "high": None}
