"""The evaluations' sandbox without a model: words hashed into vectors, and whatever learner a test brings."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from hashing_embedder import HashingEmbedder
from prometheus_client import CollectorRegistry

from memory import app
from memory.evaluation.sandbox import Sandbox
from memory.learn.extraction import Learner, VerbatimLearner
from memory.metrics import Metrics
from memory.ports import Embedder
from memory.settings import Settings

VERBATIM = Settings()


@asynccontextmanager
async def running_sandbox(
    learner: Learner | None = None,
    *,
    settings: Settings = VERBATIM,
    embedder: Embedder | None = None,
    metrics: Metrics | None = None,
) -> AsyncIterator[Sandbox]:
    extraction = app.Extraction(learner or VerbatimLearner())
    vectors = embedder or HashingEmbedder(dimension=settings.memory.milvus.dimension)
    seen = metrics or Metrics(CollectorRegistry())
    async with app.open_sandbox(settings, extraction, embedder=vectors, metrics=seen) as sandbox:
        yield sandbox
