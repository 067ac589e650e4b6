"""What the turn log's file is for all that stand on it: glances on the loop, and what is posted."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path

import msgspec
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


def _violates(connection: sqlite3.Connection) -> None:
    tell("undone", connection)
    connection.execute("CREATE TABLE once (n INTEGER PRIMARY KEY)")
    connection.executemany("INSERT INTO once VALUES (?)", [(1,), (1,)])


def _names_no_column(connection: sqlite3.Connection) -> None:
    tell("undone", connection)
    connection.execute("SELECT nothing FROM told")


def _binds_too_little(connection: sqlite3.Connection) -> None:
    tell("undone", connection)
    connection.execute("INSERT INTO told VALUES (?)", ())


def _raises(error: Exception, connection: sqlite3.Connection) -> None:
    tell("undone", connection)
    raise error


OF_ONE = [
    (_violates, Unavailable),
    (_names_no_column, Unavailable),
    (_binds_too_little, sqlite3.ProgrammingError),
    (partial(_raises, KeyError("x")), KeyError),
    (partial(_raises, AssertionError("x")), AssertionError),
    (partial(_raises, msgspec.DecodeError("x")), msgspec.DecodeError),
]


@pytest.mark.parametrize(("wrong", "error"), OF_ONE)
async def test_a_job_that_fails_takes_no_other_of_its_transaction_along(
    database: SqliteDatabase, wrong: Callable[[sqlite3.Connection], None], error: type[Exception]
) -> None:
    results = await _together(database, wrong)
    assert [type(one) for one in results] == [type(None), type(None), error, type(None)]
    assert await database.read(told) == ["one", "two"]


@pytest.mark.parametrize("code", [sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CORRUPT])
async def test_an_error_of_the_whole_database_fails_the_transaction(database: SqliteDatabase, code: int) -> None:
    error = sqlite3.OperationalError("disk")
    error.sqlite_errorcode = code
    results = await _together(database, partial(_raises, error))
    assert [type(one) for one in results] == [type(None), Unavailable, Unavailable, Unavailable]
    assert await database.read(told) == []


async def _together(database: SqliteDatabase, wrong: Callable[[sqlite3.Connection], None]) -> list[object]:
    """What becomes of a job that comes first, and of three that go into one transaction after it."""
    may_go_on = threading.Event()
    async with asyncio.TaskGroup() as tasks:
        first = tasks.create_task(database.write(lambda _: may_go_on.wait(30) and None))
        await asyncio.sleep(0.05)
        jobs = (partial(tell, "one"), wrong, partial(tell, "two"))
        rest = asyncio.gather(*(database.write(job) for job in jobs), return_exceptions=True)
        await asyncio.sleep(0.05)
        may_go_on.set()
        others = await rest
    return [first.result(), *others]
