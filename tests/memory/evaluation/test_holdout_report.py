"""The report on held-out conversations, from turns whose figures can be counted by hand, and its intervals."""

from __future__ import annotations

import numpy as np
import pytest

from memory.evaluation.holdout import (
    FIGURES,
    IntervalEstimate,
    compared_session,
    holdout_report,
    mean,
    mean_difference,
    share,
    share_difference,
)
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
    assert FIGURES == ("corrected", "repeated_facts", "follow_ups", "turns", "answer_tokens", "note_tokens")
    assert [report["noted"][name]["value"] for name in FIGURES] == [0.0, 0.5, 0.5, 2.0, 20.0, 30.0]
    assert [report["held_out"][name]["value"] for name in FIGURES] == [1.0, 0.0, 2.0, 3.0, 150.0, 40.0]
    assert [report["difference"][name]["value"] for name in FIGURES] == [1.0, -0.5, 1.5, 1.0, 130.0, 10.0]
    empty = holdout_report([])
    assert empty["noted"]["conversations"] == empty["held_out"]["conversations"] == empty["mixed"] == 0
    assert empty["difference"]["corrected"] == {"value": None, "low": None, "high": None}


@pytest.mark.parametrize(("noted_at", "is_corrected"), [(2, False), (1, True)])
def test_a_correction_counts_only_after_the_first_question_with_an_arm(noted_at: float, *, is_corrected: bool) -> None:
    found = compared_session([turn("a", noted_at, Arm.NOTED, corrections=1), turn("a", 3 - noted_at, corrections=1)])
    assert found is not None
    assert found.is_corrected is is_corrected


@pytest.mark.parametrize(
    ("hits", "total", "low", "high"),
    [
        (81, 263, 0.2553, 0.3662),  # Newcombe 1998, table I, method 3
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
        (20, 20, 0.8389, 1.0),
    ],
)
def test_a_share_has_the_interval_of_wilson(hits: int, total: int, low: float, high: float) -> None:
    found = share(hits, total)
    assert found.value == hits / total
    assert (found.low, found.high) == pytest.approx((low, high), abs=5e-5)


@pytest.mark.parametrize(
    ("one", "other", "low", "high"),
    [
        ((56, 70), (48, 80), 0.0524, 0.3339),  # Newcombe 1998 on differences, table II, method 10
        ((9, 10), (3, 10), 0.1705, 0.8090),
        ((5, 56), (0, 29), -0.0381, 0.1926),
        ((0, 10), (0, 20), -0.1611, 0.2775),
    ],
)
def test_a_difference_of_shares_has_the_interval_of_newcombe(
    one: tuple[int, int], other: tuple[int, int], low: float, high: float
) -> None:
    found = share_difference(one, other)
    assert found.value == pytest.approx(one[0] / one[1] - other[0] / other[1])
    assert (found.low, found.high) == pytest.approx((low, high), abs=5e-5)


def test_nothing_has_no_estimate_and_one_value_no_interval() -> None:
    for nothing in (share(0, 0), mean([]), mean_difference([], [1.0]), share_difference((0, 0), (1, 2))):
        assert nothing == IntervalEstimate()
    assert mean([3.0]) == IntervalEstimate(3.0)
    assert mean_difference([3.0], [1.0, 2.0]) == IntervalEstimate(1.5)


def test_equal_arms_differ_by_nothing_and_a_clear_difference_is_seen() -> None:
    drawing = np.random.default_rng(7)
    one, other = drawing.normal(5, 1, 300).tolist(), drawing.normal(5, 1, 300).tolist()
    same, more = mean_difference(one, other), mean_difference([value + 1 for value in one], other)
    assert (same.low or 0) < 0 < (same.high or 0)
    assert (more.low or 0) > 0
    estimate, of_a_normal_one = mean(one), 2 * 1.96 * np.std(one) / np.sqrt(300)
    assert (estimate.high or 0) - (estimate.low or 0) == pytest.approx(of_a_normal_one, rel=0.2)
    assert estimate == mean(one), "the same record gives the same report"
