"""Builds the product for an evaluation, with a store in memory and a clock that records set, and keeps its report.

Not imported by anything that serves chats, since it imports `memory.evaluation`.
"""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import msgspec

from memory.adapters.evaluation_reports import FolderOfReports
from memory.adapters.in_memory import InMemoryStore
from memory.evaluation.report import Table
from memory.evaluation.sandbox import Sandbox, SettableClock, impatient
from memory.learn.readers import Readers
from memory.model.evaluation_reports import EvaluationReport, ReportHead, ReportTable
from memory.ports import Embedder
from memory.processes.composition import SYSTEM_CLOCK, open_parts_on
from memory.processes.from_settings import recording, vector_origin, worker_settings
from memory.processes.kept_state import Process
from memory.processes.working_set_parts import without_snapshots
from memory.runtime.metrics import Metrics
from memory.runtime.tracing import Telemetry
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


async def kept_report(
    settings: Settings, evaluation: str, file: Path, tables: Sequence[Table], *, named: str = ""
) -> str:
    """Keep these tables as a report; returns its name. Raises `BadInput` for a bad one, and `Unavailable`."""
    at = SYSTEM_CLOCK()
    name = named or f"{evaluation}-{datetime.fromtimestamp(at, UTC):%Y%m%d-%H%M%S}"
    shown = (ReportTable(tuple(head), tuple(map(tuple, rows))) for head, rows in tables)
    report = EvaluationReport(ReportHead(name, evaluation, file.name, version("memproxy"), at), tuple(shown))
    await FolderOfReports(settings.reports_path).keep(report)
    return name
