"""An embedder that is opened for its first text: a model takes memory, and not every process comes to need it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Self

from memory.model import Vector
from memory.ports import Embedder


class EmbedderOnDemand:
    """`memory.ports.Embedder`. Open with `async with`; on exit it closes what it opened.

    The first call takes as long as opening does. Where that fails, the call raises what failed, and the next one tries
    again.
    """

    def __init__(self, opening: Callable[[], AbstractAsyncContextManager[Embedder]], *, dimension: int) -> None:
        self._opening = opening
        self._dimension = dimension
        self._opened: Embedder | None = None
        self._one_at_a_time = asyncio.Lock()
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    @property
    def dimension(self) -> int:
        return self._dimension

    async def embed(self, texts: Sequence[str], *, is_urgent: bool, as_query: bool = False) -> Vector:
        async with self._one_at_a_time:
            if self._opened is None:
                self._opened = await self._stack.enter_async_context(self._opening())
        return await self._opened.embed(texts, is_urgent=is_urgent, as_query=as_query)
