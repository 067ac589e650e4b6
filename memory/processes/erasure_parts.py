"""Builds what erases users: the database with its limit of rewriting, the proof, and what rewrites files."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from memory.adapters.file_scan import FolderScan
from memory.adapters.milvus.deleted_rows import MilvusDeletedRows
from memory.adapters.milvus.store import MilvusStore
from memory.adapters.sqlite.database import SqliteDatabase
from memory.adapters.sqlite.erasures import SqliteErasures
from memory.adapters.sqlite.write_barrier import SqliteWriteBarrier
from memory.model import VectorOrigin
from memory.ports import MemoryStore
from memory.ports.erasures import ErasureProof, FileRewriting
from memory.processes.from_settings import milvus_address
from memory.processes.working_set_parts import Process
from memory.runtime.instruments import Instruments
from memory.service.user_erasures import FileRewriter
from memory.settings.loader import Settings


@dataclass(frozen=True, slots=True)
class ErasureParts:
    proof: ErasureProof
    rewriting: tuple[FileRewriting, ...]

    def rewriter(self, instruments: Instruments) -> FileRewriter:
        return FileRewriter(self.proof.record, self.rewriting, clock=instruments.clock, metrics=instruments.metrics)


def turn_log_database(settings: Settings) -> SqliteDatabase:
    return SqliteDatabase(
        settings.turn_log_path,
        synchronous=settings.memory.turn_log.synchronous,
        rewrite_bytes_max=settings.memory.erase.rewrite_mib_max << 20,
    )


async def open_erasure(
    process: Process, stack: AsyncExitStack, *, database: SqliteDatabase, store: MemoryStore, origin: VectorOrigin
) -> ErasureParts:
    """Looks into all files of the data directory, and of the run directory, which may be elsewhere.

    Nothing is connected before there is something to rewrite. The stack closes it, before the database.
    """
    settings, instruments = process.settings, process.instruments
    folders = [Path(one) for one in (settings.data_dir, settings.run_dir) if one]
    scan = FolderScan(folders, clock=instruments.clock)
    rewriting: list[FileRewriting] = [database]  # last: the store's copying leaves traces in it
    if isinstance(store, MilvusStore):
        barrier = SqliteWriteBarrier(database, clock=instruments.clock)
        rows = MilvusDeletedRows(milvus_address(settings, origin), barrier=barrier, metrics=instruments.metrics)
        rewriting.insert(0, await stack.enter_async_context(rows))
    return ErasureParts(ErasureProof(SqliteErasures(database), scan), tuple(rewriting))


__all__ = ["ErasureParts", "open_erasure", "turn_log_database"]
