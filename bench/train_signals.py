"""Train the signal classifier on the phrases in the repository and write the file that is shipped.

`python bench/train_signals.py`, after every change of `memory/recall/signal_phrases/` or of the features.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from rich.progress import track

from memory.adapters import classifier_file, embedding_model
from memory.recall.classifier import SignalClassifier
from memory.recall.phrases import training_phrases
from memory.settings import EmbeddingSettings

TARGET = Path(__file__).resolve().parent.parent / "memory" / "recall" / classifier_file.SHIPPED
BATCH = 64


def main() -> None:
    name = EmbeddingSettings().model
    phrases = training_phrases()
    with tempfile.TemporaryDirectory() as folder:
        model = embedding_model.load(name, exports_dir=Path(folder), threads=0)
        texts = [phrase.text for phrase in phrases]
        batches = [texts[start : start + BATCH] for start in range(0, len(texts), BATCH)]
        vectors = np.concatenate([model.encode(batch) for batch in track(batches, description="embedding phrases")])
    classifier = SignalClassifier.fit(phrases, vectors)
    classifier_file.write(TARGET, classifier, trained_on=classifier_file.fingerprint(name))
    print(f"{len(phrases)} phrases, {len(classifier.vocabulary)} terms, {TARGET.stat().st_size / 1024:.0f} KiB")


if __name__ == "__main__":
    main()
