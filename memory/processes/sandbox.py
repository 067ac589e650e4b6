"""Builds the product for an evaluation: the same parts, with a store in memory and a clock that records set.

Not imported by anything that serves chats, since it imports `memory.evaluation`.
"""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import msgspec

from memory.adapters.in_memory import InMemoryStore
from memory.evaluation.sandbox import Sandbox, SettableClock, impatient
from memory.learn.readers import Readers
from memory.ports import Embedder
from memory.processes.composition import open_parts_on
from memory.processes.from_settings import recording, vector_origin, worker_settings
from memory.processes.kept_state import Process
from memory.processes.working_set_parts import without_snapshots
from memory.runtime.metrics import Metrics
from memory.runtime.telemetry import Telemetry
from memory.settings import Settings


@asynccontextmanager
async def open_sandbox(
    settings: Settings, readers: Readers, *, embedder: Embedder, metrics: Metrics
) -> AsyncIterator[Sandbox]:
    """The product with these settings, a store in memory and a turn log in a temporary folder."""
    clock = SettableClock()
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="memproxy-"))
        own = without_snapshots(settings.memory)
        here = msgspec.structs.replace(settings, data_dir=folder, database_url="", memory=own)
        store = InMemoryStore(dimension=settings.memory.milvus.dimension)
        origin = vector_origin(settings)  # irrelevant: nothing outlives this
        process = Process(here, Telemetry(clock, metrics))
        parts = await open_parts_on(process, stack, store=store, embedder=embedder, origin=origin)
        learning = impatient(worker_settings(here))
        await parts.training.run()  # the classifier decides whether to search, as in the filter
        yield Sandbox(
            turn_log=parts.state.turn_log,
            store=store,
            worker=parts.worker(readers, learning),
            searcher=parts.recall(),
            clock=clock,
            redact=recording(here),
        )
