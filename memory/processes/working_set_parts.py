"""Builds working sets with their snapshots, and the ledger whose writes update the snapshots."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import replace

import msgspec

from memory.adapters.working_set.snapshot_codec import SnapshotCodec, stamp_of
from memory.adapters.working_set.snapshot_files import FileSnapshots
from memory.adapters.working_set.snapshot_writer import SnapshottingLedger, SnapshotWriter
from memory.adapters.working_set.working_sets import WorkingSets
from memory.model import VectorOrigin
from memory.ports import Clock, MemoryStore, Tokens, UserLedger
from memory.processes.from_settings import working_set_limits
from memory.runtime.metrics import Metrics
from memory.settings.loader import MemorySettings, Settings


async def opened_sets(
    settings: Settings,
    stack: AsyncExitStack,
    *,
    store: MemoryStore,
    ledger: UserLedger,
    origin: VectorOrigin,
    metrics: Metrics,
    clock: Clock,
    tokens: Tokens,
    is_hurried: bool = False,
) -> tuple[WorkingSets, UserLedger]:
    """The stack closes them, before store and ledger. All writes must go through the returned ledger.

    `origin`: of the vectors in the store. `is_hurried`: the process serves chats.
    """
    snapshots = await _opened_snapshots(settings, stack, origin=origin, metrics=metrics, clock=clock, tokens=tokens)
    sets = WorkingSets(
        store=store,
        ledger=ledger,
        dimension=settings.memory.milvus.dimension,
        limits=replace(working_set_limits(settings), preallocates=is_hurried),
        neighbours=settings.memory.ranking.neighbours,
        tokens=tokens,
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
    settings: Settings,
    stack: AsyncExitStack,
    *,
    origin: VectorOrigin,
    metrics: Metrics,
    clock: Clock,
    tokens: Tokens,
) -> SnapshotCodec | None:
    bytes_max = settings.memory.snapshots.total_mib << 20
    if not bytes_max:
        return None
    files = FileSnapshots(settings.snapshots_dir, bytes_max=bytes_max, clock=clock)
    return SnapshotCodec(
        await stack.enter_async_context(files),
        stamp=stamp_of(origin=origin, neighbours=settings.memory.ranking.neighbours, tokens=tokens),
        neighbours=settings.memory.ranking.neighbours,
        metrics=metrics,
        tokens=tokens,
    )


__all__ = ["opened_sets", "without_snapshots"]
