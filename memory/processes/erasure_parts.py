"""Builds what rewrites files after erasures, and looks for a user's id wherever the deployment keeps something."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from prometheus_client import CollectorRegistry

from memory.adapters.file_scan import files_scanned
from memory.adapters.milvus.deleted_rows import MilvusDeletedRows, MilvusRowScan
from memory.adapters.milvus.store import MilvusStore
from memory.adapters.sql.erasures import SqlErasures, SqlWriteBarrier
from memory.adapters.whole_ids import WholeId
from memory.model.erasures import ErasureRequest, PlaceReport
from memory.ports.erasures import FileRewriting
from memory.processes.composition import SYSTEM_CLOCK, Parts, stored_origin
from memory.processes.from_settings import milvus_address
from memory.processes.state_parts import log_database
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


@asynccontextmanager
async def open_file_rewriter(parts: Parts) -> AsyncIterator[FileRewriter]:
    """Nothing is connected before there is something to rewrite."""
    files: list[FileRewriting] = [parts.state.rewriting]  # last: the store's copying leaves traces in it
    keep_days = parts.settings.memory.erase.keep_days
    async with AsyncExitStack() as stack:
        if isinstance(parts.store, MilvusStore):
            address = milvus_address(parts.settings, await stored_origin(parts.settings))
            rows = MilvusDeletedRows(address, barrier=parts.state.barrier, metrics=parts.metrics)
            files.insert(0, await stack.enter_async_context(rows))
        clock, metrics = parts.telemetry.clock, parts.metrics
        yield FileRewriter(parts.stores.erasures, files, clock=clock, metrics=metrics, keep_days=keep_days)


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


async def waiting_erasures(settings: Settings) -> Sequence[ErasureRequest]:
    """Raises `Unavailable`."""
    async with log_database(settings) as database:
        return await SqlErasures(database).pending()


async def rewrite_store(settings: Settings) -> None:
    """Before the turn log's files: the copying leaves traces in them. Raises `Unavailable`, and may be repeated."""
    address = milvus_address(settings, await stored_origin(settings))
    async with log_database(settings) as database:
        barrier = SqlWriteBarrier(database, clock=SYSTEM_CLOCK)
        async with MilvusDeletedRows(address, barrier=barrier, metrics=Metrics(CollectorRegistry())) as rows:
            await rows.rewrite()


async def end_erasures(settings: Settings, erasures: Sequence[ErasureRequest]) -> None:
    """All files are rewritten since these were found waiting."""
    async with log_database(settings) as database:
        await SqlErasures(database).rewritten(erasures, at=SYSTEM_CLOCK())
