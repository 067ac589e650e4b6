"""Builds what erases users: the proof, and what rewrites files."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from memory.adapters.file_scan import FolderScan
from memory.adapters.milvus.deleted_rows import MilvusDeletedRows
from memory.adapters.milvus.row_scan import MilvusRowScan
from memory.adapters.milvus.store import MilvusStore
from memory.model import VectorOrigin
from memory.ports import MemoryStore
from memory.ports.erasures import ErasureProof, FileRewriting, PlaceScan
from memory.processes.from_settings import milvus_address
from memory.processes.kept_state import KeptState, Process
from memory.runtime.instruments import Instruments
from memory.service.user_erasures import FileRewriter


@dataclass(frozen=True, slots=True)
class ErasureParts:
    proof: ErasureProof
    rewriting: tuple[FileRewriting, ...]

    def rewriter(self, instruments: Instruments) -> FileRewriter:
        return FileRewriter(self.proof.record, self.rewriting, clock=instruments.clock, metrics=instruments.metrics)


async def open_erasure(
    process: Process, stack: AsyncExitStack, *, state: KeptState, store: MemoryStore, origin: VectorOrigin
) -> ErasureParts:
    """Looks into all files of the data directory, and of the run directory, which may be elsewhere, and into servers.

    Nothing is connected before there is something to rewrite. The stack closes it, before the state.
    """
    settings, instruments = process.settings, process.instruments
    folders = [Path(one) for one in (settings.data_dir, settings.run_dir) if one]
    places: list[PlaceScan] = [FolderScan(folders)]
    if state.scan is not None:
        places.append(state.scan)
    rewriting: list[FileRewriting] = [state.rewriting]  # last: the store's copying leaves traces in it
    if isinstance(store, MilvusStore):
        address = milvus_address(settings, origin)
        rows = MilvusDeletedRows(address, barrier=state.barrier, metrics=instruments.metrics)
        rewriting.insert(0, await stack.enter_async_context(rows))
        is_ours = settings.milvus_dir.is_dir()
        scan = MilvusRowScan(address, lite_files_are_read=is_ours, metrics=instruments.metrics)
        places.append(await stack.enter_async_context(scan))
    return ErasureParts(ErasureProof(state.erasures, tuple(places)), tuple(rewriting))


__all__ = ["ErasureParts", "open_erasure"]
