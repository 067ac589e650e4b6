"""What tests of the SQLite adapters share."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest
from turn_logs import START

from memory.adapters.sql.sqlite_database import SqliteConnection, SqliteDatabase
from memory.adapters.sql.turn_log import SqlTurnLog


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "turns.sqlite"


@pytest.fixture
async def database(path: Path) -> AsyncIterator[SqliteDatabase]:
    async with SqliteDatabase(path) as opened:
        yield opened


@pytest.fixture
def log(database: SqliteDatabase) -> SqlTurnLog:
    return SqlTurnLog(database, clock=lambda: START)


@pytest.fixture
def busy() -> Callable[..., AbstractAsyncContextManager[None]]:
    """The writer of a database is in the middle of a transaction, after `job`, until this ends."""

    @asynccontextmanager
    async def busy(
        database: SqliteDatabase, job: Callable[[SqliteConnection], object] = lambda _: None
    ) -> AsyncIterator[None]:
        has_begun, may_end = threading.Event(), threading.Event()

        def wait(connection: SqliteConnection) -> None:
            job(connection)
            has_begun.set()
            may_end.wait(60)

        async with asyncio.TaskGroup() as group:
            group.create_task(database.write(wait))
            while not has_begun.is_set():
                await asyncio.sleep(0.001)
            yield
            may_end.set()

    return busy
