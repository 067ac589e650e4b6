"""Trains the classifiers of signals and of kinds of questions, and writes the packaged files.

`python bench/train_signals.py`, after every change of the phrases in `memory/recall/signals/` or of the features.
Prints the errors of the second in five-fold cross-validation on its own phrases, by kind and threshold.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.progress import track

from memory.adapters.models import classifier_file
from memory.adapters.models.embedding_model import prepared
from memory.adapters.models.onnx_embedder import OnnxModel
from memory.model import Vector
from memory.recall.signals.classifier import KINDS, QuestionClassifier, SignalClassifier
from memory.recall.signals.linear_model import LinearModel, Phrase
from memory.recall.signals.phrases import question_phrases, training_phrases
from memory.settings import EmbeddingSettings
from memory.settings.loader import from_process

FOLDER = Path(__file__).resolve().parent.parent / "memory" / "recall" / "signals"
FOLDS = 5
THRESHOLDS = (0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55)


def main() -> None:
    name = EmbeddingSettings().model
    model = OnnxModel(prepared(name, from_process(None, {}).models_path))
    signals, questions = training_phrases(), question_phrases()
    texts = dict.fromkeys(phrase.text for phrase in (*signals, *questions))
    known = {text: model.vector(model.prefixes.query + text) for text in track(texts, description="embedding phrases")}
    fitted = SignalClassifier.fit(signals, np.stack([known[phrase.text] for phrase in signals]))
    _write(classifier_file.SHIPPED, fitted, classifier_file.fingerprint(name, signals), len(signals))
    vectors = np.stack([known[phrase.text] for phrase in questions])
    of_questions = QuestionClassifier.fit(questions, vectors)
    _write(
        classifier_file.SHIPPED_QUESTIONS, of_questions, classifier_file.fingerprint(name, questions), len(questions)
    )
    _cross_validate(questions, vectors)


def _write(file: str, classifier: LinearModel[Any], trained_on: str, phrases: int) -> None:
    target = FOLDER / file
    classifier_file.write_classifier(target, classifier, trained_on=trained_on)
    print(f"{file}: {phrases} phrases, {len(classifier.vocabulary)} terms, {target.stat().st_size / 1024:.0f} KiB")


def _cross_validate(phrases: Sequence[Phrase], vectors: Vector) -> None:
    scores = np.zeros((len(phrases), len(KINDS)))
    for fold in range(FOLDS):
        inside = [index for index in range(len(phrases)) if index % FOLDS != fold]
        classifier = QuestionClassifier.fit([phrases[index] for index in inside], vectors[inside])
        for index in range(fold, len(phrases), FOLDS):
            scores[index] = list(classifier.scores(phrases[index].text, vectors[index]).values())
    for place, kind in enumerate(KINDS):
        truth = np.array([phrase.label is kind for phrase in phrases])
        for threshold in THRESHOLDS:
            found = scores[:, place] >= threshold
            print(
                f"{kind} from {threshold}: {int((truth & ~found).sum())} of {int(truth.sum())} missed, "
                f"{int((~truth & found).sum())} of {int((~truth).sum())} wrongly taken"
            )


if __name__ == "__main__":
    main()
