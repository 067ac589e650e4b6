"""Keeps on SQLite and files in the data directory what one machine needs besides memories."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from functools import partial

from memory.adapters.sql.compacted_states import SqlCompactedStates
from memory.adapters.sql.erasures import SqlErasures
from memory.adapters.sql.exams import SqlExamResults
from memory.adapters.sql.idempotency_keys import SqlIdempotencyKeys
from memory.adapters.sql.ledger import SqlUserLedger
from memory.adapters.sql.model_capabilities import SqlModelCapabilities
from memory.adapters.sql.notes import SqlNoteBook
from memory.adapters.sql.opt_outs import SqlOptOuts
from memory.adapters.sql.profiles import SqlProfiles
from memory.adapters.sql.projects import SqlProjects
from memory.adapters.sql.receipts import SqlReceipts
from memory.adapters.sql.session_summaries import SqlSummaries
from memory.adapters.sql.sqlite_database import SqliteDatabase
from memory.adapters.sql.turn_log import SqlTurnLog
from memory.adapters.sql.upkeep_schedule import SqlUpkeepSchedule
from memory.adapters.sql.usage_counts import SqlUsageCounts
from memory.adapters.sql.write_barrier import SqlWriteBarrier
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
        turn_log=SqlTurnLog(database, clock=clock),
        ledger=SqlUserLedger(database, clock=clock),
        notes=SqlNoteBook(database, limits=note_limits(settings), waits_for_others=settings.filters > 1),
        receipts=SqlReceipts(database, clock=clock, redact=recording(settings), limits=receipt_limits(settings)),
        usage_counts=await stack.enter_async_context(SqlUsageCounts(database)),
        profiles=SqlProfiles(database),
        states=SqlCompactedStates(database),
        summaries=SqlSummaries(database, origin=str(origin)),
        idempotency=SqlIdempotencyKeys(database),
        opt_outs=SqlOptOuts(database),
        projects=SqlProjects(database),
        upkeep_schedule=SqlUpkeepSchedule(database),
        model_capabilities=SqlModelCapabilities(database, clock=clock),
        exams=SqlExamResults(database, clock=clock),
        erasures=SqlErasures(database),
        barrier=SqlWriteBarrier(database, clock=clock),
        rewriting=database,
        snapshots=None if files is None else await stack.enter_async_context(files),
        introductions=partial(asyncio.to_thread, database.owners.introductions),
    )


__all__ = ["open_sqlite_state", "turn_log_database"]
