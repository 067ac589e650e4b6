"""A classifier of a process: the one shipped with the package, or trained on its phrases at the start.

Runs in the background and never delays a chat: until then rules decide, and a memory may answer each question.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from memory.ports import Embedder
from memory.recall.signals.linear_model import LinearModel, Phrase

T = TypeVar("T", bound=LinearModel[Any])


class ClassifierTraining(Generic[T]):
    """`current` is None until `run` has returned."""

    def __init__(
        self,
        embedder: Embedder,
        kind: type[T],
        *,
        shipped: Callable[[], T | None],
        phrases: Callable[[], Sequence[Phrase]],
    ) -> None:
        """`shipped` loads the packaged classifier; it returns None if that was trained for another embedding model."""
        self._embedder = embedder
        self._kind = kind
        self._shipped = shipped
        self._phrases = phrases
        self._classifier: T | None = None

    def current(self) -> T | None:
        return self._classifier

    async def run(self) -> None:
        """Load it once, or embed the phrases and train (about ten seconds). Raises `Unavailable`; may be repeated."""
        if self._classifier is None:
            self._classifier = await asyncio.to_thread(self._shipped)
        if self._classifier is not None:
            return
        phrases = self._phrases()
        texts = [phrase.text for phrase in phrases]
        vectors = await self._embedder.embed(texts, is_urgent=False, as_query=True)
        self._classifier = await asyncio.to_thread(self._kind.fit, phrases, vectors)
