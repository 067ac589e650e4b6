"""Trains what tells decisions, open questions and errands apart among a user's sentences.

`python bench/train_sentence_kinds.py`, after a change of the sentences in `bench/sentence_kinds/` (`kind<TAB>sentence`,
one file a language), of the phrases of signals or of the texts in `bench/reader/`; a minute. Statements, instructions
and orders are what the reader's training texts mark as such, and others what they do not mark; requests are also what
the signals' phrases ask. Prints, from five-fold cross-validation, what is found of each kind at each score, and what is
right by language.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from pathlib import Path

import numpy as np
import numpy.typing as npt
from rich.progress import track

from memory.adapters.models.embedding_model import prepared
from memory.adapters.models.onnx_embedder import OnnxModel
from memory.learn.reading.units import units_of
from memory.recall.signals.classifier import SignalLabel
from memory.recall.signals.phrases import training_phrases
from memory.sessions.compaction.sentence_kinds import KINDS, SHIPPED, TOLD, SentenceKind
from memory.settings import EmbeddingSettings
from memory.settings.loader import from_process

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "reader"))
import texts as corpus  # noqa: E402 - the texts of the reader lie in a folder of their own

FOLDS, SEED, RIDGE = 5, 7, 0.3
THREADS = 4
THRESHOLDS = (0.3, 0.4, 0.45, 0.5, 0.6)
STATING = ("state", "remember", "correct")
KIND_OF_ACT = {
    **dict.fromkeys(STATING, SentenceKind.STATEMENT),
    **dict.fromkeys(("forget", "withhold"), SentenceKind.ORDER),
    "instruct": SentenceKind.INSTRUCTION,
}
LETTERS_MIN = 8  # of a sentence that says something
CHOSEN = ("decision", "goal")  # categories of the reader that may be decisions: no examples against them
CHARACTERS_MAX = 300
DRAWN_MAX = 800  # sentences of a kind from other corpora: more of them change little
Floats = npt.NDArray[np.float64]


def sentences() -> list[tuple[SentenceKind, str, str]]:
    """Kind, language ("" for those of other corpora) and words, each once."""
    own = [
        (SentenceKind(kind), path.stem, text)
        for path in sorted((HERE / "sentence_kinds").glob("*.tsv"))
        for kind, _, text in (line.partition("\t") for line in path.read_text("utf-8").splitlines())
    ]
    drawn: dict[SentenceKind, dict[str, None]] = {}
    for kind, text in (*_asked(), *_of_corpus()):
        drawn.setdefault(kind, {})[text] = None
    generator = np.random.default_rng(SEED)
    for kind, texts in sorted(drawn.items()):
        given = list(texts)
        chosen = sorted(generator.permutation(len(given))[:DRAWN_MAX])
        own += [(kind, "", given[place]) for place in chosen]
    return list({text: (kind, language, text) for kind, language, text in reversed(own)}.values())


def _asked() -> Iterator[tuple[SentenceKind, str]]:
    for phrase in training_phrases():
        is_talk = phrase.label in (SignalLabel.GREETING, SignalLabel.SMALLTALK)
        yield SentenceKind.OTHER if is_talk else SentenceKind.REQUEST, phrase.text


def _of_corpus() -> Iterator[tuple[SentenceKind, str]]:
    for message in corpus.all_messages():
        for span in message.spans:
            is_choice = span.category in CHOSEN or span.attribute == "plan"
            if span.act in KIND_OF_ACT and not (span.act in STATING and is_choice):
                yield KIND_OF_ACT[span.act], message.text[span.start : span.end].strip()[:CHARACTERS_MAX]
        for unit in units_of(message.text):
            is_marked = any(span.start < unit.end and unit.start < span.end for span in message.spans)
            if not is_marked and len(unit.text) > LETTERS_MIN and not unit.text.rstrip().endswith(("?", "？")):
                yield SentenceKind.OTHER, unit.text.strip()[:CHARACTERS_MAX]


def main() -> None:
    model = OnnxModel(prepared(EmbeddingSettings().model, from_process(None, {}).models_path))
    given = sentences()
    texts = [model.prefixes.document + text for _, _, text in given]
    with ThreadPoolExecutor(THREADS) as threads:
        embedded = track(threads.map(model.vector, texts), description="embedding", total=len(texts))
        vectors = np.stack(list(embedded))
    truth = np.array([KINDS.index(kind) for kind, _, _ in given])
    _cross_validate(given, vectors.astype(np.float64), truth)
    target = Path(str(files("memory.sessions.compaction") / SHIPPED))
    np.savez_compressed(target, weights=_fitted(vectors.astype(np.float64), truth).astype(np.float16))
    print(f"{SHIPPED}: {len(given)} sentences, {target.stat().st_size >> 10} KiB")


def _fitted(vectors: Floats, truth: npt.NDArray[np.int_]) -> Floats:
    """Ridge regression in which each kind weighs the same, shape (dimension + 1, kinds)."""
    targets = np.eye(len(KINDS))[truth]
    shares = (1.0 / targets.sum(axis=0))[truth]
    shares *= len(truth) / shares.sum()
    middle, level = np.average(vectors, axis=0, weights=shares), np.average(targets, axis=0, weights=shares)
    centred = (vectors - middle) * np.sqrt(shares)[:, None]
    wanted = (targets - level) * np.sqrt(shares)[:, None]
    penalised = centred.T @ centred + RIDGE * np.eye(vectors.shape[1])
    weights = np.linalg.solve(penalised, centred.T @ wanted)
    return np.vstack([weights, level - middle @ weights])


def _cross_validate(given: list[tuple[SentenceKind, str, str]], vectors: Floats, truth: npt.NDArray[np.int_]) -> None:
    scores = np.zeros((len(given), len(KINDS)))
    order = np.random.default_rng(SEED).permutation(len(given))
    for fold in range(FOLDS):
        kept = order[fold::FOLDS]
        weights = _fitted(np.delete(vectors, kept, 0), np.delete(truth, kept))
        scores[kept] = vectors[kept] @ weights[:-1] + weights[-1]
    best, is_told = scores.argmax(axis=1), np.array([kind in TOLD for kind in KINDS])
    for threshold in THRESHOLDS:
        found, told = scores[:, is_told].sum(axis=1) >= threshold, is_told[truth]
        print(
            f"told from {threshold}: {int((found & told).sum())} of {int(told.sum())} found, "
            f"{int((found & ~told).sum())} of {int((~told).sum())} wrongly taken"
        )
    for place, kind in enumerate(KINDS):
        for threshold in THRESHOLDS:
            found = (best == place) & (scores[:, place] >= threshold)
            print(
                f"{kind} from {threshold}: {int((found & (truth == place)).sum())} of {int((truth == place).sum())} "
                f"found, {int((found & (truth != place)).sum())} of {int((truth != place).sum())} wrongly taken"
            )
    for language in sorted({one for _, one, _ in given if one}):
        rows = [row for row, (_, one, _) in enumerate(given) if one == language]
        print(f"{language}: {np.mean(best[rows] == truth[rows]):.2f} of {len(rows)} right")


if __name__ == "__main__":
    main()
