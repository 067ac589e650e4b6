"""How much a message needs each memory: the log odds that an answer profits from it, in any language.

"What should I cook on Friday?" shares no word with "nuts make my throat swell", and their embeddings are not near each
other; "help me decline an invitation" is near "I hate meetings" and needs nothing. A bilinear form over both embeddings
says which kinds of facts a message needs, and how much it needs any. It is a direction in the space of the memories,
so that all memories are judged by one product. Trained by `bench/train_needed.py`, for the packaged embedding model,
and by the same command for another one. No IO but the files of weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path

import numpy as np
import numpy.typing as npt

from memory.model import Vector

Floats = npt.NDArray[np.float32]
SHIPPED = "needed_weights.npz"
ARRAYS = ("of_question", "of_fact", "question", "fact")  # of a file


@dataclass(frozen=True, slots=True)
class Direction:
    """In the space of the memories' embeddings. `offset` + product: how much the message needs a memory."""

    vector: Vector
    offset: float


@dataclass(frozen=True, slots=True)
class Needs:
    of_question: Floats  # shape (dimension, rank)
    of_fact: Floats
    question: Floats  # shape (dimension,): what each adds by itself
    fact: Floats
    constant: float
    topic: float  # the share of the topical evidence that is added to all this

    def direction(self, question: Vector) -> Direction | None:
        """From the embedding of a question; None for another dimension."""
        if len(question) != len(self.question):
            return None
        vector = self.of_fact @ (question @ self.of_question) + self.fact
        return Direction(vector, float(question @ self.question) + self.constant)


@cache
def packaged() -> Needs:
    with as_file(files("memory.recall.ranking") / SHIPPED) as path:
        return read(path)


def read(path: Path) -> Needs:
    """Raises `OSError`, `KeyError` or `ValueError` for what is no such file."""
    with np.load(path, allow_pickle=False) as arrays:
        of_question, of_fact, question, fact = (arrays[name].astype(np.float32) for name in ARRAYS)
        return Needs(of_question, of_fact, question, fact, float(arrays["constant"]), float(arrays["topic"]))


def write(needs: Needs, path: Path) -> None:
    """In half precision."""
    halves = {name: getattr(needs, name).astype(np.float16) for name in ARRAYS}
    np.savez_compressed(path, **halves, constant=np.float32(needs.constant), topic=np.float32(needs.topic))
