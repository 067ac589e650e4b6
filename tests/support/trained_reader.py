"""The product's own trained reader with the weights that are shipped, and an encoder that says what it was told to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np

from memory.adapters.models.reader_weights import prepared
from memory.adapters.models.statement_encoder import OnnxStatementEncoder
from memory.learn.reading.judgements import Judgement
from memory.learn.reading.labels import ACTS, PAIR_RELATIONS, REACHES
from memory.learn.reading.trained import TrainedReader
from memory.model import Vector
from memory.ports import OrderReach
from memory.settings.loader import from_process


@cache
def statement_encoder() -> OnnxStatementEncoder:
    """Merged once and loaded once a test process."""
    return OnnxStatementEncoder(prepared(from_process(None, {}).models_path))


@cache
def trained_reader() -> TrainedReader:
    return TrainedReader(statement_encoder())


class FixedEncoder:
    """Says the same of every pair, and nothing of any unit; remembers what it saw."""

    version = "fixed"

    def __init__(self, **shares: float) -> None:
        self._shares = [shares.get(relation, 0.0) for relation in PAIR_RELATIONS]
        self.texts: list[str] = []
        self.before: list[str] = []
        self.pairs: list[tuple[str, str]] = []

    def judge(self, texts: Sequence[str], before: str) -> list[Judgement]:
        self.texts += texts
        self.before.append(before)
        acts = {act: float(act == "none") for act in ACTS}
        return [Judgement(acts, "none", 1.0, "user", "fact", ()) for _ in texts]

    def leaning(self, texts: Sequence[str]) -> list[float]:
        return [0.0] * len(texts)

    def reaches(self, orders: Sequence[str]) -> list[Mapping[OrderReach, float]]:
        return [{reach: float(reach is OrderReach.TOPIC) for reach in REACHES} for _ in orders]

    def relate(self, pairs: Sequence[tuple[str, str]]) -> Vector:
        self.pairs += pairs
        return np.array([self._shares] * len(pairs), dtype=np.float32)
