"""A linear model over the words of a text and its embedding: what the classifiers of stage 6 have in common.

The embedding is computed for the search anyway, so using it costs a few microseconds; in languages without training
phrases it decides alone. Training is closed-form (ridge regression in its dual form): deterministic, and done in about
a second. No IO.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Generic, Self, TypeAlias, TypeVar, cast

import numpy as np
import numpy.typing as npt

from memory.model import Vector
from memory.recall.ranking.lexical import UNSPACED, fold, unspaced_share
from memory.recall.signals.cues import without_quotes
from memory.recall.signals.topics import topics

CHARACTERS_MAX = 240  # people open with what they want; the rest of a long message decides nothing and costs time
RIDGE = 0.5  # of penalty; the same within a factor of two
VECTOR_WEIGHT = 1.0  # of the embedding against the words, which have length 1
BIAS = 0.5
TAG_WEIGHT = 1.5  # weight of a word class or shape ("#world", "#question") relative to a word

_TOKEN = re.compile(f"(?P<run>[{UNSPACED}]+)|(?P<word>[^\\W_{UNSPACED}]+)")
_PREFIX = 5  # characters: "recommend" and "recommendation", "recomienda" and "recomiéndame"

Floats: TypeAlias = npt.NDArray[np.float32]
Indices: TypeAlias = npt.NDArray[np.int_]

Label = TypeVar("Label", bound=StrEnum)


@dataclass(frozen=True, slots=True)
class Phrase:
    """One training example. `label`: None for one that has none of the model's labels."""

    text: str
    label: StrEnum | None


@dataclass(frozen=True, slots=True)
class LinearModel(Generic[Label]):
    """Learnt weights: one row per known term, then one per dimension of the embedding, then the bias.

    One output for each of `labels`: near 1 for a text with that label, else near 0.
    """

    labels: ClassVar[Sequence[StrEnum]]

    vocabulary: Mapping[str, int]
    rarity: Floats  # of each term, shape (terms,)
    term_weights: Floats  # shape (terms, outputs)
    vector_weights: Floats  # shape (dimension, outputs)
    bias: Floats  # shape (outputs,)

    @classmethod
    def fit(cls, phrases: Sequence[Phrase], vectors: Vector | None) -> Self:
        """`vectors`: of the phrases, shape (phrases, dimension); None: on their words alone.

        Takes about a second for two thousand phrases: run it in a thread.
        """
        texts = [phrase.text for phrase in phrases]
        targets = np.array([[float(phrase.label is label) for label in cls.labels] for phrase in phrases])
        assert vectors is None or len(texts) == len(vectors), "one embedding for each text"
        found = [sorted(set(features(text))) for text in texts]
        counts = Counter(term for terms in found for term in terms)
        vocabulary = {term: index for index, term in enumerate(sorted(counts))}
        rarity = np.array(
            [np.log1p(len(texts) / counts[term]) * (TAG_WEIGHT if term[0] == "#" else 1.0) for term in vocabulary],
            dtype=np.float32,
        )
        rows = [np.array([vocabulary[term] for term in terms]) for terms in found]
        values = [rarity[row] / np.linalg.norm(rarity[row]) for row in rows]
        known = np.zeros((len(texts), 0), dtype=np.float32) if vectors is None else vectors
        weighted = known * VECTOR_WEIGHT
        kernel = _word_kernel(rows, values, len(vocabulary)) + weighted @ weighted.T + BIAS * BIAS
        dual = _ridge(kernel, targets)
        term_weights = np.zeros((len(vocabulary), targets.shape[1]), dtype=np.float32)
        for row, value, share in zip(rows, values, dual, strict=True):
            term_weights[row] += value[:, None] * share
        return cls(
            vocabulary=vocabulary,
            rarity=rarity,
            term_weights=term_weights,
            vector_weights=np.asarray(weighted.T @ dual * VECTOR_WEIGHT, dtype=np.float32),
            bias=BIAS * BIAS * dual.sum(axis=0),
        )

    def scores(self, text: str, vector: Vector | None) -> dict[Label, float]:
        """By label. `vector`: the text's embedding, or that of the query made from it; None without one."""
        found = [index for term in set(features(text)) if (index := self.vocabulary.get(term)) is not None]
        total = self.bias.copy()
        if found:
            weights = self.rarity[found]
            total += (weights @ self.term_weights[found]) / float(np.linalg.norm(weights))
        if vector is not None and len(self.vector_weights):
            total += vector @ self.vector_weights
        return dict(zip(cast("Sequence[Label]", self.labels), total.tolist(), strict=True))


def _word_kernel(rows: Sequence[Indices], values: Sequence[Floats], terms: int) -> Floats:
    """The similarity of every two phrases, shape (phrases, phrases), 1 on the diagonal.

    Computed term by term, because most terms occur in few phrases: the full matrix would have 40 million cells.
    """
    holders: list[list[int]] = [[] for _ in range(terms)]
    weights: list[list[float]] = [[] for _ in range(terms)]
    for phrase, (row, value) in enumerate(zip(rows, values, strict=True)):
        for term, weight in zip(row.tolist(), value.tolist(), strict=True):
            holders[term].append(phrase)
            weights[term].append(weight)
    kernel = np.zeros((len(rows), len(rows)), dtype=np.float32)
    for phrases, shares in zip(holders, weights, strict=True):
        if len(phrases) > 1:
            share = np.array(shares, dtype=np.float32)
            kernel[np.ix_(phrases, phrases)] += np.outer(share, share)
    kernel[np.diag_indices_from(kernel)] = 1.0
    return kernel


def _ridge(kernel: Floats, targets: npt.NDArray[np.float64]) -> Floats:
    """Dual weights, shape (texts, outputs)."""
    penalised = kernel.astype(np.float64)
    penalised[np.diag_indices_from(penalised)] += RIDGE
    return np.asarray(np.linalg.solve(penalised, targets), dtype=np.float32)


def features(text: str) -> Iterator[str]:
    """The features of a message: words, word pairs, the opening, characters and the shape."""
    head = without_quotes(text[:CHARACTERS_MAX])
    folded = fold(head)
    before = "^"
    for position, match in enumerate(_TOKEN.finditer(folded)):
        if run := match["run"]:
            yield from _characters(run, is_first=position == 0)
            before = run[-1]
        else:
            word = match["word"]
            word = "0" if word.isdigit() else word
            yield word
            yield f"{before} {word}"
            if len(word) > _PREFIX:
                yield f"{word[:_PREFIX]}-"
            before = word
    yield f"{before} $"
    yield from _shape(head)
    yield from topics(head, folded)


def _characters(run: str, *, is_first: bool) -> Iterator[str]:
    marked = f"{'^' if is_first else '|'}{run}$"
    for size in (1, 2, 3):
        for start in range(len(marked) - size + 1):
            yield marked[start : start + size]


_NAME = re.compile(r"(?<=[a-zäöüßáéíóúñ,] )[A-ZÁÉÍÓÚÑ][a-záéíóúñ]+(?P<possessive>['’]s)?")


def _shape(text: str) -> Iterator[str]:
    stripped = text.rstrip()
    if stripped.endswith(("?", "？")):
        yield "#question"
    if stripped.endswith(("!", "！")):
        yield "#exclamation"
    length = len(text) * (3 if unspaced_share(text[:CHARACTERS_MAX]) > 0.5 else 1)
    yield f"#length{min(length // 20, 4)}"
    for name in _NAME.finditer(text):
        yield "#name's" if name["possessive"] else "#name"
