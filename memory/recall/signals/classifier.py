"""Part of stage 6: classifies a message with a linear model over its embedding and its words, trained at the start.

This module must never see evaluation data: it learns from phrases written for it. No IO.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

import numpy as np

from memory.model import Vector
from memory.recall.signals.linear_model import LinearModel


class SignalLabel(StrEnum):
    """What a message is, and whether it wants memory."""

    GENERAL_FACT = "general_fact"
    TOOL = "tool"
    GREETING = "greeting"
    PERSONAL = "personal"
    TASK = "task"
    SMALLTALK = "smalltalk"

    @property
    def wants_memory(self) -> bool:
        return self in (SignalLabel.PERSONAL, SignalLabel.TASK, SignalLabel.SMALLTALK)


LABELS = tuple(SignalLabel)
_WANTS = np.array([label.wants_memory for label in LABELS])


@dataclass(frozen=True, slots=True)
class Phrase:
    """One training example."""

    text: str
    label: SignalLabel


@dataclass(frozen=True, slots=True)
class Scores:
    """`search`: evidence that memory is needed, near 0 no, near 1 yes. `labels` sums to about 1."""

    search: float
    labels: Mapping[SignalLabel, float]

    @property
    def best(self) -> SignalLabel:
        return max(self.labels, key=lambda label: self.labels[label])


class SignalClassifier(LinearModel):
    """One output per label."""

    @classmethod
    def fit(cls, phrases: Sequence[Phrase], vectors: Vector | None) -> Self:
        """Train on phrases and their embeddings, as `LinearModel.trained` does."""
        targets = np.eye(len(LABELS))[[LABELS.index(phrase.label) for phrase in phrases]]
        return cls.trained([phrase.text for phrase in phrases], targets, vectors)

    def scores(self, text: str, vector: Vector | None) -> Scores:
        """Scores of `text`. `vector`: its embedding, or that of the query made from it; None without one."""
        total = self.outputs(text, vector)
        return Scores(
            search=float(total[_WANTS].sum()),
            labels=dict(zip(LABELS, (float(score) for score in total), strict=True)),
        )
