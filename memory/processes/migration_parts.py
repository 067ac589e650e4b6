"""Builds the run that brings a collection to the present schema and index."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from prometheus_client import CollectorRegistry

from memory.adapters.milvus.reembedding import MilvusReembedding
from memory.processes.composition import stored_origin
from memory.processes.from_settings import milvus_address
from memory.runtime.metrics import Metrics
from memory.service.reembedding import Migrate
from memory.settings import Settings


@asynccontextmanager
async def open_migration(settings: Settings) -> AsyncIterator[Migrate]:
    """Raises `BadSetting`; no server has to be up."""
    wanted = await stored_origin(settings)
    address = milvus_address(settings, wanted)
    async with MilvusReembedding(address, wanted=wanted, metrics=Metrics(CollectorRegistry())) as store:
        yield Migrate(store, wanted=wanted)
