"""A receipt: what was decided for one request, put together from what the stages found, and cut to a bounded size.

Pure. Ids and scores go in, never a memory's text; the query is the one thing in it that somebody said.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np

from memory.model import Candidate, CarriedNote, Placement, RecallStatus, Receipt, Verdict, Weighed
from memory.recall.notes.past_notes import NotePlan

CANDIDATES_MAX = 30  # and whatever was injected from further down; each costs 4 µs and 150 bytes
PARTS_MAX = 32  # of one score; the ranking has about ten
SIGNALS_MAX = 32
QUERY_CHARACTERS_MAX = 2_000  # as long as a query gets
DIGITS, MILLISECOND_DIGITS = 6, 3  # that are kept of scores and of times


@dataclass(frozen=True, slots=True)
class Answered:
    """Whose request it was, when it came (Unix seconds), and what memory did for it."""

    receipt_id: str
    user_id: str
    at: float
    status: RecallStatus
    reason: str


@dataclass(frozen=True, slots=True)
class Findings:
    """What the stages found, as far as they came.

    `signals`: names to plain values (text, number, truth, or a mapping of names to numbers). `candidates`: all that
    were ranked, best first. `cuts`: why the ranking left some of them out, by memory id.
    """

    signals: Mapping[str, Any] = field(default_factory=dict)
    query: str = ""
    candidates: Sequence[Candidate] = ()
    cuts: Mapping[str, Verdict] = field(default_factory=dict)
    timings_ms: Mapping[str, float] = field(default_factory=dict)


def receipt_of(
    answered: Answered, found: Findings, *, plan: NotePlan | None = None, placement: Placement = Placement.OFF
) -> Receipt:
    """What is placed nowhere was not injected, whatever was planned."""
    placed = None if placement is Placement.OFF else plan
    weighed = _weighed(found.candidates, found.cuts, placed)
    return Receipt(
        id=answered.receipt_id,
        user_id=answered.user_id,
        at=answered.at,
        status=answered.status,
        reason=answered.reason,
        signals=dict(list(found.signals.items())[:SIGNALS_MAX]),
        query=_readable(found.query[:QUERY_CHARACTERS_MAX]),
        candidates=weighed,
        left_out=len(found.candidates) - len(weighed),
        notes=_carried(placed, placement),
        timings_ms={stage: _rounded(value) for stage, value in found.timings_ms.items()},
    )


def _weighed(
    candidates: Sequence[Candidate], cuts: Mapping[str, Verdict], plan: NotePlan | None
) -> tuple[Weighed, ...]:
    fresh = set(plan.fresh.memory_ids) if plan is not None and plan.fresh is not None else set()
    told = set(plan.memory_ids()) - fresh if plan is not None else set()

    def verdict(memory_id: str) -> Verdict:
        if memory_id in fresh:
            return Verdict.INJECTED
        return Verdict.ALREADY_TOLD if memory_id in told else cuts.get(memory_id, Verdict.NOT_CHOSEN)

    told_of = list(candidates[:CANDIDATES_MAX])
    if fresh - {candidate.memory.id for candidate in told_of}:  # seldom: then the others are worth looking at
        told_of += [candidate for candidate in candidates[CANDIDATES_MAX:] if candidate.memory.id in fresh]
    parts = [dict(islice(candidate.parts.items(), PARTS_MAX)) for candidate in told_of]
    scores = _all_rounded([candidate.score for candidate in told_of])
    values = iter(_all_rounded([value for each in parts for value in each.values()]))
    return tuple(
        Weighed(
            memory_id=candidate.memory.id,
            score=score,
            parts=dict(zip(each, values, strict=False)),
            verdict=verdict(candidate.memory.id),
        )
        for candidate, score, each in zip(told_of, scores, parts, strict=True)
    )


def _carried(plan: NotePlan | None, placement: Placement) -> tuple[CarriedNote, ...]:
    if plan is None:
        return ()
    return tuple(
        CarriedNote(
            before=None if placement is Placement.SYSTEM else index,
            memory_ids=note.memory_ids,
            tokens=note.tokens,
            is_new=note is plan.fresh,
        )
        for index, note in sorted(plan.notes.items())
    )


def _rounded(milliseconds: float) -> float:
    return round(float(milliseconds), MILLISECOND_DIGITS) if math.isfinite(milliseconds) else 0.0


def _all_rounded(values: Sequence[float]) -> list[float]:
    """Plain floats, all at once, since a receipt has some 300 of them; what no JSON can say becomes 0."""
    plain = np.fromiter(values, dtype=np.float64, count=len(values))
    rounded: list[float] = np.round(np.where(np.isfinite(plain), plain, 0.0), DIGITS).tolist()
    return rounded


def _readable(text: str) -> str:
    """Without halves of surrogate pairs, which no UTF-8 can say."""
    return text.encode(errors="replace").decode()
