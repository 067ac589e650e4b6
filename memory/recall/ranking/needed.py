"""How much a message needs each memory: the log odds that an answer profits from it, in any language.

"What should I cook on Friday?" shares no word with "nuts make my throat swell", and their embeddings are not near each
other; "help me decline an invitation" is near "I hate meetings" and needs nothing. The message's embedding and a hidden
layer over it say which kinds of facts it needs, and how much it needs any. The outcome is a direction in the space of
the memories, so that all memories are judged by one product. Trained by `bench/train_needed.py`, for the packaged
embedding model, and by the same command for another one. No IO but the files of weights.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

from memory.model import Vector

Floats = npt.NDArray[np.float32]
SHIPPED = "needed_weights.npz"
ARRAYS = ("hidden", "bias", "of_question", "question", "of_fact", "fact")  # of a file


@dataclass(frozen=True, slots=True)
class Direction:
    """In the space of the memories' embeddings. `offset` + product: how much the message needs a memory."""

    vector: Vector
    offset: float


@dataclass(frozen=True, slots=True)
class Needs:
    hidden: Floats  # shape (dimension, units): applied to a message
    bias: Floats  # shape (units,)
    of_question: Floats  # shape (dimension + units, rank): applied to a message and its units
    question: Floats  # shape (dimension + units,): what a message adds by itself
    of_fact: Floats  # shape (dimension, rank)
    fact: Floats  # shape (dimension,): what a fact adds by itself
    constant: float
    topic: float  # the share of the topical evidence that is added to all this

    def direction(self, question: Vector) -> Direction | None:
        """From the embedding of a question; None for another dimension."""
        if len(question) != len(self.hidden):
            return None
        asked: Vector = np.concatenate((question, np.maximum(question @ self.hidden + self.bias, 0.0)))
        vector = self.of_fact @ (asked @ self.of_question) + self.fact
        return Direction(vector, float(asked @ self.question) + self.constant)


@cache
def packaged() -> Needs:
    with as_file(files("memory.recall.ranking") / SHIPPED) as path:
        return read(path)


def read(path: Path) -> Needs:
    """Raises `OSError`, or `ValueError` for what is no such file."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            floats = {name: arrays[name].astype(np.float32) for name in ARRAYS}
            return Needs(**floats, constant=float(arrays["constant"]), topic=float(arrays["topic"]))
    except (LookupError, TypeError, AttributeError, EOFError, BadZipFile, zlib.error) as error:
        raise ValueError(f"no weights of what a message needs: {error}") from error


def write(needs: Needs, path: Path) -> None:
    """In half precision."""
    halves = {name: getattr(needs, name).astype(np.float16) for name in ARRAYS}
    np.savez_compressed(path, **halves, constant=np.float32(needs.constant), topic=np.float32(needs.topic))
