"""Intervals against published values, and against what they promise: to hold the truth in 95 of 100 cases."""

from __future__ import annotations

import numpy as np
import pytest

from memory.evaluation.intervals import IntervalEstimate, mean, mean_difference, share, share_difference


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
    assert (found.low, found.high) == (pytest.approx(low, abs=5e-5), pytest.approx(high, abs=5e-5))


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
    assert (found.low, found.high) == (pytest.approx(low, abs=5e-5), pytest.approx(high, abs=5e-5))


def test_nothing_has_no_estimate_and_one_value_no_interval() -> None:
    assert (
        share(0, 0) == mean([]) == mean_difference([], [1.0]) == share_difference((0, 0), (1, 2)) == IntervalEstimate()
    )
    assert mean([3.0]) == IntervalEstimate(3.0)
    assert mean_difference([3.0], [1.0, 2.0]) == IntervalEstimate(1.5)


def test_the_interval_of_a_mean_holds_the_truth_in_about_95_of_100_cases() -> None:
    drawing = np.random.default_rng(7)
    held = 0
    for _ in range(200):
        found = mean(drawing.exponential(10.0, size=60).tolist())
        assert found.low is not None
        assert found.high is not None
        held += found.low <= 10.0 <= found.high
    assert 0.88 <= held / 200 <= 0.99


def test_equal_arms_differ_by_nothing_and_a_clear_difference_is_seen() -> None:
    drawing = np.random.default_rng(7)
    one, other = drawing.normal(5, 1, 300).tolist(), drawing.normal(5, 1, 300).tolist()
    same = mean_difference(one, other)
    assert same.low is not None
    assert same.high is not None
    assert same.low < 0 < same.high
    more = mean_difference([value + 1 for value in one], other)
    assert more.low is not None
    assert more.low > 0
    assert mean(one) == mean(one), "the same record gives the same report"
