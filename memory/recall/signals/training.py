"""The classifiers of a process: those shipped with the package, or trained on their phrases at the start.

Runs in the background and must never delay a chat: until there is a classifier, rules decide, and each question counts
as one that a memory may answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from memory.model import Vector
from memory.ports import Embedder
from memory.recall.signals.classifier import SignalClassifier
from memory.recall.signals.linear_model import LinearModel
from memory.recall.signals.phrases import question_phrases, training_phrases
from memory.recall.signals.question_kinds import QuestionClassifier

T = TypeVar("T", bound=LinearModel)


class BackgroundTraining(Generic[T]):
    """`current` is None until `run` has returned."""

    def __init__(
        self,
        embedder: Embedder,
        shipped: Callable[[], T | None],
        phrases: Callable[[], Sequence[Any]],
        fit: Callable[[Sequence[Any], Vector], T],
    ) -> None:
        """`shipped` loads the packaged classifier; it returns None if that was trained for another embedding model.

        `fit` trains on phrases and the vectors of their texts.
        """
        self._embedder = embedder
        self._shipped = shipped
        self._phrases = phrases
        self._fit = fit
        self._classifier: T | None = None

    def current(self) -> T | None:
        return self._classifier

    async def run(self) -> None:
        """Load the classifier, or embed the phrases and train (about ten seconds). Raises `Unavailable`; may be
        repeated.
        """
        self._classifier = await asyncio.to_thread(self._shipped)
        if self._classifier is not None:
            return
        phrases = self._phrases()
        texts = [phrase.text for phrase in phrases]
        vectors = await self._embedder.embed(texts, is_urgent=False, as_query=True)
        self._classifier = await asyncio.to_thread(self._fit, phrases, vectors)


class ClassifierTraining(BackgroundTraining[SignalClassifier]):
    """Of the decision whether a question needs memory."""

    def __init__(self, embedder: Embedder, *, shipped: Callable[[], SignalClassifier | None]) -> None:
        super().__init__(embedder, shipped, training_phrases, SignalClassifier.fit)


class QuestionTraining(BackgroundTraining[QuestionClassifier]):
    """Of the decision whether a question asks for something that no single memory answers."""

    def __init__(self, embedder: Embedder, *, shipped: Callable[[], QuestionClassifier | None]) -> None:
        super().__init__(embedder, shipped, question_phrases, QuestionClassifier.fit)
