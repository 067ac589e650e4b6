"""Measures accuracy and speed of the decision which requests need memory.

`python bench/signals.py [FILE.jsonl …]`: each FILE is in the format of `memproxy eval signals`, by default the records
that the tests use. Accuracy by language and label, and the time of a decision beyond the embedding. The languages other
than English share one bar, because each has few records.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from report import Bar, Report, Sheet, bench_parser, ratio

from memory.adapters.models.embedding_model import prepared
from memory.adapters.models.onnx_embedder import OnnxModel
from memory.evaluation.signals import SignalCase, read_signals, score_signals
from memory.recall.query import build_query
from memory.recall.signals.classifier import SignalClassifier
from memory.recall.signals.phrases import training_phrases
from memory.recall.signals.search_decision import decide
from memory.settings import EmbeddingSettings
from memory.settings.loader import from_process

DATA = Path(__file__).resolve().parent.parent / "tests" / "data"
OWN_RECORDS = (DATA / "signals.jsonl", DATA / "signals_fresh.jsonl")
ROUNDS = 5  # of all records; the median is what is told
BARS = (
    Bar("a decision, p50", "ms", at_most=0.3),
    Bar("accuracy in English", at_least=0.94),
    Bar("accuracy in other languages", at_least=0.90),
    Bar("of messages that want memory, missed", at_most=0.03),
)


def main() -> int:
    parser = bench_parser("signals", __doc__)
    parser.add_argument("file", nargs="*", type=Path, default=OWN_RECORDS)
    options = parser.parse_args()
    report = Report("signals", BARS, options.json)
    cases = [case for file in options.file for case in read_signals(file)]
    result = measure(cases)
    sheets = [sheet(method, result[method]) for method in ("with embedding", "words alone")]
    return report.finish(result, sheets, figures(cases, result))


def measure(cases: Sequence[SignalCase]) -> dict[str, Any]:
    model = OnnxModel(prepared(EmbeddingSettings().model, from_process(None, {}).models_path))
    phrases = training_phrases()
    started = time.perf_counter()
    embedded = np.stack([model.vector(model.prefixes.query + phrase.text) for phrase in phrases])
    fitting = time.perf_counter()
    classifier = SignalClassifier.fit(phrases, embedded)
    fitted = time.perf_counter()
    vectors = [model.vector(model.prefixes.query + build_query(case.conversation).text) for case in cases]
    words_alone = SignalClassifier.fit(phrases, None)
    with_embedding = [
        decide(case.conversation, vector=vector, classifier=classifier)
        for case, vector in zip(cases, vectors, strict=True)
    ]
    return {
        "phrases": len(phrases),
        "embedding_seconds": fitting - started,
        "fit_seconds": fitted - fitting,
        "decision_ms": decision_ms(cases, vectors, classifier),
        "with embedding": score_signals(cases, with_embedding),
        "words alone": score_signals(cases, [decide(case.conversation, classifier=words_alone) for case in cases]),
    }


def decision_ms(cases: Sequence[SignalCase], vectors: Sequence[Any], classifier: SignalClassifier) -> dict[str, float]:
    took: list[float] = []
    for _ in range(ROUNDS):
        for case, vector in zip(cases, vectors, strict=True):
            begun = time.perf_counter()
            decide(case.conversation, vector=vector, classifier=classifier)
            took.append((time.perf_counter() - begun) * 1e3)
    return {"p50": statistics.median(took), "p99": statistics.quantiles(took, n=100)[98]}


def figures(cases: Sequence[SignalCase], result: Mapping[str, Any]) -> dict[str, float]:
    scored = result["with embedding"]
    wrong = {one["id"] for one in scored["wrong"]}
    shown = {
        "a decision, p50": result["decision_ms"]["p50"],
        "of messages that want memory, missed": scored["false_negative_rate"] or 0.0,
    }
    for name, is_english in (("accuracy in English", True), ("accuracy in other languages", False)):
        right = [case.id not in wrong for case in cases if (case.language == "en") is is_english]
        if right:
            shown[name] = ratio(sum(right), len(right))
    return shown


def sheet(method: str, scored: Mapping[str, Any]) -> Sheet:
    rates = {"all": scored, **scored["by_language"], **scored["by_label"]}
    columns = ("records", "accuracy", "false_negative_rate", "false_positive_rate")
    rows = [(name, *(one[column] for column in columns)) for name, one in rates.items()]
    return Sheet(method, ("", "records", "accuracy", "missed", "needless"), rows)


if __name__ == "__main__":
    raise SystemExit(main())
