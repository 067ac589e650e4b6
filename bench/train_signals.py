"""Trains the signal classifier on the phrases in the repository and writes the packaged file.

`python bench/train_signals.py`, after every change of `memory/recall/signals/signal_phrases/` or of the features.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from rich.progress import track

from memory.adapters.models import classifier_file
from memory.adapters.models.embedding_model import prepared
from memory.adapters.models.onnx_embedder import OnnxModel
from memory.recall.signals.classifier import SignalClassifier
from memory.recall.signals.phrases import training_phrases
from memory.settings import EmbeddingSettings
from memory.settings.loader import from_process

TARGET = Path(__file__).resolve().parent.parent / "memory" / "recall" / "signals" / classifier_file.SHIPPED


def main() -> None:
    name = EmbeddingSettings().model
    phrases = training_phrases()
    model = OnnxModel(prepared(name, from_process(None, {}).models_path))
    vectors = np.stack([model.vector(phrase.text) for phrase in track(phrases, description="embedding phrases")])
    classifier = SignalClassifier.fit(phrases, vectors)
    classifier_file.write_classifier(TARGET, classifier, trained_on=classifier_file.fingerprint(name))
    print(f"{len(phrases)} phrases, {len(classifier.vocabulary)} terms, {TARGET.stat().st_size / 1024:.0f} KiB")


if __name__ == "__main__":
    main()
