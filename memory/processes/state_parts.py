"""Opens what is kept besides memories where the settings say: on PostgreSQL, or on SQLite and files of one machine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial

from memory.adapters.snapshot_files import FileSnapshots
from memory.adapters.sql.chat_states import SqlChatStates
from memory.adapters.sql.database import SqlDatabase
from memory.adapters.sql.erased_users import SqlOptOuts
from memory.adapters.sql.erasures import SqlErasures, SqlWriteBarrier
from memory.adapters.sql.ledger import SqlUserLedger
from memory.adapters.sql.locked_owners import living
from memory.adapters.sql.model_capabilities import SqlExamResults, SqlModelCapabilities
from memory.adapters.sql.notes import SqlCompactedStates, SqlNoteBook
from memory.adapters.sql.profiles import SqlProfiles
from memory.adapters.sql.projects import SqlProjects
from memory.adapters.sql.receipts import SqlHoldoutRecord, SqlReceipts
from memory.adapters.sql.recording_times import newest_turn_at
from memory.adapters.sql.requests_by_name import SqlIdempotencyKeys
from memory.adapters.sql.session_summaries import SqlSummaries
from memory.adapters.sql.snapshots import SqlSnapshots
from memory.adapters.sql.sqlite_database import SqliteDatabase
from memory.adapters.sql.turn_log import SqlTurnLog
from memory.adapters.sql.upkeep import SqlUpkeepSchedule, SqlUsageCounts
from memory.errors import BadSetting
from memory.model import VectorOrigin
from memory.ports import Clock, RequestStores
from memory.ports.erasures import FileRewriting
from memory.ports.operators import HoldoutRecord
from memory.ports.stores import Snapshots
from memory.processes.from_settings import note_limits, receipt_limits, recording
from memory.processes.kept_state import ExaminedState, KeptState, Process, introduction
from memory.settings import Settings


def log_database(settings: Settings, part: str = "") -> AbstractAsyncContextManager[SqlDatabase]:
    """The one that the settings name, not open. `part`: the process that opens it; empty for a tool."""
    if not settings.database_url:
        return sqlite_database(settings, part)
    from memory.processes.postgres_state import postgres_database

    return postgres_database(settings, part)


def sqlite_database(settings: Settings, part: str = "") -> SqliteDatabase:
    return SqliteDatabase(
        settings.turn_log_path, introduction=introduction(part), synchronous=settings.memory.turn_log.synchronous
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
        usage_counts=SqlUsageCounts(database),
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


@asynccontextmanager
async def open_snapshots(settings: Settings, clock: Clock) -> AsyncIterator[Snapshots]:
    """All snapshots, for a tool that erases them. Raises `BadSetting`, `Unavailable`."""
    if settings.database_url:
        async with log_database(settings) as database:
            yield SqlSnapshots(database, bytes_max=0, clock=clock)
        return
    async with FileSnapshots(settings.snapshots_dir, bytes_max=0, clock=clock) as files:
        yield files


@asynccontextmanager
async def open_holdouts(settings: Settings) -> AsyncIterator[HoldoutRecord]:
    """Raises `BadSetting` where nothing has been recorded, `Unavailable`."""
    refuse_without_record(settings)
    async with log_database(settings) as database:
        if settings.database_url and await newest_turn_at(database) is None:
            raise BadSetting(
                f"nothing was recorded on {settings.database_url}: name the database_url of the deployment"
            )
        yield SqlHoldoutRecord(database)


def refuse_without_record(settings: Settings) -> None:
    """Raises `BadSetting` where no memproxy has run, since a tool would create an empty record and show it."""
    if not settings.database_url and not settings.turn_log_path.exists():
        raise BadSetting(f"there is no {settings.turn_log_path}: name the data_dir of the deployment")


@asynccontextmanager
async def open_examined(settings: Settings, clock: Clock) -> AsyncIterator[ExaminedState]:
    """What the doctor looks at. Raises `BadSetting`, `Unavailable`."""
    async with log_database(settings) as database:
        is_file = isinstance(database, SqliteDatabase)
        yield ExaminedState(
            where=str(settings.turn_log_path) if is_file else settings.database_url,
            queue=SqlTurnLog(database, clock=clock),
            opt_outs=SqlOptOuts(database),
            exams=SqlExamResults(database, clock=clock),
            introductions=partial(asyncio.to_thread, database.owners.introductions),
            newest_turn_at=partial(newest_turn_at, database) if is_file else None,
            server_time=None if is_file else database.server_time,
        )


async def processes_on(settings: Settings) -> int:
    """How many processes have the turn log open: filters, workers, API, tools. Raises `BadSetting`, `Unavailable`."""
    if settings.database_url:
        from memory.processes.postgres_state import processes_on_postgres

        return await processes_on_postgres(settings)
    log = settings.turn_log_path
    return living(log.with_name(f"{log.name}.owners"))
