"""Scores recall: counts positions. Pure.

Facts: recall at k, precision of everything returned, reciprocal rank, abstention and superseded memories; `acceptable`
ones are ignored in all counts. Talks: the share of the evidence turns retrieved, at k or within a token budget.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from memory.evaluation.dataset import RecallCase, TalkQuestion
from memory.model import MemoryStatus

RECALL_AT = (3, 5, 8)
TALK_RECALL_AT = (5, 10)
CHARACTERS_PER_TOKEN = 4.2  # as in published figures on these talks

_Result = TypeVar("_Result")
_Figures = TypeVar("_Figures")


@dataclass(frozen=True, slots=True)
class CaseScore:
    """One record. Figures that do not apply to it (recall without relevant memories, abstention with some) are None."""

    case: RecallCase
    returned: Sequence[int]
    recall: Mapping[int, float] | None
    precision: float | None
    reciprocal_rank: float | None
    abstained: bool | None
    leaked_superseded: bool


def score_case(case: RecallCase, returned: Sequence[int]) -> CaseScore:
    """`returned`: positions, best first."""
    counted = [position for position in returned if position not in case.acceptable]
    leaked = any(
        case.memories[position].status is MemoryStatus.SUPERSEDED and position not in case.relevant
        for position in counted
    )
    if not case.relevant:
        return CaseScore(case, returned, None, None, None, abstained=not counted, leaked_superseded=leaked)
    first = next((rank for rank, position in enumerate(counted, start=1) if position in case.relevant), 0)
    return CaseScore(
        case,
        returned,
        recall={k: len(case.relevant & set(counted[:k])) / min(k, len(case.relevant)) for k in RECALL_AT},
        precision=len(case.relevant & set(counted)) / len(counted) if counted else 0.0,
        reciprocal_rank=1 / first if first else 0.0,
        abstained=None,
        leaked_superseded=leaked,
    )


def figures(scores: Sequence[CaseScore]) -> dict[str, float | int | None]:
    """Means over the records to which a figure applies; None without any."""
    answered = [score for score in scores if score.recall is not None]
    return {
        "records": len(scores),
        **{f"recall@{k}": mean(score.recall[k] for score in answered if score.recall) for k in RECALL_AT},
        "precision": mean(score.precision for score in answered),
        "mrr": mean(score.reciprocal_rank for score in answered),
        "abstention": mean(score.abstained for score in scores),
        "superseded_leak": mean(score.leaked_superseded for score in scores),
    }


def by_group(
    results: Iterable[_Result], group: Callable[[_Result], str], figures: Callable[[list[_Result]], _Figures]
) -> dict[str, _Figures]:
    """The figures of each group, in alphabetical order."""
    found: dict[str, list[_Result]] = defaultdict(list)
    for result in results:
        found[group(result)].append(result)
    return {name: figures(found[name]) for name in sorted(found)}


def evidence_recall(question: TalkQuestion, returned: Iterable[int]) -> float:
    """The share of the evidence turns among the returned positions."""
    return len(question.evidence & set(returned)) / question.evidence_count


def within_budget(order: Iterable[int], contents: Sequence[str], budget: float) -> list[int]:
    """Positions, best first, within the token budget; those that do not fit are skipped."""
    kept, left = [], budget
    for position in order:
        cost = len(contents[position]) / CHARACTERS_PER_TOKEN
        if cost <= left:
            kept.append(position)
            left -= cost
    return kept


def mean(values: Iterable[float | bool | None]) -> float | None:
    """The mean without None values; None without values."""
    known = [float(value) for value in values if value is not None]
    return round(sum(known) / len(known), 4) if known else None


def share(part: float, whole: float) -> float | None:
    """None if the total is 0."""
    return round(part / whole, 4) if whole else None
