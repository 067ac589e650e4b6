"""The product's own embedder with the packaged model, prepared once and loaded once a test process."""

from __future__ import annotations

from functools import cache

from prometheus_client import CollectorRegistry

from memory.adapters.models.embedding_model import prepared
from memory.adapters.models.onnx_embedder import EmbeddingLimits, OnnxEmbedder, OnnxModel
from memory.runtime.metrics import Metrics
from memory.settings import EmbeddingSettings
from memory.settings.loader import from_process

PATIENT_SECONDS = 20.0  # of a question: what its tests measure is not speed


@cache
def embedding_model() -> OnnxModel:
    return OnnxModel(prepared(EmbeddingSettings().model, from_process(None, {}).models_path))


def own_embedder(*, cache_texts: int = 64) -> OnnxEmbedder:
    """One that waits for its model however busy the machine is; to be opened."""
    limits = EmbeddingLimits(urgent_seconds=PATIENT_SECONDS, cache_texts=cache_texts)
    return OnnxEmbedder(embedding_model(), limits=limits, metrics=Metrics(CollectorRegistry()))
