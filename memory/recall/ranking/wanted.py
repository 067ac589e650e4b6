"""What kinds of facts a question wants, and how much each memory is of them, in any language.

"What do I do for a living?" shares no word with "I bake at night", and their embeddings are not near each other; but
one wants an occupation, and the other is about one. Two linear models over embeddings read both off: of a question,
which attributes it wants, of a fact, which it is about. Their product is a direction in the space of the memories, so
that all memories are judged by one more product. Trained by `bench/train_wanted.py`, for the packaged embedding model.
No IO but the packaged file.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import as_file, files

import numpy as np
import numpy.typing as npt

from memory.model import Vector
from memory.recall.ranking.rows import Floats

SHIPPED = "wanted_weights.npz"
WANTED_MIN = 0.1  # of 1: what a question wants less is noise


@dataclass(frozen=True, slots=True)
class Direction:
    """In the space of the memories' embeddings. `offset` + cosine: how much a memory is of the wanted kinds."""

    vector: Vector
    offset: float


@dataclass(frozen=True, slots=True)
class WantedKinds:
    """`of_question`, `of_fact`: shape (dimension + 1, attributes); the last row is the bias."""

    of_question: Floats
    of_fact: Floats

    def direction(self, question: Vector) -> Direction | None:
        """From the embedding of a question; None if it wants no kind of fact, or for another dimension."""
        if len(question) + 1 != len(self.of_question):
            return None
        wanted = np.clip(question @ self.of_question[:-1] + self.of_question[-1], 0.0, 1.0)
        wanted[wanted < WANTED_MIN] = 0.0
        if not wanted.any():
            return None
        found = self.of_fact @ wanted
        return Direction(found[:-1], float(found[-1]))


@cache
def wanted_kinds() -> WantedKinds:
    """The packaged models."""
    with as_file(files("memory.recall.ranking") / SHIPPED) as path, np.load(path, allow_pickle=False) as arrays:
        of_question, of_fact = (arrays[name].astype(np.float32) for name in ("of_question", "of_fact"))
    return WantedKinds(of_question, of_fact)


def fitted(inputs: npt.NDArray[np.float64], targets: npt.NDArray[np.float64], *, ridge: float) -> Floats:
    """Ridge regression. Shapes (n, dimension), (n, attributes) and, with the bias, (dimension + 1, attributes)."""
    middle = inputs.mean(axis=0)
    centred = inputs - middle
    penalised = centred.T @ centred + ridge * np.eye(inputs.shape[1])
    weights = np.linalg.solve(penalised, centred.T @ (targets - targets.mean(axis=0)))
    return np.vstack([weights, targets.mean(axis=0) - middle @ weights]).astype(np.float32)
