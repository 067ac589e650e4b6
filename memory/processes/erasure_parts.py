"""Builds what erases users: the proof, and what rewrites files."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from memory.adapters.file_scan import FolderScan
from memory.adapters.milvus.connection import MilvusAddress
from memory.adapters.milvus.deleted_rows import MilvusDeletedRows
from memory.adapters.milvus.row_scan import MilvusRowScan
from memory.adapters.milvus.store import MilvusStore
from memory.model import VectorOrigin
from memory.ports import MemoryStore
from memory.ports.erasures import ErasureProof, FileRewriting, PlaceScan
from memory.processes.from_settings import milvus_address
from memory.processes.kept_state import KeptState, Process
from memory.runtime.metrics import Metrics
from memory.runtime.telemetry import Telemetry
from memory.service.user_erasures import FileRewriter
from memory.settings import Settings


@dataclass(frozen=True, slots=True)
class ErasureParts:
    """`keep_days`: how long the record of an erasure is kept."""

    proof: ErasureProof
    rewriting: tuple[FileRewriting, ...]
    keep_days: int

    def rewriter(self, telemetry: Telemetry) -> FileRewriter:
        return FileRewriter(
            self.proof.record,
            self.rewriting,
            clock=telemetry.clock,
            metrics=telemetry.metrics,
            keep_days=self.keep_days,
        )


async def open_erasure(
    process: Process, stack: AsyncExitStack, *, state: KeptState, store: MemoryStore, origin: VectorOrigin
) -> ErasureParts:
    """Looks into all files of the data directory, and of the run directory, which may be elsewhere, and into servers.

    Nothing is connected before there is something to rewrite. The stack closes it, before the state.
    """
    settings, telemetry = process.settings, process.telemetry
    folders = [Path(one) for one in (settings.data_dir, settings.run_dir) if one]
    places: list[PlaceScan] = [FolderScan(folders)]
    if state.scan is not None:
        places.append(state.scan)
    rewriting: list[FileRewriting] = [state.rewriting]  # last: the store's copying leaves traces in it
    if isinstance(store, MilvusStore):
        address = milvus_address(settings, origin)
        rows = MilvusDeletedRows(address, barrier=state.barrier, metrics=telemetry.metrics)
        rewriting.insert(0, await stack.enter_async_context(rows))
        places.append(await stack.enter_async_context(row_scan(settings, address, telemetry.metrics)))
    proof = ErasureProof(state.erasures, tuple(places))
    return ErasureParts(proof, tuple(rewriting), settings.memory.erase.keep_days)


def row_scan(settings: Settings, address: MilvusAddress, metrics: Metrics) -> MilvusRowScan:
    """Of the store. Rows are not read if it is the Milvus Lite that `up` runs on the data directory, whose files are.

    Any other keeps its files elsewhere, though the data directory may have such files of earlier runs.
    """
    try:
        own = settings.milvus_uri_file.read_text(encoding="ascii").strip()
    except OSError:
        own = ""
    is_own = settings.milvus_dir.is_dir() and own == address.uri
    return MilvusRowScan(address, lite_files_are_read=is_own, metrics=metrics)
