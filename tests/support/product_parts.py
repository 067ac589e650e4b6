"""The parts of one process as the product builds them: SQLite in a folder, with the store and embedder of a test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import msgspec
from prometheus_client import CollectorRegistry

from memory.model import VectorOrigin
from memory.ports import Clock, Embedder, MemoryStore
from memory.processes.composition import Parts, open_parts_on
from memory.processes.kept_state import Process
from memory.processes.working_set_parts import without_snapshots
from memory.runtime.metrics import Metrics
from memory.runtime.tracing import Telemetry
from memory.settings import Settings
from memory.settings.loader import from_process

ORIGIN = VectorOrigin("hashed words", 384)
USUAL = Settings()


@asynccontextmanager
async def product_parts(
    folder: Path, store: MemoryStore, embedder: Embedder, *, clock: Clock, settings: Settings = USUAL
) -> AsyncIterator[Parts]:
    """With these settings but for folders; without snapshots."""
    models, memory = str(from_process(None, {}).models_path), without_snapshots(settings.memory)
    here = msgspec.structs.replace(settings, data_dir=str(folder), models_dir=models, memory=memory)
    process = Process(here, Telemetry(clock, Metrics(CollectorRegistry())))
    async with AsyncExitStack() as stack:
        yield await open_parts_on(process, stack, store=store, embedder=embedder, origin=ORIGIN)
