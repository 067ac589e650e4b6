"""A linear model over the words of a text and its embedding: what the classifiers among the signals have in common.

The embedding is computed for the search anyway, so using it costs a few microseconds; in languages without training
phrases it decides alone. Training is closed-form (ridge regression in its dual form): deterministic, and done in about
a second.

Three word lists separate general knowledge ("capital", "dynasty") from somebody's life ("landlord", "kickoff") and the
present moment ("nearby", "latest"). A weight is learnt for each list, so that words count that occur in no training
phrase. They are in the files of `topic_words`; the Chinese ones hold patterns. No IO but these.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from importlib.resources import files
from typing import ClassVar, Generic, Self, TypeAlias, TypeVar, cast

import numpy as np
import numpy.typing as npt

from memory.model import Vector
from memory.recall.ranking.lexical import UNSPACED, fold, unspaced_share
from memory.recall.signals.cues import without_quotes

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
    """Learnt weights of terms and of the dimensions of the embedding."""

    labels: ClassVar[Sequence[StrEnum]]  # one output each: near 1 for a text with that label, else near 0

    vocabulary: Mapping[str, int]
    rarity: Floats  # of each term, shape (terms,)
    term_weights: Floats  # shape (terms, outputs)
    vector_weights: Floats  # shape (dimension, outputs)
    bias: Floats  # shape (outputs,)

    @classmethod
    def fit(cls, phrases: Sequence[Phrase], vectors: Vector | None) -> Self:
        """`vectors`: shape (phrases, dimension); None: words alone. Takes a second for 2,000: run it in a thread."""
        texts = [phrase.text for phrase in phrases]
        targets = np.array([[float(phrase.label is label) for label in cls.labels] for phrase in phrases])
        assert vectors is None or len(texts) == len(vectors), "one embedding for each text"
        found = [sorted(set(features(text))) for text in texts]
        counts = Counter(term for terms in found for term in terms)
        vocabulary = {term: index for index, term in enumerate(sorted(counts))}
        rare = [np.log1p(len(texts) / counts[term]) * (TAG_WEIGHT if term[0] == "#" else 1.0) for term in vocabulary]
        rarity = np.array(rare, dtype=np.float32)
        rows = [np.array([vocabulary[term] for term in terms]) for terms in found]
        values = [rarity[row] / np.linalg.norm(rarity[row]) for row in rows]
        known = np.zeros((len(texts), 0), dtype=np.float32) if vectors is None else vectors
        weighted = known * VECTOR_WEIGHT
        kernel = _word_kernel(rows, values, len(vocabulary)) + weighted @ weighted.T + BIAS * BIAS
        dual = _ridge(kernel, targets)
        term_weights = np.zeros((len(vocabulary), targets.shape[1]), dtype=np.float32)
        for row, value, share in zip(rows, values, dual, strict=True):
            term_weights[row] += value[:, None] * share
        vector_weights = np.asarray(weighted.T @ dual * VECTOR_WEIGHT, dtype=np.float32)
        return cls(vocabulary, rarity, term_weights, vector_weights, bias=BIAS * BIAS * dual.sum(axis=0))

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
    """The similarity of every two phrases, term by term, as most terms occur in few of them. 1 on the diagonal."""
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
    yield from _topics(head, folded)


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


TOPIC_LISTS = ("now", "life", "world")  # of a word in two lists, the later one counts


def _listed(name: str) -> list[str]:
    return (files("memory.recall.signals") / "topic_words" / f"{name}.txt").read_text(encoding="utf-8").split()


_NAME_ALONE = re.compile(r"\b([A-Z][a-z]{1,11})(?:['’]s)?\b(?! (?:[A-Z]|I{1,3}\b|the Great))")
_NAMED = re.compile(r"(?:[A-Z][a-z]+|[Nn]ame|[Kk]ing|[Qq]ueen|[Pp]rince(?:ss)?|[Ss]aint|[Pp]ope) $")
_WORD = re.compile(r"[^\W_]+")
_DEFINITE = frozenset("the that this those der das den dem beim zum zur el la los las del al".split())
# Alone, they mean a person whom only the user knows ("can Jonas have nuts?").
_NAMES = frozenset(_listed("given_names"))
_KINDS = {word: f"#{kind}" for kind in TOPIC_LISTS for word in _listed(kind)}
_CHINESE = {f"#{kind}": re.compile("|".join(_listed(f"{kind}_zh"))) for kind in reversed(TOPIC_LISTS)}


def _topics(text: str, folded: str) -> Iterator[str]:
    """`#world`, `#life`, `#now` (`#the-life` after an article), `#somebody` for a lone given name. `folded`: it."""
    for name in _NAME_ALONE.finditer(text):
        if name[1].casefold() in _NAMES and not _NAMED.search(text, 0, name.start()):
            yield "#somebody"
    words = _WORD.findall(folded)
    for position, kind in enumerate(map(_KINDS.get, words)):
        if kind is not None:
            yield kind
            if not _DEFINITE.isdisjoint(words[max(0, position - 2) : position]):
                yield f"#the-{kind[1:]}"
    if not folded.isascii():
        yield from (kind for kind, pattern in _CHINESE.items() if pattern.search(folded))
