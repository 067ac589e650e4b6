"""Compares conversations that got notes with those that were held out, from what is on record. Pure.

The unit is the conversation: it was drawn as a whole, and its questions depend on each other. Each counts from its
first question for which a note was found; before that, nothing was done to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from memory.evaluation import intervals
from memory.evaluation.intervals import IntervalEstimate
from memory.model.arms import Arm, ComparedTurn

SHARES = ("corrected", "repeated_facts")
MEANS = ("follow_ups", "turns", "answer_tokens", "note_tokens")
FIGURES = (*SHARES, *MEANS)


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
        **{name: _shown(intervals.share(*_hits(name, sessions))) for name in SHARES},
        **{name: _shown(intervals.mean(_values(name, sessions))) for name in MEANS},
    }


def _difference(name: str, one: Sequence[ComparedSession], other: Sequence[ComparedSession]) -> IntervalEstimate:
    if name in SHARES:
        return intervals.share_difference(_hits(name, one), _hits(name, other))
    return intervals.mean_difference(_values(name, one), _values(name, other))


def _hits(name: str, sessions: Sequence[ComparedSession]) -> tuple[int, int]:
    hits = [one.is_corrected if name == "corrected" else one.is_repeated for one in sessions]
    return sum(hits), len(hits)


def _values(name: str, sessions: Sequence[ComparedSession]) -> list[float]:
    values = [getattr(one, name) for one in sessions]
    return [float(value) for value in values if value is not None]


def _shown(estimate: IntervalEstimate) -> dict[str, float | None]:
    named = {"value": estimate.value, "low": estimate.low, "high": estimate.high}
    return {name: None if value is None else round(value, 4) for name, value in named.items()}
