"""Makes one ranking of two: of one question over two sets of memories, or of two versions of one question. Pure.

The user's own memories and a shared project's were scored with the same weights, so that their scores compare. The
relevance margin counts from the better set: what passes only because its own set has nothing better is irrelevant.
Words are weighed within each set.

A rewritten question is usually better than the plain one and sometimes a wrong guess, so both rankings count, by
reciprocal rank fusion: ranks of two questions can be compared, their scores cannot. From the plain question's ranking
only the memories that pass its relevance cut take part; if it was too vague for any to pass, its order is meaningless.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, replace

from memory.model import Candidate, Memory
from memory.recall.ranking.ranking import CANDIDATES_MAX, Ranked
from memory.recall.ranking.weights import REWRITTEN, Bar

PLACE_OFFSET = 60.0  # the usual constant: the first rank counts only little more than the second


@dataclass(frozen=True, slots=True)
class _Row:
    """One candidate with all that a ranking says about it."""

    candidate: Candidate
    odds: float
    is_relevant: bool
    cosine: float
    is_near: bool

    @property
    def id(self) -> str:
        return self.candidate.memory.id


def fused(plain: Ranked, rewritten: Ranked) -> Ranked:
    """One ranking. A memory's odds are the better of both, and it passes if it passes in either. An overview stands."""
    if plain.is_overview or not plain.candidates or not rewritten.candidates:
        return plain if plain.is_overview or not rewritten.candidates else rewritten
    found: dict[str, list[_Row]] = {}
    worth: dict[str, float] = {}
    for share, rows in ((1.0, [row for row in _rows(plain) if row.is_relevant]), (REWRITTEN, _rows(rewritten))):
        for place, row in enumerate(rows):
            found.setdefault(row.id, []).append(row)
            worth[row.id] = worth.get(row.id, 0.0) + share / (PLACE_OFFSET + place)
    best = sorted(found, key=lambda one: worth[one], reverse=True)[:CANDIDATES_MAX]
    rows = [_better(found[one], worth[one]) for one in best]
    return replace(_ranking(Ranked(), rows, rewritten.corrections, rewritten.in_notes), is_near=())


def _better(both: list[_Row], worth: float) -> _Row:
    candidate = both[-1].candidate
    return _Row(
        replace(candidate, parts={**candidate.parts, "fused": worth}),
        max(row.odds for row in both),
        any(row.is_relevant for row in both),
        max(row.cosine for row in both),
        is_near=False,
    )


def only(ranked: Ranked, kept: dict[str, Candidate]) -> Ranked:
    """The ranking without the memories that are not in `kept`, and with those candidates in place of its own."""
    rows = [replace(row, candidate=kept[row.id]) for row in _rows(ranked) if row.id in kept]
    return _ranking(ranked, rows, tuple(one for one in ranked.corrections if one in kept), ranked.in_notes)


def merged(own: Ranked, shared: Ranked, *, bar: Bar, limit: int = CANDIDATES_MAX) -> Ranked:
    """The best `limit` and all corrections; each keeps its own order: corrections may stand before better scores."""
    if not shared.candidates:
        return own
    if not own.candidates:
        return shared
    best = max(*own.odds, *shared.odds)
    each = (_within_margin(ranked, best, bar) for ranked in (own, shared))
    rows = enumerate(heapq.merge(*each, key=lambda row: -row.candidate.score))
    corrections = (*own.corrections, *shared.corrections)
    kept = [row for place, row in rows if place < limit or row.id in corrections]
    return _ranking(own, kept, corrections, (*own.in_notes, *shared.in_notes))


def _within_margin(ranked: Ranked, best: float, bar: Bar) -> Iterator[_Row]:
    """The rows, relevant only as far as the best of both sets leaves them. What passed in spite of its topic stays."""
    own_best = max(ranked.odds)
    for row in _rows(ranked):
        passed_anyway = row.odds < bar.beside(own_best)
        is_relevant = row.is_relevant and (passed_anyway or row.odds >= bar.beside(best))
        may_fill = ranked.asks_several and not is_relevant and (row.is_near or row.is_relevant)
        is_near = may_fill and row.odds >= best - bar.several_margin
        yield _Row(row.candidate, row.odds, is_relevant, row.cosine, is_near)


def _rows(ranked: Ranked) -> Iterator[_Row]:
    near = ranked.is_near or (False,) * len(ranked.candidates)
    each = zip(ranked.candidates, ranked.odds, ranked.is_relevant, ranked.cosines, near, strict=True)
    return (_Row(*one) for one in each)


def _ranking(base: Ranked, rows: list[_Row], corrections: tuple[str, ...], in_notes: tuple[Memory, ...]) -> Ranked:
    return Ranked(
        candidates=tuple(row.candidate for row in rows),
        odds=tuple(row.odds for row in rows),
        is_relevant=tuple(row.is_relevant for row in rows),
        cosines=tuple(row.cosine for row in rows),
        is_near=tuple(row.is_near for row in rows),
        asks_several=base.asks_several,
        is_overview=base.is_overview,
        corrections=corrections,
        in_notes=in_notes,
    )
