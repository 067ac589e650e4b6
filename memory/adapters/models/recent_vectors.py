"""Shared by the embedders: prefixes that some models require, and a cache of vectors.

Questions are repeated (by retries and regenerated answers), and so are facts.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import numpy as np

from memory.model import Vector
from memory.runtime.recent import Recent

CACHE_TEXTS = 2_048  # 1.5 KB each, 3 MB; retries and regenerated answers come soon, if at all


@dataclass(frozen=True, slots=True)
class Prefixes:
    """The prefixes that the model was trained with, for questions and for documents."""

    query: str = ""
    document: str = ""

    def of(self, *, as_query: bool) -> str:
        return self.query if as_query else self.document


class RecentVectors:
    """The vectors of the `texts_max` most recently requested texts."""

    def __init__(self, *, texts_max: int, dimension: int) -> None:
        self._dimension = dimension
        self._recent: Recent[str, Vector] = Recent(texts_max)

    async def of(self, texts: Sequence[str], embed: Callable[[list[str]], Awaitable[Vector]]) -> Vector:
        """One row per text; unknown texts are embedded, each once, in order."""
        if not texts:
            return np.zeros((0, self._dimension), dtype=np.float32)
        found = {text: self._recent[text] for text in texts if text in self._recent}
        missing = [text for text in dict.fromkeys(texts) if text not in found]
        if missing:
            found |= dict(zip(missing, await embed(missing), strict=True))
        for text, vector in found.items():
            self._recent[text] = vector
        return np.stack([found[text] for text in texts])
