"""The evaluations' sandbox without a model: words hashed into vectors, and whatever readers a test brings."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from hashing_embedder import HashingEmbedder
from plain_reader import PlainReader
from prometheus_client import CollectorRegistry

from memory.evaluation.sandbox import Sandbox
from memory.learn.readers import Readers
from memory.ports import Embedder, StatementReader
from memory.processes.sandbox import open_sandbox
from memory.runtime.metrics import Metrics
from memory.settings import Settings

PLAIN = Settings()


@asynccontextmanager
async def running_sandbox(
    reader: StatementReader | None = None,
    *,
    model: StatementReader | None = None,
    settings: Settings = PLAIN,
    embedder: Embedder | None = None,
    metrics: Metrics | None = None,
) -> AsyncIterator[Sandbox]:
    """`reader` is always ready; `model`, where there is one, reads windows."""
    readers = Readers(reader or PlainReader(), model)
    vectors = embedder or HashingEmbedder(dimension=settings.memory.milvus.dimension)
    seen = metrics or Metrics(CollectorRegistry())
    async with open_sandbox(settings, readers, embedder=vectors, metrics=seen) as sandbox:
        yield sandbox
