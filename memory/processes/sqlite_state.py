"""Keeps on SQLite and files in the data directory what one machine needs besides memories."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from functools import partial

from memory.adapters.sqlite.compacted_states import SqliteCompactedStates
from memory.adapters.sqlite.database import SqliteDatabase
from memory.adapters.sqlite.erasures import SqliteErasures
from memory.adapters.sqlite.exams import SqliteExamResults
from memory.adapters.sqlite.idempotency_keys import SqliteIdempotencyKeys
from memory.adapters.sqlite.ledger import SqliteUserLedger
from memory.adapters.sqlite.model_capabilities import SqliteModelCapabilities
from memory.adapters.sqlite.notes import SqliteNoteBook
from memory.adapters.sqlite.opt_outs import SqliteOptOuts
from memory.adapters.sqlite.profiles import SqliteProfiles
from memory.adapters.sqlite.projects import SqliteProjects
from memory.adapters.sqlite.receipts import SqliteReceipts
from memory.adapters.sqlite.session_summaries import SqliteSummaries
from memory.adapters.sqlite.turn_log import SqliteTurnLog
from memory.adapters.sqlite.upkeep_schedule import SqliteUpkeepSchedule
from memory.adapters.sqlite.usage_counts import SqliteUsageCounts
from memory.adapters.sqlite.write_barrier import SqliteWriteBarrier
from memory.adapters.working_set.snapshot_files import FileSnapshots
from memory.model import VectorOrigin
from memory.processes.from_settings import note_limits, receipt_limits, recording
from memory.processes.kept_state import KeptState, Process
from memory.processes.running_parts import introduction
from memory.settings.loader import Settings


def turn_log_database(settings: Settings, part: str = "") -> SqliteDatabase:
    """`part`: the process that opens it; empty for a tool."""
    return SqliteDatabase(
        settings.turn_log_path,
        introduction=introduction(part),
        synchronous=settings.memory.turn_log.synchronous,
        rewrite_bytes_max=settings.memory.erase.rewrite_mib_max << 20,
    )


async def open_sqlite_state(process: Process, stack: AsyncExitStack, *, origin: VectorOrigin) -> KeptState:
    """The stack closes it. `origin`: of the vectors in the store."""
    settings, clock = process.settings, process.instruments.clock
    database = await stack.enter_async_context(turn_log_database(settings, process.part))
    snapshot_bytes = settings.memory.snapshots.total_mib << 20
    files = FileSnapshots(settings.snapshots_dir, bytes_max=snapshot_bytes, clock=clock) if snapshot_bytes else None
    return KeptState(
        turn_log=SqliteTurnLog(database, clock=clock),
        ledger=SqliteUserLedger(database, clock=clock),
        notes=SqliteNoteBook(database, limits=note_limits(settings), waits_for_others=settings.filters > 1),
        receipts=SqliteReceipts(database, clock=clock, redact=recording(settings), limits=receipt_limits(settings)),
        usage_counts=await stack.enter_async_context(SqliteUsageCounts(database)),
        profiles=SqliteProfiles(database),
        states=SqliteCompactedStates(database),
        summaries=SqliteSummaries(database, origin=str(origin)),
        idempotency=SqliteIdempotencyKeys(database),
        opt_outs=SqliteOptOuts(database),
        projects=SqliteProjects(database),
        upkeep_schedule=SqliteUpkeepSchedule(database),
        model_capabilities=SqliteModelCapabilities(database, clock=clock),
        exams=SqliteExamResults(database, clock=clock),
        erasures=SqliteErasures(database),
        barrier=SqliteWriteBarrier(database, clock=clock),
        rewriting=database,
        snapshots=None if files is None else await stack.enter_async_context(files),
        introductions=partial(asyncio.to_thread, database.owners.introductions),
    )


__all__ = ["open_sqlite_state", "turn_log_database"]
