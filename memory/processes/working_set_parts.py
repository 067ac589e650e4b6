"""Builds working sets with their snapshots, and the ledger whose writes update the snapshots."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import dataclass, replace

import msgspec

from memory.adapters.working_set.snapshot_codec import SnapshotCodec, stamp_of
from memory.adapters.working_set.snapshot_files import FileSnapshots
from memory.adapters.working_set.snapshot_writer import SnapshottingLedger, SnapshotWriter
from memory.adapters.working_set.working_sets import CorpusShape, WorkingSets
from memory.model import VectorOrigin
from memory.ports import MemoryStore, Tokens, UserLedger
from memory.processes.from_settings import working_set_limits
from memory.runtime.instruments import Instruments
from memory.settings.loader import MemorySettings, Settings


@dataclass(frozen=True, slots=True)
class Process:
    """The process that parts are opened for. `is_hurried`: it serves chats, so its calls have short time limits."""

    settings: Settings
    instruments: Instruments
    is_hurried: bool = False


async def opened_sets(
    process: Process,
    stack: AsyncExitStack,
    *,
    store: MemoryStore,
    ledger: UserLedger,
    origin: VectorOrigin,
    tokens: Tokens,
) -> tuple[WorkingSets, UserLedger]:
    """The stack closes them, before store and ledger. All writes must go through the returned ledger.

    `origin`: of the vectors in the store.
    """
    settings = process.settings
    snapshots = await _opened_snapshots(process, stack, origin=origin, tokens=tokens)
    sets = WorkingSets(
        store=store,
        ledger=ledger,
        shape=CorpusShape(settings.memory.milvus.dimension, settings.memory.ranking.neighbours, tokens),
        limits=replace(working_set_limits(settings), preallocates=process.is_hurried),
        snapshots=snapshots,
    )
    await stack.enter_async_context(sets)
    if snapshots is None:
        return sets, ledger
    writer = await stack.enter_async_context(SnapshotWriter(sets, snapshots))
    return sets, SnapshottingLedger(ledger, writer)


def without_snapshots(memory: MemorySettings) -> MemorySettings:
    """For processes that end before a user returns."""
    snapshots = msgspec.structs.replace(memory.snapshots, total_mib=0)
    return msgspec.structs.replace(memory, snapshots=snapshots)


async def _opened_snapshots(
    process: Process, stack: AsyncExitStack, *, origin: VectorOrigin, tokens: Tokens
) -> SnapshotCodec | None:
    settings = process.settings
    bytes_max = settings.memory.snapshots.total_mib << 20
    if not bytes_max:
        return None
    files = FileSnapshots(settings.snapshots_dir, bytes_max=bytes_max, clock=process.instruments.clock)
    return SnapshotCodec(
        await stack.enter_async_context(files),
        stamp=stamp_of(origin=origin, neighbours=settings.memory.ranking.neighbours, tokens=tokens),
        neighbours=settings.memory.ranking.neighbours,
        metrics=process.instruments.metrics,
        tokens=tokens,
    )


__all__ = ["Process", "opened_sets", "without_snapshots"]
