"""Trains the signal classifier of one process from the phrases in the repository, with vectors from the embedder.

It belongs to the start of a process and must never hold it up: until it has succeeded, rules decide.
"""

from __future__ import annotations

import asyncio

from memory.ports import Embedder
from memory.recall.classifier import SignalClassifier
from memory.recall.phrases import training_phrases


class ClassifierTraining:
    """`current` is None until `run` has returned."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._classifier: SignalClassifier | None = None

    def current(self) -> SignalClassifier | None:
        return self._classifier

    async def run(self) -> None:
        """Embed the phrases and fit, a second or two. Raises `Unavailable`; may be called again."""
        phrases = training_phrases()
        vectors = await self._embedder.embed([phrase.text for phrase in phrases], is_urgent=False)
        self._classifier = await asyncio.to_thread(SignalClassifier.fit, phrases, vectors)
