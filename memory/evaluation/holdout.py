"""Compares conversations that got notes with those that were held out, from what is on record. Pure.

The unit is the conversation: it was drawn as a whole, and its questions depend on each other. Each counts from its
first question for which a note was found; before that, nothing was done to it.

Intervals are of 95 %, without assumptions about how values are distributed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from memory.model.arms import Arm, ComparedTurn

SHARES = ("corrected", "repeated_facts")
MEANS = ("follow_ups", "turns", "answer_tokens", "note_tokens")
FIGURES = (*SHARES, *MEANS)
Z = 1.959964  # of the normal distribution, for 95 %
RESAMPLES = 2_000
SEED = 20_250_101  # fixed: the same record gives the same report
RESAMPLED_AT_ONCE = 2_000_000  # drawn values in memory


@dataclass(frozen=True, slots=True)
class ComparedSession:
    """One conversation from its first question with an arm; `turns` counts all of it.

    `answer_tokens`: mean per answer, None without answers. `note_tokens`: mean per note, whether it was sent or not.
    """

    arm: Arm
    questions: int
    turns: int
    follow_ups: int
    is_corrected: bool
    is_repeated: bool
    answer_tokens: float | None
    note_tokens: float


def holdout_report(turns: Iterable[ComparedTurn]) -> dict[str, Any]:
    """Counts and figures of both arms, and the difference: held out minus noted.

    A conversation with questions of both arms, as after a change of salt or share, belongs to neither (`mixed`).
    """
    by_session: dict[str, list[ComparedTurn]] = {}
    for turn in turns:
        by_session.setdefault(turn.session, []).append(turn)
    of_arms = [found for found in by_session.values() if any(turn.arm is not None for turn in found)]
    compared = [session for found in of_arms if (session := compared_session(found)) is not None]
    noted, held_out = ([one for one in compared if one.arm is arm] for arm in (Arm.NOTED, Arm.HELD_OUT))
    return {
        "noted": _of_arm(noted),
        "held_out": _of_arm(held_out),
        "difference": {name: _shown(_difference(name, held_out, noted)) for name in FIGURES},
        "mixed": len(of_arms) - len(compared),
    }


def compared_session(turns: Sequence[ComparedTurn]) -> ComparedSession | None:
    """A session with an arm; None if it has both."""
    ordered = sorted(turns, key=lambda turn: turn.at)
    first = next(index for index, turn in enumerate(ordered) if turn.arm is not None)
    arm, since, later = ordered[first].arm, ordered[first:], ordered[first + 1 :]
    asked = [turn for turn in since if turn.arm is not None]
    if arm is None or any(turn.arm is not arm for turn in asked):
        return None
    answers = [turn.answer_tokens for turn in since if turn.answer_tokens is not None]
    return ComparedSession(
        arm=arm,
        questions=len(asked),
        turns=len(ordered),
        follow_ups=len(later),
        is_corrected=any(turn.corrections for turn in later),
        is_repeated=any(turn.repeated_facts for turn in later),
        answer_tokens=sum(answers) / len(answers) if answers else None,
        note_tokens=sum(turn.note_tokens for turn in asked) / len(asked),
    )


def _of_arm(sessions: Sequence[ComparedSession]) -> dict[str, Any]:
    return {
        "conversations": len(sessions),
        "questions": sum(one.questions for one in sessions),
        **{name: _shown(share(*_hits(name, sessions))) for name in SHARES},
        **{name: _shown(mean(_values(name, sessions))) for name in MEANS},
    }


def _difference(name: str, one: Sequence[ComparedSession], other: Sequence[ComparedSession]) -> IntervalEstimate:
    if name in SHARES:
        return share_difference(_hits(name, one), _hits(name, other))
    return mean_difference(_values(name, one), _values(name, other))


def _hits(name: str, sessions: Sequence[ComparedSession]) -> tuple[int, int]:
    hits = [one.is_corrected if name == "corrected" else one.is_repeated for one in sessions]
    return sum(hits), len(hits)


def _values(name: str, sessions: Sequence[ComparedSession]) -> list[float]:
    values = [getattr(one, name) for one in sessions]
    return [float(value) for value in values if value is not None]


def _shown(estimate: IntervalEstimate) -> dict[str, float | None]:
    return {name: None if value is None else round(value, 4) for name, value in asdict(estimate).items()}


# Estimates with their intervals


@dataclass(frozen=True, slots=True)
class IntervalEstimate:
    """A value with its interval; all None if there is nothing to estimate from."""

    value: float | None = None
    low: float | None = None
    high: float | None = None


def share(hits: int, total: int) -> IntervalEstimate:
    return IntervalEstimate(*_wilson(hits, total)) if total else IntervalEstimate()


def share_difference(one: tuple[int, int], other: tuple[int, int]) -> IntervalEstimate:
    """The share of `one` minus that of `other`, each `(hits, total)`: by Newcombe, from both Wilson intervals."""
    if not (one[1] and other[1]):
        return IntervalEstimate()
    (first, first_low, first_high), (second, second_low, second_high) = _wilson(*one), _wilson(*other)
    low = first - second - math.hypot(first - first_low, second_high - second)
    high = first - second + math.hypot(first_high - first, second - second_low)
    return IntervalEstimate(first - second, low, high)


def _wilson(hits: int, total: int) -> tuple[float, float, float]:
    """The share with its interval, by Wilson, which holds for few cases, and for shares near 0 and 1."""
    observed, square = hits / total, Z * Z / total
    centre = (observed + square / 2) / (1 + square)
    half = Z / (1 + square) * math.sqrt(observed * (1 - observed) / total + square / (4 * total))
    return observed, max(0.0, centre - half), min(1.0, centre + half)


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
