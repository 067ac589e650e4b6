"""Builds working sets with their snapshots, and the ledger whose writes update the snapshots."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import replace

import msgspec

from memory.model import VectorOrigin
from memory.ports import MemoryStore, Tokens, UserLedger
from memory.processes.from_settings import working_set_limits
from memory.processes.kept_state import KeptState, Process
from memory.recall.working_set.snapshot_codec import SnapshotCodec, stamp_of
from memory.recall.working_set.snapshot_writer import SnapshottingLedger, SnapshotWriter
from memory.recall.working_set.working_sets import WorkingSets
from memory.settings import MemorySettings


async def opened_sets(
    process: Process,
    stack: AsyncExitStack,
    *,
    store: MemoryStore,
    state: KeptState,
    origin: VectorOrigin,
    tokens: Tokens,
) -> tuple[WorkingSets, UserLedger]:
    """The stack closes them, before store and ledger. All writes must go through the returned ledger."""
    settings, snapshots = process.settings, None
    if state.snapshots is not None:
        stamp = stamp_of(origin=origin, tokens=tokens)
        snapshots = SnapshotCodec(state.snapshots, stamp=stamp, metrics=process.telemetry.metrics, tokens=tokens)
    sets = WorkingSets(
        store=store,
        ledger=state.ledger,
        dimension=settings.memory.milvus.dimension,
        tokens=tokens,
        limits=replace(working_set_limits(settings), preallocates=process.is_hurried),
        snapshots=snapshots,
    )
    await stack.enter_async_context(sets)
    if snapshots is None:
        return sets, state.ledger
    writer = await stack.enter_async_context(SnapshotWriter(sets, snapshots))
    return sets, SnapshottingLedger(state.ledger, writer)


def without_snapshots(memory: MemorySettings) -> MemorySettings:
    """For processes that end before a user returns."""
    snapshots = msgspec.structs.replace(memory.snapshots, total_mib=0)
    return msgspec.structs.replace(memory, snapshots=snapshots)
