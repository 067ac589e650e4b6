"""What the statement encoder says of one unit of a message: shares of its heads, and stretches of tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from memory.learn.reading.labels import TokenKind


@dataclass(frozen=True, slots=True)
class RequestSpan:
    """Characters `start` to `end` of the unit: a value, a name or a secret."""

    kind: TokenKind
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Judgement:
    """`acts`: by name of the act, "none" among them, shares that add up to 1."""

    acts: Mapping[str, float]
    attribute: str
    attribute_share: float
    relation: str
    category: str
    stretches: tuple[RequestSpan, ...]
