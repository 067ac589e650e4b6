"""The output of the statement encoder for one unit: probabilities of its heads, and labelled spans."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from memory.learn.reading.labels import TokenKind


@dataclass(frozen=True, slots=True)
class RequestSpan:
    """Characters `start` to `end` of the unit: a value, a name or a secret."""

    kind: TokenKind
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class JudgedClause:
    """Characters `start` to `end` of the unit: the words that say one fact, and its labels.

    `leaning_share`: how likely it cannot be understood alone, 0..1.
    """

    start: int
    end: int
    acts: Mapping[str, float]
    attribute: str
    attribute_share: float
    relation: str
    category: str
    leaning_share: float = 0.0


@dataclass(frozen=True, slots=True)
class Judgement:
    """`acts`: probabilities by act, including "none"; they sum to 1. `clauses`: in order, without overlap.

    `frames`: probabilities of `FRAMES`; they sum to 1.
    """

    acts: Mapping[str, float]
    attribute: str
    attribute_share: float
    relation: str
    category: str
    stretches: tuple[RequestSpan, ...]
    clauses: tuple[JudgedClause, ...] = ()
    leaning_share: float = 0.0
    frames: Mapping[str, float] = field(default_factory=dict)
