"""A receipt: what was decided for one request, put together from what the stages found, and cut to a bounded size.

Pure. Ids and scores go in, never a memory's text; the query is the one thing in it that somebody said.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from memory.model import Candidate, CarriedNote, Placement, RecallStatus, Receipt, Verdict, Weighed
from memory.recall.notes import NotePlan

CANDIDATES_MAX = 30  # and whatever was injected from further down; each costs 4 µs and 150 bytes
PARTS_MAX = 32  # of one score; the ranking has about ten
SIGNALS_MAX = 32
QUERY_CHARACTERS_MAX = 2_000  # as long as a query gets
DIGITS = 6  # of scores; milliseconds get three


def receipt_of(
    *,
    receipt_id: str,
    user_id: str,
    at: float,
    status: RecallStatus,
    reason: str,
    signals: Mapping[str, Any] | None = None,
    query: str = "",
    candidates: Sequence[Candidate] = (),
    cuts: Mapping[str, Verdict] | None = None,
    plan: NotePlan | None = None,
    placement: Placement = Placement.OFF,
    timings_ms: Mapping[str, float] | None = None,
) -> Receipt:
    """What is placed nowhere was not injected, whatever was planned.

    `candidates`: all that were ranked, best first. `cuts`: why the ranking left some of them out, by memory id.
    `signals`: names to plain values (text, number, truth, or a mapping of names to numbers).
    """
    placed = None if placement is Placement.OFF else plan
    weighed = _weighed(candidates, cuts or {}, placed)
    return Receipt(
        id=receipt_id,
        user_id=user_id,
        at=at,
        status=status,
        reason=reason,
        signals=dict(list((signals or {}).items())[:SIGNALS_MAX]),
        query=_readable(query[:QUERY_CHARACTERS_MAX]),
        candidates=weighed,
        left_out=len(candidates) - len(weighed),
        notes=_carried(placed, placement),
        timings_ms={stage: _rounded(value, 3) for stage, value in (timings_ms or {}).items()},
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

    return tuple(
        Weighed(
            memory_id=candidate.memory.id,
            score=_rounded(candidate.score, DIGITS),
            parts={name: _rounded(value, DIGITS) for name, value in list(candidate.parts.items())[:PARTS_MAX]},
            verdict=verdict(candidate.memory.id),
        )
        for rank, candidate in enumerate(candidates)
        if rank < CANDIDATES_MAX or candidate.memory.id in fresh
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


def _rounded(value: float, digits: int) -> float:
    """A plain float, also of numpy's; what no JSON can say becomes 0."""
    return round(float(value), digits) if math.isfinite(value) else 0.0


def _readable(text: str) -> str:
    """Without halves of surrogate pairs, which no UTF-8 can say."""
    return text.encode(errors="replace").decode()
