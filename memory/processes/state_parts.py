"""Opens what is kept besides memories where the settings say: on PostgreSQL, or on SQLite and files of one machine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from memory.adapters.snapshot_files import FileSnapshots
from memory.adapters.sql.exams import SqlExamResults
from memory.adapters.sql.holdout_record import SqlHoldoutRecord
from memory.adapters.sql.locked_owners import living
from memory.adapters.sql.opt_outs import SqlOptOuts
from memory.adapters.sql.recording_times import newest_turn_at
from memory.adapters.sql.snapshots import SqlSnapshots
from memory.adapters.sql.sqlite_database import SqliteDatabase
from memory.adapters.sql.turn_log import SqlTurnLog
from memory.errors import BadSetting
from memory.ports import Clock
from memory.ports.holdouts import HoldoutRecord
from memory.ports.snapshots import Snapshots
from memory.processes.kept_state import ExaminedState
from memory.processes.sql_state import log_database
from memory.settings import Settings


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
