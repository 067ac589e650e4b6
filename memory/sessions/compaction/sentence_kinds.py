"""What a sentence of a user is in a conversation, in any language: by a linear model over its embedding.

The reader knows facts; decisions, open questions and errands are learnt here, and what a conversation states of its own
matters, though it may not be worth a memory. Trained by `bench/train_sentence_kinds.py`, for the packaged embedding
model. No IO but the packaged file.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.resources import as_file, files

import numpy as np

from memory.model import Vector

SHIPPED = "sentence_kinds.npz"


class SentenceKind(StrEnum):
    DECISION = "decision"
    OPEN = "open"  # a question that the user has to settle, not one that the assistant is asked
    REQUEST = "request"  # a question or an errand to the assistant
    STATEMENT = "statement"  # about the user or their matters
    INSTRUCTION = "instruction"  # planted, to be followed from now on
    ORDER = "order"  # to forget, or not to store
    OTHER = "other"  # general claims, courtesies, fiction


KINDS = tuple(SentenceKind)
TOLD = (SentenceKind.DECISION, SentenceKind.OPEN, SentenceKind.STATEMENT)  # what tells something of the user's matters
# Of the scores; the trainer prints what others cost. What is told may be in doubt between those kinds, hence the sum.
TOLD_MIN = 0.45
KIND_MIN = 0.4  # of each other kind; below it a sentence is of none

_TOLD = np.array([kind in TOLD for kind in KINDS])


@dataclass(frozen=True, slots=True)
class SentenceKinds:
    """`weights`: shape (dimension + 1, kinds); the last row is the bias."""

    weights: Vector

    def of(self, vectors: Vector) -> list[SentenceKind | None]:
        """The kind of each sentence, from embeddings of shape (sentences, dimension); None if it is in doubt."""
        scores = vectors @ self.weights[:-1] + self.weights[-1]
        return [_kind_of(row) for row in scores]


def _kind_of(scores: Vector) -> SentenceKind | None:
    is_told = scores[_TOLD].sum() >= TOLD_MIN
    best = int(np.where(is_told == _TOLD, scores, -np.inf).argmax())
    return KINDS[best] if is_told or scores[best] >= KIND_MIN else None


@cache
def sentence_kinds() -> SentenceKinds:
    """The packaged model."""
    with as_file(files("memory.sessions.compaction") / SHIPPED) as path, np.load(path, allow_pickle=False) as arrays:
        return SentenceKinds(arrays["weights"].astype(np.float32))
