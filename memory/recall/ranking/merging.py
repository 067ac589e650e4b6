"""Merges the rankings of one question over two sets of memories, the user's own and a shared project's. Pure.

Both were scored with the same weights, so that their scores compare. The relevance margin counts from the better set:
what passes only because its own set has nothing better is irrelevant. Words are weighed within each set.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from memory.model import Candidate, Memory
from memory.recall.ranking.ranking import CANDIDATES_MAX, Ranked
from memory.recall.ranking.weights import Bar

RELEVANCE_MIN = 1e-12  # relevance is a logistic function of the odds: beyond it nothing can be told apart


@dataclass(frozen=True, slots=True)
class _Row:
    """One candidate with all that a ranking says about it."""

    candidate: Candidate
    relevance: float
    is_relevant: bool
    cosine: float
    is_near: bool


def only(ranked: Ranked, kept: dict[str, Candidate]) -> Ranked:
    """The ranking without the memories that are not in `kept`, and with those candidates in place of its own."""
    rows = [row for row in _rows(ranked) if row.candidate.memory.id in kept]
    return _ranking(
        ranked,
        [_Row(kept[r.candidate.memory.id], r.relevance, r.is_relevant, r.cosine, r.is_near) for r in rows],
        corrections=tuple(one for one in ranked.corrections if one in kept),
        others=(),
    )


def merged(own: Ranked, shared: Ranked, *, bar: Bar, limit: int = CANDIDATES_MAX) -> Ranked:
    """One ranking, best first; each keeps its own order, as corrections may stand before better scores."""
    if not shared.candidates:
        return own
    if not own.candidates:
        return shared
    odds = [_odds(value) for ranked in (own, shared) for value in ranked.relevance]
    best = max(odds)
    rows = heapq.merge(
        *(_within_margin(ranked, best, bar) for ranked in (own, shared)), key=lambda row: -row.candidate.score
    )
    corrections = (*own.corrections, *shared.corrections)
    return _ranking(own, _cut(rows, limit, corrections), corrections=corrections, others=shared.in_notes)


def _within_margin(ranked: Ranked, best: float, bar: Bar) -> Iterator[_Row]:
    """The rows, relevant only as far as the best of both sets leaves them. What passed in spite of its topic stays."""
    own_best = max(_odds(value) for value in ranked.relevance)
    for row in _rows(ranked):
        odds = _odds(row.relevance)
        passed_anyway = odds < bar.beside(own_best)
        is_relevant = row.is_relevant and (passed_anyway or odds >= bar.beside(best))
        may_fill = ranked.asks_several and not is_relevant and (row.is_near or row.is_relevant)
        is_near = may_fill and odds >= best - bar.several_margin
        yield _Row(row.candidate, row.relevance, is_relevant, row.cosine, is_near)


def _cut(rows: Iterator[_Row], limit: int, corrections: Collection[str]) -> list[_Row]:
    """The best `limit`, and corrections of earlier notes in any case."""
    return [row for place, row in enumerate(rows) if place < limit or row.candidate.memory.id in corrections]


def _odds(relevance: float) -> float:
    share = min(max(relevance, RELEVANCE_MIN), 1.0 - RELEVANCE_MIN)
    return math.log(share / (1.0 - share))


def _rows(ranked: Ranked) -> Iterator[_Row]:
    near = ranked.is_near or (False,) * len(ranked.candidates)
    each = zip(ranked.candidates, ranked.relevance, ranked.is_relevant, ranked.cosines, near, strict=True)
    return (_Row(*one) for one in each)


def _ranking(base: Ranked, rows: list[_Row], *, corrections: tuple[str, ...], others: tuple[Memory, ...]) -> Ranked:
    return Ranked(
        candidates=tuple(row.candidate for row in rows),
        relevance=tuple(row.relevance for row in rows),
        is_relevant=tuple(row.is_relevant for row in rows),
        cosines=tuple(row.cosine for row in rows),
        is_near=tuple(row.is_near for row in rows),
        asks_several=base.asks_several,
        is_overview=base.is_overview,
        corrections=corrections,
        in_notes=(*base.in_notes, *others),
    )
