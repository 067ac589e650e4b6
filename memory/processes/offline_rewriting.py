"""Steps of rewriting all files of one machine while nothing else runs, which ends the erasures that wait for that."""

from __future__ import annotations

from collections.abc import Sequence

from prometheus_client import CollectorRegistry

from memory.adapters.milvus.deleted_rows import MilvusDeletedRows
from memory.adapters.sql.erasures import SqlErasures
from memory.adapters.sql.write_barrier import SqlWriteBarrier
from memory.model.erasures import ErasureRequest
from memory.processes.composition import SYSTEM_CLOCK, stored_origin
from memory.processes.from_settings import milvus_address
from memory.processes.sql_state import sqlite_database
from memory.runtime.metrics import Metrics
from memory.settings import Settings


async def waiting_erasures(settings: Settings) -> Sequence[ErasureRequest]:
    """Raises `Unavailable`."""
    async with sqlite_database(settings) as database:
        return await SqlErasures(database).pending()


async def rewrite_store(settings: Settings) -> None:
    """Before the turn log's file: the copying leaves traces in that. Raises `Unavailable`, and may be repeated."""
    address = milvus_address(settings, await stored_origin(settings))
    async with sqlite_database(settings) as database:
        barrier = SqlWriteBarrier(database, clock=SYSTEM_CLOCK)
        async with MilvusDeletedRows(address, barrier=barrier, metrics=Metrics(CollectorRegistry())) as rows:
            await rows.rewrite()


async def end_erasures(settings: Settings, erasures: Sequence[ErasureRequest]) -> None:
    """All files are rewritten since these were found waiting."""
    async with sqlite_database(settings) as database:
        await SqlErasures(database).rewritten(erasures, at=SYSTEM_CLOCK())
