"""Builds what rewrites files after erasures, and looks for a user's id wherever the deployment keeps something."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from prometheus_client import CollectorRegistry

from memory.adapters.file_scan import files_scanned
from memory.adapters.milvus.deleted_rows import MilvusDeletedRows
from memory.adapters.milvus.row_scan import MilvusRowScan
from memory.adapters.milvus.store import MilvusStore
from memory.adapters.sql.erasures import SqlErasures
from memory.adapters.whole_ids import WholeId
from memory.model import VectorOrigin
from memory.model.erasures import PlaceReport
from memory.ports import MemoryStore
from memory.ports.erasures import FileRewriting
from memory.processes.from_settings import milvus_address
from memory.processes.kept_state import KeptState, Process
from memory.processes.sql_state import log_database
from memory.runtime.metrics import Metrics
from memory.service.user_erasures import FileRewriter
from memory.settings import Settings


@dataclass(frozen=True, slots=True)
class Verification:
    """A look for a user's id. `waiting`: erasures whose files are not rewritten, and may hold bytes of deleted rows."""

    waiting: int
    places: tuple[PlaceReport, ...]

    @property
    def is_clean(self) -> bool:
        return not self.waiting and not any(one.found_in for one in self.places)


async def open_rewriter_of_files(
    process: Process, stack: AsyncExitStack, *, state: KeptState, store: MemoryStore, origin: VectorOrigin
) -> FileRewriter:
    """Nothing is connected before there is something to rewrite. The stack closes it, before the state."""
    settings, telemetry = process.settings, process.telemetry
    parts: list[FileRewriting] = [state.rewriting]  # last: the store's copying leaves traces in it
    if isinstance(store, MilvusStore):
        address = milvus_address(settings, origin)
        rows = MilvusDeletedRows(address, barrier=state.barrier, metrics=telemetry.metrics)
        parts.insert(0, await stack.enter_async_context(rows))
    keep_days = settings.memory.erase.keep_days
    return FileRewriter(
        state.stores.erasures, parts, clock=telemetry.clock, metrics=telemetry.metrics, keep_days=keep_days
    )


async def verified(settings: Settings, user_id: str) -> Verification:
    """Looks into all files of the data directory, and of the run directory, which may be elsewhere, and into servers.

    Files are read only here: those of a server, and of a Milvus Lite that runs elsewhere, are not within reach. Raises
    `Unavailable`.
    """
    wanted, places = WholeId(user_id), list[PlaceReport]()
    waiting = 0
    if settings.database_url or settings.turn_log_path.exists():
        async with log_database(settings) as database:
            waiting = len(await SqlErasures(database).pending())
    if settings.database_url:
        from memory.processes.postgres_state import postgres_scan

        places.append(await asyncio.to_thread(postgres_scan, settings, wanted))
    if settings.store_uri:
        metrics = Metrics(CollectorRegistry())
        async with MilvusRowScan(milvus_address(settings, None), metrics=metrics) as rows:
            places.append(await rows.scan(wanted))
    folders = [Path(one) for one in (settings.data_dir, settings.run_dir) if one]
    return Verification(waiting, (await asyncio.to_thread(files_scanned, folders, wanted), *places))
