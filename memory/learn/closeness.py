"""What is known of how close statements are to requests to forget: cosines, and what the reader says of the nearest."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from memory.learn.embedded import Vectors
from memory.ports import PairVerdict, StatementPair

ASKED_MAX = 16  # statements that the reader is asked about, of each request: the nearest

Relate: TypeAlias = Callable[[Sequence[StatementPair]], Awaitable[list[PairVerdict]]]


@dataclass(frozen=True, slots=True)
class Closeness:
    """`vectors`: by text. `over`: log odds that a statement is over with a request, by the texts of both; what is
    missing was not asked.
    """

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
