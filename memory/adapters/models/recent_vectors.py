"""Shared by the embedders: prefixes that some models require, a cache of vectors, and opening at the first text.

Questions are repeated (by retries and regenerated answers), and so are facts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass
from typing import Self

import numpy as np

from memory.model import Vector
from memory.ports import Embedder
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


class EmbedderOnDemand:
    """`memory.ports.Embedder`, opened for its first text: a model takes memory, and not every process comes to need it.
    Open with `async with`; on exit it closes what it opened.

    The first call takes as long as opening does. Where that fails, the call raises what failed, and the next one tries
    again.
    """

    def __init__(self, opening: Callable[[], AbstractAsyncContextManager[Embedder]], *, dimension: int) -> None:
        self._opening = opening
        self.dimension = dimension
        self._opened: Embedder | None = None
        self._one_at_a_time = asyncio.Lock()
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def embed(self, texts: Sequence[str], *, is_urgent: bool, as_query: bool = False) -> Vector:
        async with self._one_at_a_time:
            if self._opened is None:
                self._opened = await self._stack.enter_async_context(self._opening())
        return await self._opened.embed(texts, is_urgent=is_urgent, as_query=as_query)
