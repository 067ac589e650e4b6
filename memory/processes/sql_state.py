"""Keeps in SQL what is needed besides memories: on SQLite and files of one machine, or on PostgreSQL."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from functools import partial

from memory.adapters.snapshot_files import FileSnapshots
from memory.adapters.sql.chat_states import SqlChatStates
from memory.adapters.sql.compacted_states import SqlCompactedStates
from memory.adapters.sql.database import SqlDatabase
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
from memory.adapters.sql.snapshots import SqlSnapshots
from memory.adapters.sql.sqlite_database import SqliteDatabase
from memory.adapters.sql.turn_log import SqlTurnLog
from memory.adapters.sql.upkeep_schedule import SqlUpkeepSchedule
from memory.adapters.sql.usage_counts import SqlUsageCounts
from memory.adapters.sql.write_barrier import SqlWriteBarrier
from memory.model import VectorOrigin
from memory.ports import RequestStores, Snapshots
from memory.ports.erasures import FileRewriting
from memory.processes.from_settings import note_limits, receipt_limits, recording
from memory.processes.kept_state import KeptState, Process
from memory.processes.running_parts import introduction
from memory.settings import Settings


def log_database(settings: Settings, part: str = "") -> AbstractAsyncContextManager[SqlDatabase]:
    """The one that the settings name, not open. `part`: the process that opens it; empty for a tool."""
    if not settings.database_url:
        return sqlite_database(settings, part)
    from memory.processes.postgres_state import postgres_database

    return postgres_database(settings, part)


def sqlite_database(settings: Settings, part: str = "") -> SqliteDatabase:
    return SqliteDatabase(
        settings.turn_log_path,
        introduction=introduction(part),
        synchronous=settings.memory.turn_log.synchronous,
    )


async def open_sql_state(process: Process, stack: AsyncExitStack, *, origin: VectorOrigin) -> KeptState:
    """The stack closes it. `origin`: of the vectors in the store. Raises `BadSetting`, `Unavailable`."""
    settings, clock = process.settings, process.telemetry.clock
    database = await stack.enter_async_context(log_database(settings, process.part))
    turn_log = SqlTurnLog(database, clock=clock)
    notes = SqlNoteBook(database, limits=note_limits(settings))
    states, summaries = SqlCompactedStates(database), SqlSummaries(database, origin=str(origin))
    stores = RequestStores(
        notes=notes,
        receipts=SqlReceipts(database, clock=clock, redact=recording(settings), limits=receipt_limits(settings)),
        usage_counts=await stack.enter_async_context(SqlUsageCounts(database)),
        profiles=SqlProfiles(database),
        states=states,
        summaries=summaries,
        idempotency=SqlIdempotencyKeys(database),
        opt_outs=SqlOptOuts(database),
        erasures=SqlErasures(database),
        projects=SqlProjects(database),
        chat_states=SqlChatStates(database, notes, turn_log.chains, clock),
    )
    return KeptState(
        turn_log=turn_log,
        ledger=SqlUserLedger(database, clock=clock),
        stores=stores,
        states=states,
        summaries=summaries,
        upkeep_schedule=SqlUpkeepSchedule(database),
        model_capabilities=SqlModelCapabilities(database, clock=clock),
        exams=SqlExamResults(database, clock=clock),
        barrier=SqlWriteBarrier(database, clock=clock),
        rewriting=_rewriting(database, settings),
        snapshots=await _snapshots(database, process, stack),
        introductions=partial(asyncio.to_thread, database.owners.introductions),
    )


def _rewriting(database: SqlDatabase, settings: Settings) -> FileRewriting:
    if isinstance(database, SqliteDatabase):
        return database
    from memory.processes.postgres_state import postgres_rewriting

    return postgres_rewriting(settings)


async def _snapshots(database: SqlDatabase, process: Process, stack: AsyncExitStack) -> Snapshots | None:
    settings, clock = process.settings, process.telemetry.clock
    bytes_max = settings.memory.snapshots.total_mib << 20
    if not bytes_max:
        return None
    if isinstance(database, SqliteDatabase):
        files = FileSnapshots(settings.snapshots_dir, bytes_max=bytes_max, clock=clock)
        return await stack.enter_async_context(files)
    return SqlSnapshots(database, bytes_max=bytes_max, clock=clock)
