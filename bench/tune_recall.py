"""Fits the ranking's weights on long talks, each talk scored with weights fitted on the others.

`python bench/tune_recall.py LOCOMO.json [--vectors CACHE.npz]`; a minute on one core, some of it the embedding. Prints
the weights of every fold next to those of `memory/recall/ranking/weights.py`, and what each talk scores with either.
The bars are those of what was fitted on the others.

The fit: for each question a softmax over all turns of its talk, the evidence turns sharing the target, a small ridge,
Newton steps to convergence. There is one weight per feature, and nothing else is fitted.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from report import Bar, Report, Sheet, bench_parser
from rich.console import Console
from rich.progress import track

from memory.adapters.models.embedding_model import prepared
from memory.adapters.models.onnx_embedder import OnnxModel
from memory.evaluation.dataset import USER, Talk, read_talks
from memory.evaluation.recall import characters
from memory.evaluation.score import CHARACTERS_PER_TOKEN, evidence_recall, mean
from memory.model import Query, Question, Record, Scope, Vector
from memory.recall.ranking.corpus import Corpus
from memory.recall.ranking.features import add_vector_features, text_features
from memory.recall.ranking.ranking import Budget, rank, select
from memory.recall.ranking.weights import RankingWeights, Weights
from memory.settings import EmbeddingSettings
from memory.settings.loader import from_process

FITTED = (
    "dense", "lexical", "needed", "speaker", "window_dense", "window_lexical", "session_dense",
    "session_lexical", "answer", "time", "when", "dated", "question", "first_person",
)  # fmt: skip
RIDGE = 1e-3  # keeps a kind that hardly varies from running away
NEWTON_STEPS = 12
BUDGET = 800
BARS = (  # each talk with weights fitted on the others
    Bar("recall@5", at_least=0.65),
    Bar("recall@10", at_least=0.76),
    Bar(f"{BUDGET} tokens", at_least=0.83),
)
CONSOLE = Console(stderr=True)
Floats = npt.NDArray[np.float64]


class TalkEvidence:
    """One talk with the evidence for each of its questions, shape `(turns, kinds)` each."""

    def __init__(self, talk: Talk, vectors: dict[str, Vector]) -> None:
        self.talk, self.vectors = talk, vectors
        records = (Record(memory, vectors[memory.content]) for memory in talk.memories)
        self.corpus = Corpus(records, dimension=len(next(iter(vectors.values()))))
        layout = self.corpus.prepare()
        self.places = {memory.id: place for place, memory in enumerate(talk.memories)}
        rows = {self.places[memory.id]: row for row, memory in enumerate(layout.memories)}
        self.questions: list[tuple[Floats, list[int]]] = []
        for question in talk.questions:
            if question.evidence:
                asked = Question(Query(question.text), Scope(USER), talk.asked_at)
                reading = text_features(self.corpus, layout, asked)
                found = add_vector_features(self.corpus, reading, vectors[question.text], needs=None)
                kinds = np.stack([found.arrays[name] for name in FITTED], axis=1).astype(np.float64)
                self.questions.append((kinds, [rows[place] for place in question.evidence]))

    def scores(self, weights: Weights) -> dict[str, float | None]:
        """The figures of this talk with these weights."""
        found: dict[str, list[float]] = {"recall@5": [], "recall@10": [], f"{BUDGET} tokens": []}
        for question in self.talk.questions:
            ranked = rank(
                self.corpus,
                Question(Query(question.text), Scope(USER), self.talk.asked_at),
                self.vectors[question.text],
                ranking=RankingWeights(weights=weights),
            )
            best = [self.places[candidate.memory.id] for candidate in ranked.candidates]
            filled = select(ranked, Budget(int(BUDGET * CHARACTERS_PER_TOKEN), is_filled=True), tokens=characters)
            chosen = [self.places[candidate.memory.id] for candidate in filled.candidates]
            for name, returned in zip(found, (best[:5], best[:10], chosen), strict=True):
                found[name].append(evidence_recall(question, returned))
        return {name: mean(values) for name, values in found.items()}


def fitted(talks: list[TalkEvidence]) -> Weights:
    """The most likely weights for the evidence of these talks; kinds that a talk cannot teach keep their value."""
    weights = np.zeros(len(FITTED))
    count = sum(len(talk.questions) for talk in talks)
    for _ in range(NEWTON_STEPS):
        gradient, curvature = -2 * RIDGE * weights, 2 * RIDGE * np.eye(len(FITTED))
        for talk in talks:
            for kinds, evidence in talk.questions:
                score = kinds @ weights
                odds = np.exp(score - score.max())
                odds /= odds.sum()
                expected = odds @ kinds
                gradient += (kinds[evidence].mean(axis=0) - expected) / count
                curvature += ((kinds * odds[:, None]).T @ kinds - np.outer(expected, expected)) / count
        step = np.linalg.solve(curvature, gradient)
        weights += step * min(1.0, 2.0 / max(1e-9, float(np.abs(step).max())))
    return replace(Weights(), **dict(zip(FITTED, weights.round(3).tolist(), strict=True)))


def embedded(talks: list[Talk], cache: Path | None) -> dict[str, Vector]:
    questions = {question.text for talk in talks for question in talk.questions}
    different = sorted(questions | {memory.content for talk in talks for memory in talk.memories})
    if cache and cache.exists():
        stored = np.load(cache)
        known = dict(zip(stored["texts"].tolist(), stored["vectors"], strict=True))
        if known.keys() >= set(different):
            return known
    model = OnnxModel(prepared(EmbeddingSettings().model, from_process(None, {}).models_path))
    wanted = [model.prefixes.of(as_query=text in questions) + text for text in different]
    vectors = np.stack([model.vector(text) for text in track(wanted, description="embedding", console=CONSOLE)])
    if cache:
        np.savez(cache, texts=np.array(different), vectors=vectors)
    return dict(zip(different, vectors, strict=True))


def main() -> int:
    parser = bench_parser("tune_recall", __doc__)
    parser.add_argument("talks", type=Path)
    parser.add_argument("--vectors", type=Path)
    arguments = parser.parse_args()
    report = Report("tune_recall", BARS, arguments.json)
    talks = read_talks(arguments.talks)
    vectors = embedded(talks, arguments.vectors)
    gathered = [TalkEvidence(talk, vectors) for talk in track(talks, description="evidence", console=CONSOLE)]
    folds = []
    for held_out in track(gathered, description="fitting", console=CONSOLE):
        weights = fitted([talk for talk in gathered if talk is not held_out])
        folds.append(
            {
                "talk": held_out.talk.id,
                "questions": len(held_out.talk.questions),
                "weights": {name: getattr(weights, name) for name in FITTED},
                "fitted_on_others": held_out.scores(weights),
                "shipped": held_out.scores(Weights()),
            }
        )
    overall = {kind: _overall(folds, kind) for kind in ("fitted_on_others", "shipped")}
    return report.finish({"folds": folds, "all": overall}, sheets(folds, overall), overall["fitted_on_others"])


def _overall(folds: list[dict[str, Any]], kind: str) -> dict[str, float]:
    """Over all questions, as if they were one talk."""
    total = sum(fold["questions"] for fold in folds)
    return {name: round(sum(f[kind][name] * f["questions"] for f in folds) / total, 4) for name in folds[0][kind]}


def sheets(folds: Sequence[Mapping[str, Any]], overall: Mapping[str, Mapping[str, float]]) -> list[Sheet]:
    shipped = Weights()
    weights = [(name, *(fold["weights"][name] for fold in folds), getattr(shipped, name)) for name in FITTED]
    rows = [(fold["talk"], fold) for fold in folds] + [("all", overall)]
    scores = [
        (talk, kind.replace("_", " "), *fold[kind].values())
        for talk, fold in rows
        for kind in ("fitted_on_others", "shipped")
    ]
    return [
        Sheet("weights", ("weight", *(fold["talk"] for fold in folds), "shipped"), weights),
        Sheet("scores", ("talk", "weights", *folds[0]["shipped"]), scores),
    ]


if __name__ == "__main__":
    sys.exit(main())
