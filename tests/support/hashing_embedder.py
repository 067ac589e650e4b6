"""An embedder without a model: words hashed into a vector. Equal words give near vectors, and that is all it knows."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

import numpy as np

from memory.errors import Unavailable
from memory.model import Vector


class HashingEmbedder:
    """`memory.ports.Embedder`; `is_down` makes it fail as a real one does. `texts` is what it was asked for."""

    def __init__(self, *, dimension: int = 64) -> None:
        self._dimension = dimension
        self.is_down = False
        self.texts: list[str] = []

    @property
    def dimension(self) -> int:
        return self._dimension

    async def embed(self, texts: Sequence[str], *, is_urgent: bool, as_query: bool = False) -> Vector:
        if self.is_down:
            raise Unavailable("embedder", "switched off by the test")
        self.texts += texts
        vectors = np.zeros((len(texts), self._dimension), dtype=np.float32)
        for row, text in zip(vectors, texts, strict=True):
            for word in re.findall(r"\w+", text.casefold()) or [text]:
                digest = hashlib.sha256(word.encode("utf-8", "surrogatepass")).digest()
                row[int.from_bytes(digest[:4], "big") % self._dimension] += 1.0 if digest[4] % 2 else -1.0
            if not row.any():
                row[0] = 1.0
        return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), dtype=np.float32)
