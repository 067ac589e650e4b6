"""Vectors of texts, by text; each text is embedded once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeAlias

from memory.model import Vector
from memory.ports import Embedder

Vectors: TypeAlias = Mapping[str, Vector]

Embedded: TypeAlias = Callable[[Sequence[str]], Awaitable[dict[str, Vector]]]
"""Returns vectors by text. Raises `Unavailable`."""


def embedded_by(embedder: Embedder) -> Embedded:
    """By this embedder, which nobody waits for."""

    async def embedded(texts: Sequence[str]) -> dict[str, Vector]:
        unique = list(dict.fromkeys(texts))
        return dict(zip(unique, await embedder.embed(unique, is_urgent=False), strict=True)) if unique else {}

    return embedded
