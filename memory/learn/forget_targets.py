"""Finds what a request to forget means among statements: by meaning, not by its words.

Evidence is what the reader says of the two, the encoder's cosine, how far a statement stands out from the others, and
whether the reader sees the same attribute, person and values in both. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from memory.language import asked_words, content_words, names_everything
from memory.language.restating import says_all
from memory.learn.closeness import Closeness
from memory.model import NO_ATTRIBUTE, Claim, Memory, MemoryStatus, Relation

MEANT_MIN, SIMILAR_MIN = -0.5, -2.0  # log odds at which a statement is meant, or close to what is meant
UNRELATED_LIKENESS = 0.35  # cosine that the nearest of some ten statements has which is not meant
GAP_MAX = 0.3  # cosine; a statement that stands out more is not more likely
WEIGHTS: Mapping[str, float] = MappingProxyType(  # of the evidence, in log odds: `python bench/fit_targets.py`
    {
        "base": -2.9,
        "over": 3.8,
        "likeness": 3.1,
        "gap": 5.3,
        "same_attribute": 0.8,
        "same_person": 0.4,
        "all_of_person": 2.7,
        "says_values": 0.7,
        "lacks_values": -0.4,
    }
)
VALUE_CHARACTERS_MIN = 3  # shorter ones occur anywhere; of a script without spaces one less
UNKNOWN_LIKENESS = 0.4  # cosine of the nearest statement that is not meant, where the others are not known
FIRST_UNSPACED = "\u2e80"

Known: TypeAlias = Claim | Memory


def text_of(known: Known) -> str:
    return known.content if isinstance(known, Memory) else known.text


def odds_of(
    request: Claim, known: Sequence[Known], close: Closeness, *, nearest: float = UNRELATED_LIKENESS
) -> list[float]:
    """For each of these statements, the log odds that the request means it. Without its vector, and for raw words,
    which nobody read: whether it has all of the request's words. `nearest`: the cosine that unrelated ones may have.
    """
    return [
        _by_words(request, row)
        if likeness is None or _is_raw(row)
        else sum(WEIGHTS[name] * share for name, share in evidence(request, row, close, likeness, gap).items())
        for row, (likeness, gap) in zip(known, likeness_and_gap(request, known, close, nearest=nearest), strict=True)
    ]


def likeness_and_gap(
    request: Claim, known: Sequence[Known], close: Closeness, *, nearest: float = UNRELATED_LIKENESS
) -> list[tuple[float | None, float]]:
    """Of each statement its cosine to the request, None without a vector, and how far it stands out from the others."""
    asked = close.vectors.get(request.text)
    found = [close.vectors.get(text_of(one)) for one in known]
    likeness = [None if asked is None or one is None else float(one @ asked) for one in found]
    active = [one or 0.0 for one, row in zip(likeness, known, strict=True) if _is_active(row)]
    best = sorted([nearest, nearest, *active], reverse=True)[:2]
    return [
        (like, (like or 0.0) - (best[1] if _is_active(row) and (like or 0.0) >= best[0] else best[0]))
        for row, like in zip(known, likeness, strict=True)
    ]


def evidence(request: Claim, known: Known, close: Closeness, likeness: float, gap: float) -> dict[str, float]:
    """What speaks for and against `known` being meant, by the names of `WEIGHTS`. `gap`: how far it stands out."""
    subject = known.subject if isinstance(known, Memory) else known.relation.value
    is_of_other = request.relation.value == subject and request.relation is not Relation.USER
    is_all = names_everything(request.text)
    content = content_words(text_of(known))
    values = [words for one in (request.name, *request.values) if _is_telling(one) and (words := content_words(one))]
    said = [says_all(words, content) for words in values]
    return {
        "base": 1.0,
        "over": close.over.get((text_of(known), request.text), 0.0),
        "likeness": likeness,
        "gap": float(np.clip(gap, -GAP_MAX, GAP_MAX)),
        "same_attribute": request.attribute == known.attribute != NO_ATTRIBUTE,
        "same_person": is_of_other and not is_all,
        "all_of_person": is_of_other and is_all,
        "says_values": bool(said) and all(said),
        "lacks_values": bool(said) and not any(said),
    }


def _by_words(request: Claim, known: Known) -> float:
    words = asked_words(request.text)
    return np.inf if words and says_all(words, content_words(text_of(known))) else -np.inf


def _is_telling(value: str) -> bool:
    return len(value) + (max(value, default="") >= FIRST_UNSPACED) >= VALUE_CHARACTERS_MIN


def _is_raw(known: Known) -> bool:
    return isinstance(known, Memory) and known.status is MemoryStatus.RAW


def _is_active(known: Known) -> bool:
    return not isinstance(known, Memory) or known.status is MemoryStatus.ACTIVE


__all__ = [
    "MEANT_MIN",
    "SIMILAR_MIN",
    "UNKNOWN_LIKENESS",
    "WEIGHTS",
    "Known",
    "evidence",
    "likeness_and_gap",
    "odds_of",
    "text_of",
]
