"""The classifier that comes with the package is the one that the phrases in the repository train."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from memory.adapters.models import classifier_file
from memory.recall.signals.classifier import SignalClassifier
from memory.recall.signals.phrases import training_phrases
from memory.settings import EmbeddingSettings


def test_the_shipped_classifier_was_trained_on_todays_phrases() -> None:
    """Red after a change of the phrases: run `python bench/train_signals.py`."""
    assert classifier_file.shipped(EmbeddingSettings().model) is not None
    assert classifier_file.shipped_past_talk(EmbeddingSettings().model) is not None


def test_it_is_not_used_for_another_embedding_model() -> None:
    assert classifier_file.shipped("some-other-model") is None
    assert classifier_file.shipped_past_talk("some-other-model") is None


def test_half_precision_changes_no_decision(tmp_path: Path) -> None:
    phrases = training_phrases()[::5]
    vectors = np.random.default_rng(7).normal(size=(len(phrases), 16)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    trained = SignalClassifier.fit(phrases, vectors)
    file = tmp_path / "weights.npz"
    classifier_file.write_classifier(file, trained, trained_on="here")
    read = classifier_file.read_classifier(file, SignalClassifier, expected="here")
    assert read is not None
    for phrase, vector in zip(phrases, vectors, strict=True):
        before, after = trained.scores(phrase.text, vector), read.scores(phrase.text, vector)
        assert after.best == before.best
        assert abs(after.search - before.search) < 1e-3


def test_a_file_that_is_damaged_or_missing_is_none(tmp_path: Path) -> None:
    damaged = tmp_path / "weights.npz"
    damaged.write_bytes(b"PK\x03\x04 not really")
    assert classifier_file.read_classifier(damaged, SignalClassifier, expected="x") is None
    assert classifier_file.read_classifier(tmp_path / "none.npz", SignalClassifier, expected="x") is None
