"""Fuses the rankings of two versions of one question, the plain and the rewritten one. Pure.

A rewritten question is usually better and sometimes a wrong guess, so both rankings count, by reciprocal rank fusion:
ranks of two questions can be compared, their scores cannot. From the plain question's ranking only the memories that
pass its relevance cut take part; if the question was too vague for any to pass, its order is meaningless.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from memory.model import Candidate
from memory.recall.ranking.ranking import CANDIDATES_MAX, Ranked
from memory.recall.ranking.weights import DEFAULT_RANKING

PLACE_OFFSET = 60.0  # the usual constant: the first rank counts only little more than the second


def fused(plain: Ranked, rewritten: Ranked, *, weight: float = DEFAULT_RANKING.rewritten) -> Ranked:
    """One ranking. A memory's relevance is the better of both, and it passes if it passes in either.

    `weight`: of a rank for the rewritten question, relative to 1 for the plain question.
    """
    if not plain.candidates or not rewritten.candidates:
        return rewritten if rewritten.candidates else plain
    rankings = (_what_passes(plain), rewritten)
    places = [{c.memory.id: place for place, c in enumerate(ranked.candidates)} for ranked in rankings]
    candidates = {c.memory.id: c for ranked in rankings for c in ranked.candidates}

    def worth(memory_id: str) -> float:
        both = zip((1.0, weight), places, strict=True)
        return sum(share / (PLACE_OFFSET + found[memory_id]) for share, found in both if memory_id in found)

    def best(memory_id: str, of: Sequence[Sequence[float]]) -> float:
        return max(values[found[memory_id]] for values, found in zip(of, places, strict=True) if memory_id in found)

    order = sorted(candidates, key=worth, reverse=True)[:CANDIDATES_MAX]
    return Ranked(
        candidates=tuple(_with_fused_score(candidates[one], worth(one)) for one in order),
        relevance=tuple(best(one, [ranked.relevance for ranked in rankings]) for one in order),
        is_relevant=tuple(bool(best(one, [ranked.is_relevant for ranked in rankings])) for one in order),
        cosines=tuple(best(one, [ranked.cosines for ranked in rankings]) for one in order),
        corrections=rewritten.corrections,
        in_notes=rewritten.in_notes,
    )


def _what_passes(ranked: Ranked) -> Ranked:
    kept = [place for place, passes in enumerate(ranked.is_relevant) if passes]
    return Ranked(
        candidates=tuple(ranked.candidates[place] for place in kept),
        relevance=tuple(ranked.relevance[place] for place in kept),
        is_relevant=(True,) * len(kept),
        cosines=tuple(ranked.cosines[place] for place in kept),
    )


def _with_fused_score(candidate: Candidate, worth: float) -> Candidate:
    return replace(candidate, parts={**candidate.parts, "fused": worth})
