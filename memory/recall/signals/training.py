"""The signal classifier of a process: the one shipped with the package, or one trained on the phrases at the start.

Runs in the background and must never delay a chat: until there is a classifier, rules decide.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from memory.ports import Embedder
from memory.recall.signals.classifier import SignalClassifier
from memory.recall.signals.phrases import training_phrases


class ClassifierTraining:
    """`current` is None until `run` has returned."""

    def __init__(self, embedder: Embedder, *, shipped: Callable[[], SignalClassifier | None]) -> None:
        """`shipped` loads the packaged classifier; it returns None if that was trained for another embedding model."""
        self._embedder = embedder
        self._shipped = shipped
        self._classifier: SignalClassifier | None = None

    def current(self) -> SignalClassifier | None:
        return self._classifier

    async def run(self) -> None:
        """Load the classifier, or embed the phrases and train (about ten seconds). Raises `Unavailable`; may be
        repeated.
        """
        self._classifier = await asyncio.to_thread(self._shipped)
        if self._classifier is not None:
            return
        phrases = training_phrases()
        vectors = await self._embedder.embed([phrase.text for phrase in phrases], is_urgent=False, as_query=True)
        self._classifier = await asyncio.to_thread(SignalClassifier.fit, phrases, vectors)
