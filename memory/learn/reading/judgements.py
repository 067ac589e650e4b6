"""The output of the statement encoder for one unit: probabilities of its heads, and labelled spans.

Whether what a message says can be understood alone is judged of each text by itself, without what stands around it: in
its message "I'm really enjoying it" says what it means; alone it does not. Only what may leave a memory is judged, and
the sentences before it, which it may lean on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

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

    `frames`: probabilities of `FRAMES`; they sum to 1. `asked`: those of `ASKS`, meant for a question; they sum to 1.
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
    asked: Mapping[str, float] = field(default_factory=dict)


PROPOSED_SHARE_MIN = 0.25  # sum over all acts, below which a unit is not proposed at all
BEFORE_UNITS_MAX = 2  # that a unit may lean on

Leaning: TypeAlias = Callable[[Sequence[str]], Sequence[float]]
"""How likely each text cannot be understood alone, 0..1."""


def with_leaning(texts: Sequence[str], judgements: Sequence[Judgement], leaning: Leaning) -> list[Judgement]:
    """The judgements of these units, with how likely they and their clauses cannot be understood alone."""
    proposed = [n for n, judged in enumerate(judgements) if 1.0 - judged.acts["none"] >= PROPOSED_SHARE_MIN]
    units = {place for n in proposed for place in range(max(0, n - BEFORE_UNITS_MAX), n + 1)}
    asked = {texts[n]: 0.0 for n in sorted(units)}
    asked |= {_said(texts[n], clause): 0.0 for n in proposed for clause in judgements[n].clauses}
    shares = dict(zip(asked, leaning(list(asked)), strict=True)) if asked else {}
    return [
        replace(
            judged,
            leaning_share=shares.get(text, 0.0),
            clauses=tuple(
                replace(clause, leaning_share=shares.get(_said(text, clause), 0.0)) for clause in judged.clauses
            ),
        )
        for text, judged in zip(texts, judgements, strict=True)
    ]


def _said(text: str, clause: JudgedClause) -> str:
    return text[clause.start : clause.end]
