"""Confidence intervals of 95 % for shares and means, without assumptions about how values are distributed. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

Z = 1.959964  # of the normal distribution, for 95 %
RESAMPLES = 2_000
SEED = 20_250_101  # fixed: the same record gives the same report
RESAMPLED_AT_ONCE = 2_000_000  # drawn values in memory


@dataclass(frozen=True, slots=True)
class IntervalEstimate:
    """A value with its interval; all None if there is nothing to estimate from."""

    value: float | None = None
    low: float | None = None
    high: float | None = None


def share(hits: int, total: int) -> IntervalEstimate:
    """By Wilson, which holds for few cases, and for shares near 0 and 1."""
    if total == 0:
        return IntervalEstimate()
    observed, square = hits / total, Z * Z / total
    centre = (observed + square / 2) / (1 + square)
    half = Z / (1 + square) * math.sqrt(observed * (1 - observed) / total + square / (4 * total))
    return IntervalEstimate(observed, max(0.0, centre - half), min(1.0, centre + half))


def share_difference(one: tuple[int, int], other: tuple[int, int]) -> IntervalEstimate:
    """The share of `one` minus that of `other`, each `(hits, total)`: by Newcombe, from both Wilson intervals."""
    first, second = share(*one), share(*other)
    if first.value is None or second.value is None:
        return IntervalEstimate()
    assert first.low is not None
    assert first.high is not None
    assert second.low is not None
    assert second.high is not None
    difference = first.value - second.value
    low = difference - math.hypot(first.value - first.low, second.high - second.value)
    high = difference + math.hypot(first.high - first.value, second.value - second.low)
    return IntervalEstimate(difference, low, high)


def mean(values: Sequence[float]) -> IntervalEstimate:
    """By bootstrap; a single value has no interval."""
    if not values:
        return IntervalEstimate()
    if len(values) == 1:
        return IntervalEstimate(float(values[0]))
    low, high = np.percentile(_resampled_means(values, seed=SEED), (2.5, 97.5))
    return IntervalEstimate(float(np.mean(values)), float(low), float(high))


def mean_difference(one: Sequence[float], other: Sequence[float]) -> IntervalEstimate:
    """The mean of `one` minus that of `other`, by bootstrap."""
    if not one or not other:
        return IntervalEstimate()
    difference = float(np.mean(one) - np.mean(other))
    if min(len(one), len(other)) == 1:
        return IntervalEstimate(difference)
    drawn = _resampled_means(one, seed=SEED) - _resampled_means(other, seed=SEED + 1)
    low, high = np.percentile(drawn, (2.5, 97.5))
    return IntervalEstimate(difference, float(low), float(high))


def _resampled_means(values: Sequence[float], *, seed: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    given, drawing = np.asarray(values, dtype=np.float64), np.random.default_rng(seed)
    at_once = max(1, RESAMPLED_AT_ONCE // len(given))
    means = [
        drawing.choice(given, size=(min(at_once, RESAMPLES - begun), len(given))).mean(axis=1)
        for begun in range(0, RESAMPLES, at_once)
    ]
    return np.concatenate(means)
