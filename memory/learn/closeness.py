"""Vectors of texts, each embedded once, and how close statements are to requests to forget."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from memory.model import Vector
from memory.ports import Embedder, PairVerdict, StatementPair

ASKED_MAX = 16  # statements that the reader is asked about, of each request: the nearest

Vectors: TypeAlias = Mapping[str, Vector]

Embedded: TypeAlias = Callable[[Sequence[str]], Awaitable[dict[str, Vector]]]
"""Returns vectors by text. Raises `Unavailable`."""

Relate: TypeAlias = Callable[[Sequence[StatementPair]], Awaitable[list[PairVerdict]]]


@dataclass(frozen=True, slots=True)
class Closeness:
    """`vectors`: by text. `over`: log odds that a statement is over with a request, by the texts of both, if asked."""

    vectors: Vectors = field(default_factory=dict)
    over: Mapping[tuple[str, str], float] = field(default_factory=dict)


UNKNOWN = Closeness()


async def closeness_of(
    requests: Collection[str], statements: Collection[str], vectors: Vectors, relate: Relate
) -> Closeness:
    """`requests` and `statements`: their texts, which `vectors` has. Raises `Unavailable`."""
    pairs = [StatementPair(one, request) for request in requests for one in _nearest(request, statements, vectors)]
    verdicts = await relate(pairs) if pairs else []
    return Closeness(vectors, {(pair.older, pair.newer): one.over for pair, one in zip(pairs, verdicts, strict=True)})


def _nearest(request: str, statements: Collection[str], vectors: Vectors) -> list[str]:
    asked = vectors.get(request)
    if asked is None:
        return []
    likeness = {text: float(vectors[text] @ asked) for text in statements if text in vectors and text != request}
    return sorted(likeness, key=lambda text: -likeness[text])[:ASKED_MAX]


def embedded_by(embedder: Embedder) -> Embedded:
    """By this embedder, which nobody waits for."""

    async def embedded(texts: Sequence[str]) -> dict[str, Vector]:
        unique = list(dict.fromkeys(texts))
        return dict(zip(unique, await embedder.embed(unique, is_urgent=False), strict=True)) if unique else {}

    return embedded
