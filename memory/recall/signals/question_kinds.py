"""Part of stage 6: whether a question asks for something that no single memory answers.

"What did we talk about in May?" asks about a past conversation itself; "What did I do in May?" does not. "What do you
know about me?" asks about the user as a whole, and none of their memories resembles it. Decided by one linear model
over the embedding of the query, which a search has anyway, and its words. It learns from phrases written for it, and
must never see evaluation data. No IO.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Self, TypeAlias

import numpy as np

from memory.model import Vector
from memory.model.recalled import AskedWhole
from memory.recall.signals.linear_model import LinearModel


class QuestionKind(StrEnum):
    """What a question is about, where no single memory answers it."""

    PAST_TALK = "past_talk"
    ABOUT_USER = "about_user"
    ABOUT_PROJECT = "about_project"


KINDS = tuple(QuestionKind)
# Of the scores; `bench/train_signals.py` prints what each costs in five-fold cross-validation on the phrases.
PAST_TALK_MIN = 0.45
WHOLE_MIN = 0.45  # of both kinds that ask about a whole

KindScores: TypeAlias = Mapping[QuestionKind, float]
NO_KIND: KindScores = dict.fromkeys(KINDS, 0.0)
_WHOLES = {QuestionKind.ABOUT_USER: AskedWhole.USER, QuestionKind.ABOUT_PROJECT: AskedWhole.PROJECT}


@dataclass(frozen=True, slots=True)
class QuestionPhrase:
    """One training example. `kind`: None for a question that memories answer, or that needs none."""

    text: str
    kind: QuestionKind | None


class QuestionClassifier(LinearModel):
    """One output per kind: near 1 for a question of that kind, else near 0."""

    @classmethod
    def fit(cls, phrases: Sequence[QuestionPhrase], vectors: Vector | None) -> Self:
        """Train on phrases and their embeddings, as `LinearModel.trained` does."""
        targets = np.array([[float(phrase.kind is kind) for kind in KINDS] for phrase in phrases])
        return cls.trained([phrase.text for phrase in phrases], targets, vectors)

    def scores(self, text: str, vector: Vector | None) -> KindScores:
        return dict(zip(KINDS, map(float, self.outputs(text, vector)), strict=True))


def whole_of(scores: KindScores) -> AskedWhole | None:
    """What the question is about as a whole; None if it is not."""
    kind = max(_WHOLES, key=lambda one: scores[one])
    return _WHOLES[kind] if scores[kind] >= WHOLE_MIN else None
