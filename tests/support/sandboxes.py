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

SETTINGS = Settings()


@asynccontextmanager
async def running_sandbox(
    reader: StatementReader | None = None, *, model: StatementReader | None = None, embedder: Embedder | None = None
) -> AsyncIterator[Sandbox]:
    """`reader` is always ready; `model`, where there is one, reads windows."""
    readers = Readers(reader or PlainReader(), model)
    vectors = embedder or HashingEmbedder(dimension=SETTINGS.memory.milvus.dimension)
    async with open_sandbox(SETTINGS, readers, embedder=vectors, metrics=Metrics(CollectorRegistry())) as sandbox:
        yield sandbox
