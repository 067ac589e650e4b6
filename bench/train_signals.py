"""Trains the classifiers of signals and of kinds of questions, and writes the packaged files.

`python bench/train_signals.py`, after every change of the phrases in `memory/recall/signals/` or of the features.
Prints what five-fold cross-validation on the phrases shows: of the first, by language, how many decisions are right,
and of the phrases that want memory, how many are not searched for; of the second, the errors by kind and threshold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.progress import track

from memory.adapters.models import classifier_file
from memory.adapters.models.embedding_model import prepared
from memory.adapters.models.onnx_embedder import OnnxModel
from memory.model import Conversation, Message, Role, Vector
from memory.recall.signals.classifier import KINDS, QuestionClassifier, SignalClassifier, SignalLabel
from memory.recall.signals.linear_model import LinearModel, Phrase
from memory.recall.signals.phrases import LANGUAGES, phrases_of, question_phrases, training_phrases
from memory.recall.signals.search_decision import decide
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
    _cross_validate_decisions(signals, known)
    _cross_validate(questions, vectors)


def _cross_validate_decisions(phrases: Sequence[Phrase], known: Mapping[str, Vector]) -> None:
    vectors, searched = np.stack([known[phrase.text] for phrase in phrases]), np.zeros(len(phrases), dtype=bool)
    for fold in range(FOLDS):
        inside = [index for index in range(len(phrases)) if index % FOLDS != fold]
        classifier = SignalClassifier.fit([phrases[index] for index in inside], vectors[inside])
        for index in range(fold, len(phrases), FOLDS):
            asked = Conversation(messages=(Message(Role.USER, phrases[index].text),))
            searched[index] = decide(asked, vector=vectors[index], classifier=classifier).search
    wanted = np.array([phrase.label is not None and SignalLabel(phrase.label).wants_memory for phrase in phrases])
    for language, of in (*((one, phrases_of(one)) for one in LANGUAGES), ("all", phrases)):
        texts = {phrase.text for phrase in of}
        here = np.array([phrase.text in texts for phrase in phrases])
        right = (searched == wanted)[here].mean()
        print(
            f"{language}: {right:.3f} of {here.sum()} right, {(~searched)[here & wanted].mean():.3f} of searches missed"
        )


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
