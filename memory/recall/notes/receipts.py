"""Builds the receipt of one request from what the stages found, limited in size.

Pure. Of what was not shown to the model only the score and the reason are kept. It holds ids and scores, never a
memory's text; the query is the only text of a user in it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np

from memory.model import Candidate, CandidateVerdict, CarriedNote, Placement, RecallStatus, Receipt, ReceiptCandidate
from memory.recall.notes.past_notes import NotePlan

CANDIDATES_MAX = 30  # plus memories that were injected from further down
EXPLAINED = (CandidateVerdict.INJECTED, CandidateVerdict.WITHHELD)  # whose score is kept with its parts
PARTS_MAX = 32  # of one score; the ranking has about ten
SIGNALS_MAX = 32
QUERY_CHARACTERS_MAX = 2_000  # the longest query
DIGITS, MILLISECOND_DIGITS = 6, 3  # digits kept of scores and of times


@dataclass(frozen=True, slots=True)
class Answered:
    """The request's user and project, its time (Unix seconds), and the outcome of recall."""

    receipt_id: str
    user_id: str
    at: float
    status: RecallStatus
    reason: str
    project_id: str = ""


@dataclass(frozen=True, slots=True)
class Findings:
    """What the stages found, as far as they got.

    `signals`: names to plain values (text, numbers, booleans, or a mapping of names to numbers). `candidates`: all
    ranked memories, best first. `cuts`: why the ranking left some of them out, by memory id.
    """

    signals: Mapping[str, Any] = field(default_factory=dict)
    query: str = ""
    candidates: Sequence[Candidate] = ()
    cuts: Mapping[str, CandidateVerdict] = field(default_factory=dict)
    timings_ms: Mapping[str, float] = field(default_factory=dict)


def receipt_of(
    answered: Answered, found: Findings, *, plan: NotePlan | None = None, placement: Placement = Placement.OFF
) -> Receipt:
    """The receipt. Memories that were not placed count as not injected, whatever was planned."""
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
        project_id=answered.project_id,
    )


def _weighed(
    candidates: Sequence[Candidate], cuts: Mapping[str, CandidateVerdict], plan: NotePlan | None
) -> tuple[ReceiptCandidate, ...]:
    in_profile: set[str] = set()
    if plan is not None and plan.profile is not None:
        in_profile = set(plan.profile.memory_ids) - set(plan.found_ids)
    fresh = set(plan.fresh.memory_ids) - in_profile if plan is not None and plan.fresh is not None else set()
    in_notes = set(plan.memory_ids()) - fresh if plan is not None else set()

    def verdict(memory_id: str) -> CandidateVerdict:
        if memory_id in fresh:
            return CandidateVerdict.INJECTED
        if memory_id in in_profile:
            return CandidateVerdict.IN_PROFILE
        return (
            CandidateVerdict.ALREADY_TOLD if memory_id in in_notes else cuts.get(memory_id, CandidateVerdict.NOT_CHOSEN)
        )

    shown = list(candidates[:CANDIDATES_MAX])
    if fresh - {candidate.memory.id for candidate in shown}:  # rare: only then are the other candidates worth a look
        shown += [candidate for candidate in candidates[CANDIDATES_MAX:] if candidate.memory.id in fresh]
    verdicts = [verdict(candidate.memory.id) for candidate in shown]
    parts = [
        dict(islice(candidate.parts.items(), PARTS_MAX)) if of in EXPLAINED else {}
        for candidate, of in zip(shown, verdicts, strict=True)
    ]
    scores = _all_rounded([candidate.score for candidate in shown])
    values = iter(_all_rounded([value for each in parts for value in each.values()]))
    return tuple(
        ReceiptCandidate(
            memory_id=candidate.memory.id,
            score=score,
            parts=dict(zip(each, values, strict=False)),
            verdict=of,
        )
        for candidate, score, each, of in zip(shown, scores, parts, verdicts, strict=True)
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
    """Plain floats, rounded in one call, since a receipt has about 100 of them; values that JSON cannot hold become
    0.
    """
    plain = np.fromiter(values, dtype=np.float64, count=len(values))
    rounded: list[float] = np.round(np.where(np.isfinite(plain), plain, 0.0), DIGITS).tolist()
    return rounded


def _readable(text: str) -> str:
    """The text without lone surrogates, which UTF-8 cannot encode."""
    return text.encode(errors="replace").decode()
