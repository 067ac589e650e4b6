"""Opens what is kept besides memories where the settings say: on Redis, or on SQLite and files of one machine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

from memory.adapters.sql.exams import SqlExamResults
from memory.adapters.sql.holdout_record import SqlHoldoutRecord
from memory.adapters.sql.locked_owners import living
from memory.adapters.sql.opt_outs import SqlOptOuts
from memory.adapters.sql.turn_log import SqlTurnLog
from memory.adapters.sql.turn_times import newest_turn_at
from memory.adapters.working_set.snapshot_files import FileSnapshots
from memory.errors import BadSetting
from memory.model import VectorOrigin
from memory.ports import Clock
from memory.ports.holdouts import HoldoutRecord
from memory.ports.snapshots import Snapshots
from memory.processes.kept_state import ExaminedState, KeptState, Process
from memory.processes.sqlite_state import open_sqlite_state, turn_log_database
from memory.settings.loader import Settings


async def open_state(process: Process, stack: AsyncExitStack, *, origin: VectorOrigin) -> KeptState:
    """The stack closes it. `origin`: of the vectors in the store. Raises `BadSetting`, `Unavailable`."""
    if not process.settings.redis_url:
        return await open_sqlite_state(process, stack, origin=origin)
    from memory.processes.redis_state import open_redis_state

    return await open_redis_state(process, stack, origin=origin)


@asynccontextmanager
async def open_snapshots(settings: Settings, clock: Clock) -> AsyncIterator[Snapshots]:
    """All snapshots, for a tool that erases them. Raises `BadSetting`, `Unavailable`."""
    if settings.redis_url:
        from memory.processes.redis_state import open_redis_snapshots

        async with open_redis_snapshots(settings, clock) as shared:
            yield shared
        return
    async with FileSnapshots(settings.snapshots_dir, bytes_max=0, clock=clock) as files:
        yield files


@asynccontextmanager
async def open_holdouts(settings: Settings) -> AsyncIterator[HoldoutRecord]:
    """Raises `BadSetting` where nothing has been recorded, `Unavailable`."""
    if settings.redis_url:
        from memory.processes.redis_state import open_redis_holdouts

        async with open_redis_holdouts(settings) as shared:
            yield shared
        return
    if not settings.turn_log_path.exists():
        raise BadSetting(f"there is no {settings.turn_log_path}: name the data_dir of the deployment")
    async with turn_log_database(settings) as database:
        yield SqlHoldoutRecord(database)


@asynccontextmanager
async def open_examined(settings: Settings, clock: Clock) -> AsyncIterator[ExaminedState]:
    """What the doctor looks at. Raises `BadSetting`, `Unavailable`."""
    if settings.redis_url:
        from memory.processes.redis_state import open_redis_examined

        async with open_redis_examined(settings, clock) as shared:
            yield shared
        return
    async with turn_log_database(settings) as database:
        yield ExaminedState(
            where=str(settings.turn_log_path),
            queue=SqlTurnLog(database, clock=clock),
            opt_outs=SqlOptOuts(database),
            exams=SqlExamResults(database, clock=clock),
            introductions=partial(asyncio.to_thread, database.owners.introductions),
            newest_turn_at=partial(newest_turn_at, database),
        )


async def processes_on(settings: Settings) -> int:
    """How many processes have the turn log open: filters, workers, API, tools. Raises `BadSetting`, `Unavailable`."""
    if settings.redis_url:
        from memory.processes.redis_state import processes_on_redis

        return await processes_on_redis(settings)
    log = settings.turn_log_path
    return living(log.with_name(f"{log.name}.owners"))


__all__ = ["open_examined", "open_holdouts", "open_snapshots", "open_state", "processes_on"]
