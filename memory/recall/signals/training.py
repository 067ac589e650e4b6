"""The signal classifier of one process: the one that came with the package, or one trained on the phrases here and now.

It belongs to the start of a process and must never hold up a chat: until there is a classifier, rules decide.
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
        """`shipped` reads the classifier that came with the package; None where it is not for this embedding model."""
        self._embedder = embedder
        self._shipped = shipped
        self._classifier: SignalClassifier | None = None

    def current(self) -> SignalClassifier | None:
        return self._classifier

    async def run(self) -> None:
        """Read, or else embed the phrases and fit, some ten seconds. Raises `Unavailable`; may be called again."""
        self._classifier = await asyncio.to_thread(self._shipped)
        if self._classifier is not None:
            return
        phrases = training_phrases()
        vectors = await self._embedder.embed([phrase.text for phrase in phrases], is_urgent=False, as_query=True)
        self._classifier = await asyncio.to_thread(SignalClassifier.fit, phrases, vectors)
