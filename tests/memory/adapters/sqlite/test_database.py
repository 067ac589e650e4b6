"""What the turn log's file is for all that stand on it: glances on the loop, and what is posted."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from memory.adapters.sqlite.database import BATCH_JOBS_MAX, SqliteDatabase
from memory.errors import Unavailable


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[SqliteDatabase]:
    async with SqliteDatabase(tmp_path / "turns.sqlite") as opened:
        await opened.write(lambda connection: connection.execute("CREATE TABLE told (what TEXT)").close())
        yield opened


def tell(what: str, connection: sqlite3.Connection) -> None:
    connection.execute("INSERT INTO told VALUES (?)", (what,))


def told(connection: sqlite3.Connection) -> list[str]:
    return [what for (what,) in connection.execute("SELECT what FROM told ORDER BY rowid")]


async def test_a_glance_takes_no_thread_and_sees_what_was_committed(database: SqliteDatabase) -> None:
    await database.write(lambda connection: tell("one", connection))
    threads: list[threading.Thread] = []

    def look(connection: sqlite3.Connection) -> list[str]:
        threads.append(threading.current_thread())
        return told(connection)

    assert await database.read_now(look) == ["one"]
    assert threads == [threading.current_thread()]


async def test_a_glance_that_would_have_to_wait_waits_in_the_readers_thread(database: SqliteDatabase) -> None:
    threads: list[threading.Thread] = []

    def look(connection: sqlite3.Connection) -> list[str]:
        threads.append(threading.current_thread())
        if len(threads) == 1:
            raise sqlite3.OperationalError("database is locked")
        return told(connection)

    assert await database.read_now(look) == []
    assert threads[0] is threading.current_thread()
    assert threads[1].name.startswith("turn-log-reader")


async def test_a_glance_writes_nothing(database: SqliteDatabase) -> None:
    with pytest.raises(Unavailable, match="readonly"):
        await database.read_now(lambda connection: tell("one", connection))


async def test_a_glance_into_a_closed_database_is_refused(tmp_path: Path) -> None:
    async with SqliteDatabase(tmp_path / "turns.sqlite") as closed:
        pass
    with pytest.raises(Unavailable):
        await closed.read_now(told)


async def test_what_is_posted_together_is_committed_together_and_in_order(database: SqliteDatabase) -> None:
    before, over = database.commits, asyncio.Event()
    for number in range(3):
        database.post(lambda connection, number=number: tell(str(number), connection))  # type: ignore[misc]
    database.post(lambda connection: tell("last", connection), then=over.set)
    await asyncio.wait_for(over.wait(), 5)
    assert await database.read(told) == ["0", "1", "2", "last"]
    assert database.commits == before + 1


async def test_what_was_posted_before_is_written_before(database: SqliteDatabase) -> None:
    database.post(lambda connection: tell("posted", connection))
    await database.write(lambda connection: tell("written", connection))
    assert await database.read(told) == ["posted", "written"]


async def test_more_than_a_batch_is_all_written(database: SqliteDatabase) -> None:
    for number in range(BATCH_JOBS_MAX + 1):
        database.post(lambda connection, number=number: tell(str(number), connection))  # type: ignore[misc]
    async with asyncio.timeout(5):
        while len(await database.read(told)) <= BATCH_JOBS_MAX:
            await asyncio.sleep(0.01)


async def test_a_write_behind_more_than_a_batch_is_committed_when_it_returns(database: SqliteDatabase) -> None:
    for number in range(BATCH_JOBS_MAX + 40):
        database.post(lambda connection, number=number: tell(str(number), connection))  # type: ignore[misc]
    await database.write(lambda connection: tell("written", connection))
    assert (await database.read(told))[-1] == "written"


async def test_closing_writes_what_was_posted(tmp_path: Path) -> None:
    path = tmp_path / "turns.sqlite"
    async with SqliteDatabase(path) as database:
        await database.write(lambda connection: connection.execute("CREATE TABLE told (what TEXT)").close())
        database.post(lambda connection: tell("at the end", connection))
    async with SqliteDatabase(path) as again:
        assert await again.read(told) == ["at the end"]
