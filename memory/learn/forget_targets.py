"""Finds what a request to forget means among statements: by meaning, not by its words.

Evidence is what the reader says of the two and of the others, the encoder's cosine, how far a statement stands out
from the others, and whether all of a person is meant. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from memory.language import asked_words, content_words
from memory.language.restating import says_all
from memory.learn.closeness import Closeness
from memory.model import Claim, Memory, MemoryStatus, Relation
from memory.ports.reading import NOT_OVER

MEANT_MIN, SIMILAR_MIN = 0.0, -2.0  # log odds at which a statement is meant, or close to what is meant
OTHER_LIKENESS = 0.35  # cosine that the nearest of some ten statements has which is not meant
GAP_MAX = 0.3  # cosine; a statement that stands out more is not more likely
WEIGHTS: Mapping[str, float] = MappingProxyType(  # of the evidence, in log odds: `python bench/fit_targets.py`
    {"base": 0.6, "over": 0.3, "behind": 0.7, "likeness": 1.6, "gap": 2.1, "all_of_person": 1.0}
)
UNKNOWN_LIKENESS = 0.4  # cosine of the nearest statement that is not meant, where the others are not known

Known: TypeAlias = Claim | Memory


def text_of(known: Known) -> str:
    return known.content if isinstance(known, Memory) else known.text


def odds_of(
    request: Claim, known: Sequence[Known], close: Closeness, *, nearest: float = OTHER_LIKENESS, is_whole: bool = False
) -> list[float]:
    """For each of these statements, the log odds that the request means it. Without its vector, and for raw words,
    which nobody read: whether it has all of the request's words. `nearest`: the cosine that unrelated ones may have.
    `is_whole`: it asks for all of whom or what it names.
    """
    return [
        _by_words(request, row) if found is None else sum(WEIGHTS[name] * share for name, share in found.items())
        for row, found in zip(known, evidence(request, known, close, nearest=nearest, is_whole=is_whole), strict=True)
    ]


def evidence(
    request: Claim, known: Sequence[Known], close: Closeness, *, nearest: float = OTHER_LIKENESS, is_whole: bool = False
) -> list[Mapping[str, float] | None]:
    """What speaks for and against each of these being meant, by the names of `WEIGHTS`; None of one without a vector,
    and of raw words. `over`: log odds that it is over with the request, `behind`: beside those of the surest.
    """
    asked = close.vectors.get(request.text)
    vectors = [None if _is_raw(one) else close.vectors.get(text_of(one)) for one in known]
    likeness = [None if asked is None or one is None else float(one @ asked) for one in vectors]
    active = [like or 0.0 for like, row in zip(likeness, known, strict=True) if _is_active(row)]
    best, second = sorted([nearest, nearest, *active], reverse=True)[:2]
    over = [close.over.get((text_of(one), request.text), NOT_OVER) for one in known]
    surest = max([0.0, *over])
    is_all = is_whole and request.relation is not Relation.USER
    return [
        None
        if like is None
        else {
            "base": 1.0,
            "over": odds,
            "behind": odds - surest,
            "likeness": like,
            "gap": float(np.clip(like - (second if _is_active(row) and like >= best else best), -GAP_MAX, GAP_MAX)),
            "all_of_person": is_all and request.relation.value == _subject(row),
        }
        for row, like, odds in zip(known, likeness, over, strict=True)
    ]


def _by_words(request: Claim, known: Known) -> float:
    words = asked_words(request.text)
    return np.inf if words and says_all(words, content_words(text_of(known))) else -np.inf


def _subject(known: Known) -> str:
    return known.subject if isinstance(known, Memory) else known.relation.value


def _is_raw(known: Known) -> bool:
    return isinstance(known, Memory) and known.status is MemoryStatus.RAW


def _is_active(known: Known) -> bool:
    return not isinstance(known, Memory) or known.status is MemoryStatus.ACTIVE
