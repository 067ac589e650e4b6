"""Part of stage 6: whether a question asks about a past conversation itself, and not for a fact that was told in one.

"What did we talk about in May?" and "What did you recommend?" do; "What did I do in May?" does not. Decided by a linear
model over the embedding of the query, which a search has anyway, and its words. It learns from phrases written for it,
and must never see evaluation data. No IO.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from memory.model import Vector
from memory.recall.signals.linear_model import LinearModel

PAST_TALK_MIN = 0.45  # of the score; `bench/train_signals.py` prints the errors by threshold


@dataclass(frozen=True, slots=True)
class PastTalkPhrase:
    """One training example."""

    text: str
    is_past_talk: bool


class PastTalkClassifier(LinearModel):
    """One output: near 1 for a question about a past conversation, else near 0."""

    @classmethod
    def fit(cls, phrases: Sequence[PastTalkPhrase], vectors: Vector | None) -> Self:
        """Train on phrases and their embeddings, as `LinearModel.trained` does."""
        targets = np.array([[float(phrase.is_past_talk)] for phrase in phrases])
        return cls.trained([phrase.text for phrase in phrases], targets, vectors)

    def score(self, text: str, vector: Vector | None) -> float:
        return float(self.outputs(text, vector)[0])


__all__ = ["PAST_TALK_MIN", "PastTalkClassifier", "PastTalkPhrase"]
