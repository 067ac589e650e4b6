"""The packaged classifiers: trained for the default embedding model, so that processes need not train them.

Weights depend on the training phrases and the embedding model, whose fingerprint is in the file. If it does not match,
the process trains its own classifier. `bench/train_signals.py` writes the files.
"""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Iterable
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np

from memory.recall.signals.classifier import QuestionClassifier, SignalClassifier
from memory.recall.signals.linear_model import LinearModel, Phrase
from memory.recall.signals.phrases import question_phrases, training_phrases

SHIPPED, SHIPPED_QUESTIONS = "signal_weights.npz", "question_weights.npz"
FORMAT = 2  # of the file and of the features: increase it when either changes

T = TypeVar("T", bound=LinearModel[Any])

_VOCABULARY = msgspec.json.Decoder(list[str])


def fingerprint(model: str, phrases: Iterable[Phrase]) -> str:
    """A hash of the training phrases and the embedding model's name."""
    told = hashlib.sha256(f"{FORMAT}\x1f{model}".encode())
    for phrase in phrases:
        told.update(f"\x1f{phrase.label or ''}\x1e{phrase.text}".encode())
    return told.hexdigest()


def shipped(model: str) -> SignalClassifier | None:
    """The packaged classifier, or None if it was trained on something else."""
    return _shipped(SHIPPED, SignalClassifier, fingerprint(model, training_phrases()))


def shipped_questions(model: str) -> QuestionClassifier | None:
    """The same for the kinds of questions."""
    return _shipped(SHIPPED_QUESTIONS, QuestionClassifier, fingerprint(model, question_phrases()))


def _shipped(name: str, kind: type[T], expected: str) -> T | None:
    with as_file(files("memory.recall.signals") / name) as path:
        return read_classifier(path, kind, expected=expected)


def read_classifier(path: Path, kind: type[T], *, expected: str) -> T | None:
    """The classifier in this file, or None without one of that fingerprint."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            if str(arrays["fingerprint"]) != expected:
                return None
            terms = _VOCABULARY.decode(arrays["vocabulary"].tobytes())
            return kind(
                vocabulary={term: index for index, term in enumerate(terms)},
                rarity=arrays["rarity"],
                term_weights=arrays["term_weights"].astype(np.float32),
                vector_weights=arrays["vector_weights"],
                bias=arrays["bias"],
            )
    except (OSError, ValueError, KeyError, zipfile.BadZipFile, msgspec.DecodeError):
        return None


def write_classifier(path: Path, classifier: LinearModel[Any], *, trained_on: str) -> None:
    """Term weights are stored with half precision, which halves the file; a test compares the decisions."""
    terms = sorted(classifier.vocabulary, key=lambda term: classifier.vocabulary[term])
    np.savez_compressed(
        path,
        fingerprint=np.array(trained_on),
        vocabulary=np.frombuffer(msgspec.json.encode(terms), dtype=np.uint8),
        rarity=classifier.rarity,
        term_weights=classifier.term_weights.astype(np.float16),
        vector_weights=classifier.vector_weights,
        bias=classifier.bias,
    )
