"""Finds what a request to forget means among statements: by meaning, not by its words.

Evidence is the encoder's cosine, how far a statement stands out from the others, and whether the reader sees the same
attribute, person and values in both. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from memory.language import asked_words, content_words, names_everything
from memory.language.restating import says_all
from memory.learn.embedded import Vectors
from memory.model import NO_ATTRIBUTE, Claim, Memory, MemoryStatus, Relation, is_single_valued

MEANT_MIN, SIMILAR_MIN = 0.0, -2.0  # log odds at which a statement is meant, or close to what is meant
UNRELATED_LIKENESS = 0.15  # cosine of the nearest of a few unrelated statements
GAP_MAX = 0.3  # cosine; a statement that stands out more is not more likely
PER_LIKENESS, PER_GAP, BASE = 4.0, 8.0, -3.2
SAME_ATTRIBUTE, SAME_FIELD, SAME_PERSON, OTHER_PERSON = 2.0, 2.0, 1.5, -0.5
SAYS_VALUES, LACKS_VALUES, ALL_OF_A_PERSON = 2.5, -2.0, 2.5
VALUE_CHARACTERS_MIN = 3  # shorter ones occur anywhere; of a script without spaces one less
RESTATED, RESTATED_WORDS_MIN = 5.0, 2
UNKNOWN_LIKENESS = 0.3  # cosine of the nearest statement that is not meant, where the others are not known
FIRST_UNSPACED = "\u2e80"

Known: TypeAlias = Claim | Memory


def text_of(known: Known) -> str:
    return known.content if isinstance(known, Memory) else known.text


def odds_of(
    request: Claim, known: Sequence[Known], vectors: Vectors, *, nearest: float = UNRELATED_LIKENESS
) -> list[float]:
    """For each of these statements, the log odds that the request means it. Without its vector, and for raw words,
    which nobody read: whether it has all of the request's words. `nearest`: the cosine that unrelated ones may have.
    """
    asked = vectors.get(request.text)
    found = [vectors.get(text_of(one)) for one in known]
    likeness = [0.0 if asked is None or one is None else float(one @ asked) for one in found]
    active = [one for one, row in zip(likeness, known, strict=True) if _is_active(row)]
    best = sorted([nearest, nearest, *active], reverse=True)[:2]
    return [
        _by_words(request, row)
        if asked is None or vector is None or _is_raw(row)
        else _odds(request, row, like, like - (best[1] if _is_active(row) and like >= best[0] else best[0]))
        for row, vector, like in zip(known, found, likeness, strict=True)
    ]


def _odds(request: Claim, known: Known, likeness: float, gap: float) -> float:
    odds = BASE + PER_LIKENESS * likeness + PER_GAP * float(np.clip(gap, -GAP_MAX, GAP_MAX))
    subject = known.subject if isinstance(known, Memory) else known.relation.value
    is_of_person = request.relation.value == subject
    if request.attribute == known.attribute != NO_ATTRIBUTE:
        odds += SAME_ATTRIBUTE + (SAME_FIELD if is_of_person and is_single_valued(request.attribute) else 0.0)
    if not is_of_person:
        odds += OTHER_PERSON
    elif request.relation is not Relation.USER:
        odds += ALL_OF_A_PERSON if names_everything(request.text) else SAME_PERSON
    content = content_words(text_of(known))
    values = [words for one in (request.name, *request.values) if _is_telling(one) and (words := content_words(one))]
    if len(content) >= RESTATED_WORDS_MIN and says_all(content, content_words(request.text)):
        odds += RESTATED  # "forget that I like beer"
    elif values:
        said = [says_all(words, content) for words in values]
        odds += SAYS_VALUES if all(said) else 0.0 if any(said) else LACKS_VALUES
    return odds


def _by_words(request: Claim, known: Known) -> float:
    words = asked_words(request.text)
    return np.inf if words and says_all(words, content_words(text_of(known))) else -np.inf


def _is_telling(value: str) -> bool:
    return len(value) + (max(value, default="") >= FIRST_UNSPACED) >= VALUE_CHARACTERS_MIN


def _is_raw(known: Known) -> bool:
    return isinstance(known, Memory) and known.status is MemoryStatus.RAW


def _is_active(known: Known) -> bool:
    return not isinstance(known, Memory) or known.status is MemoryStatus.ACTIVE


__all__ = ["MEANT_MIN", "SIMILAR_MIN", "UNKNOWN_LIKENESS", "Known", "odds_of", "text_of"]
