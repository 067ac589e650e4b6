"""Trains what tells which kinds of facts a question wants, and which kind a memory is of.

`python bench/train_wanted.py`, after a change of the questions in `bench/wanted/` or of the texts in `bench/reader/`;
two minutes. Questions: `attributes<TAB>language<TAB>message`. Facts: what the reader's training texts mark. Prints,
from five-fold cross-validation, how often a fact of a wanted kind comes before one of another kind, by language.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from importlib.resources import files
from pathlib import Path

import numpy as np
import numpy.typing as npt
from rich.progress import track

from memory.adapters.models.embedding_model import prepared
from memory.adapters.models.onnx_embedder import OnnxModel
from memory.model import NO_ATTRIBUTE
from memory.recall.ranking.wanted import SHIPPED, WantedKinds, fitted
from memory.settings import EmbeddingSettings
from memory.settings.loader import from_process

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "reader"))
import texts as corpus  # noqa: E402 - the texts of the reader lie in a folder of their own

FOLDS, SEED = 5, 7
QUESTION_RIDGE, FACT_RIDGE = 1.0, 1.0
STATING = ("state", "remember", "correct", "wish")
CHARACTERS_MAX = 400  # of a fact
Floats = npt.NDArray[np.float64]


def questions() -> list[tuple[frozenset[str], str, str]]:
    """What each wants, its language and its words."""
    lines = (line for path in sorted((HERE / "wanted").glob("*.tsv")) for line in path.read_text("utf-8").splitlines())
    cells = (line.split("\t") for line in lines if line.strip())
    return [(frozenset(wanted.split()) - {NO_ATTRIBUTE}, language, text) for wanted, language, text in cells]


def facts() -> dict[str, str]:
    """Attribute by words."""
    found: dict[str, str] = {}
    for message in corpus.all_messages():
        for span in message.spans:
            if span.act in STATING and span.attribute != NO_ATTRIBUTE:
                found.setdefault(message.text[span.start : span.end].strip()[:CHARACTERS_MAX], span.attribute)
    return found


def main() -> None:
    model = OnnxModel(prepared(EmbeddingSettings().model, from_process(None, {}).models_path))
    asked, said = questions(), facts()
    names = sorted(set(said.values()))
    of_asked = _embedded(model, [model.prefixes.query + text for _, _, text in asked])
    of_said = _embedded(model, [model.prefixes.document + text for text in said])
    wanted = np.array([[float(name in one) for name in names] for one, _, _ in asked])
    kinds = np.array([[float(name == one) for name in names] for one in said.values()])
    of_fact = fitted(of_said, kinds, ridge=FACT_RIDGE)
    of_fact[-1] -= kinds.mean(axis=0)  # a fact of no particular kind counts as 0
    _cross_validate(asked, of_asked, wanted, of_said @ of_fact[:-1] + of_fact[-1], kinds)
    of_question = fitted(of_asked, wanted, ridge=QUESTION_RIDGE)
    target = Path(str(files("memory.recall.ranking") / SHIPPED))
    np.savez_compressed(target, of_question=of_question.astype(np.float16), of_fact=of_fact.astype(np.float16))
    print(
        f"{SHIPPED}: {len(asked)} questions, {len(said)} facts, {len(names)} kinds, {target.stat().st_size >> 10} KiB"
    )


def _embedded(model: OnnxModel, texts: list[str]) -> Floats:
    return np.stack([model.vector(text) for text in track(texts, description="embedding")]).astype(np.float64)


def _cross_validate(
    asked: list[tuple[frozenset[str], str, str]], vectors: Floats, wanted: Floats, judged: Floats, kinds: Floats
) -> None:
    order = np.random.default_rng(SEED).permutation(len(asked))
    shares: dict[str, list[float]] = defaultdict(list)
    for fold in range(FOLDS):
        kept = order[fold::FOLDS]
        trained = WantedKinds(
            fitted(np.delete(vectors, kept, 0), np.delete(wanted, kept, 0), ridge=QUESTION_RIDGE),
            np.eye(wanted.shape[1] + 1, wanted.shape[1], dtype=np.float32),
        )
        for row in kept[wanted[kept].any(axis=1)]:
            direction = trained.direction(vectors[row].astype(np.float32))
            scores = judged @ direction.vector if direction is not None else np.zeros(len(judged))
            is_wanted = (kinds @ wanted[row]) > 0
            shares[asked[row][1]].append(_in_order(scores[is_wanted], scores[~is_wanted]))
    for language, found in sorted(shares.items()):
        print(f"{language}: {np.mean(found):.3f} of pairs in order, {len(found)} questions")


def _in_order(higher: Floats, lower: Floats) -> float:
    """The share of pairs in which the first is more than the second."""
    ranks = np.searchsorted(np.sort(lower), higher, side="left") + np.searchsorted(np.sort(lower), higher, side="right")
    return float(ranks.mean() / 2 / len(lower))


if __name__ == "__main__":
    main()
