"""The file of SQLite, for all that stand on it: transactions, glances, what is posted; and which files are taken."""

from __future__ import annotations

import asyncio
import sqlite3
import stat
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from note_lookup import notes_of
from turn_logs import START, a_turn, ids_of, lease_at

from memory.adapters.sql import chat_states, notes
from memory.adapters.sql.job_writer import BATCH_JOBS_MAX
from memory.adapters.sql.migrations import VERSION
from memory.adapters.sql.notes import SqlNoteBook
from memory.adapters.sql.sqlite_database import SqliteConnection, SqliteDatabase
from memory.adapters.sql.turn_log import SqlTurnLog
from memory.errors import BadSetting, Conflict, Unavailable, Unusable
from memory.model import PastNote, TurnStatus

Busy = Callable[[SqliteDatabase], AbstractAsyncContextManager[None]]


@pytest.fixture
async def database(database: SqliteDatabase) -> SqliteDatabase:
    await database.write(lambda connection: connection.raw.execute("CREATE TABLE told (what TEXT)").close())
    return database


def tell(what: str, connection: SqliteConnection) -> None:
    connection.raw.execute("INSERT INTO told VALUES (?)", (what,))


def told(connection: SqliteConnection) -> list[str]:
    return [what for (what,) in connection.raw.execute("SELECT what FROM told ORDER BY rowid")]


async def test_a_glance_takes_no_thread_sees_what_was_committed_and_writes_nothing(database: SqliteDatabase) -> None:
    await database.write(lambda connection: tell("one", connection))
    threads: list[threading.Thread] = []

    def look(connection: SqliteConnection) -> list[str]:
        threads.append(threading.current_thread())
        return told(connection)

    assert await database.read_now(look) == ["one"]
    assert threads == [threading.current_thread()]
    with pytest.raises(Unavailable, match="readonly"):
        await database.read_now(lambda connection: tell("two", connection))


async def test_a_glance_that_would_have_to_wait_waits_in_the_readers_thread(database: SqliteDatabase) -> None:
    threads: list[threading.Thread] = []

    def look(connection: SqliteConnection) -> list[str]:
        threads.append(threading.current_thread())
        if len(threads) == 1:
            raise sqlite3.OperationalError("database is locked")
        return told(connection)

    assert await database.read_now(look) == []
    assert threads[0] is threading.current_thread()
    assert threads[1].name.startswith("turn-log-reader")


async def test_what_comes_together_is_committed_together_and_in_order(database: SqliteDatabase) -> None:
    before, over = database.commits, asyncio.Event()
    for number in range(3):
        database.post(partial(tell, str(number)))
    database.post(lambda connection: tell("last", connection), then=over.set)
    await over.wait()
    assert await database.read(told) == ["0", "1", "2", "last"]
    assert database.commits == before + 1
    await asyncio.gather(*(database.write(partial(tell, str(number))) for number in range(20)))
    assert database.commits == before + 2


async def test_a_write_behind_more_than_a_batch_is_committed_when_it_returns(database: SqliteDatabase) -> None:
    before = [str(number) for number in range(BATCH_JOBS_MAX + 40)]
    for number in before:
        database.post(partial(tell, number))
    await database.write(lambda connection: tell("written", connection))
    assert await database.read(told) == [*before, "written"]


async def test_closing_writes_what_was_posted(tmp_path: Path) -> None:
    path = tmp_path / "turns.sqlite"
    async with SqliteDatabase(path) as database:
        await database.write(lambda connection: connection.raw.execute("CREATE TABLE told (what TEXT)").close())
        database.post(lambda connection: tell("at the end", connection))
    async with SqliteDatabase(path) as again:
        assert await again.read(told) == ["at the end"]


def _runs(statement: str, connection: SqliteConnection) -> None:
    tell("undone", connection)
    connection.raw.execute(statement)


def _raises(error: Exception, connection: SqliteConnection) -> None:
    tell("undone", connection)
    raise error


OF_ONE = [
    (partial(_runs, "INSERT INTO told (rowid) VALUES (1), (1)"), Unusable),
    (partial(_runs, "SELECT nothing FROM told"), Unusable),
    (partial(_runs, "INSERT INTO told VALUES (?)"), sqlite3.ProgrammingError),
    (partial(_raises, KeyError("x")), KeyError),
    (partial(_raises, AssertionError("x")), AssertionError),
    (partial(_raises, msgspec.DecodeError("x")), msgspec.DecodeError),
    (partial(_raises, Conflict("somebody was faster")), Conflict),
    (partial(tell, "\ud800"), UnicodeEncodeError),
]


@pytest.mark.parametrize(("wrong", "error"), OF_ONE)
async def test_a_job_that_fails_takes_no_other_of_its_transaction_along(
    database: SqliteDatabase, busy: Busy, wrong: Callable[[SqliteConnection], None], error: type[Exception]
) -> None:
    results = await _together(database, busy, wrong)
    assert [type(one) for one in results] == [type(None), error, type(None)]
    assert await database.read(told) == ["one", "two"]


@pytest.mark.parametrize("code", [sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CORRUPT])
async def test_an_error_of_the_database_fails_the_transaction(database: SqliteDatabase, busy: Busy, code: int) -> None:
    error = sqlite3.OperationalError("disk")
    error.sqlite_errorcode = code
    results = await _together(database, busy, partial(_raises, error))
    assert [type(one) for one in results] == [Unavailable] * 3
    assert await database.read(told) == []


async def _together(
    database: SqliteDatabase, busy: Busy, wrong: Callable[[SqliteConnection], None]
) -> list[BaseException | None]:
    """What becomes of three jobs of one transaction."""
    jobs = (partial(tell, "one"), wrong, partial(tell, "two"))
    async with busy(database):
        results = asyncio.gather(*(database.write(job) for job in jobs), return_exceptions=True)
        await asyncio.sleep(0)  # all of them wait
    return await results


LEARNT = a_turn("t1", status=TurnStatus.CLOSED)


def a_log(database: SqliteDatabase) -> SqlTurnLog:
    return SqlTurnLog(database, clock=lambda: START)


async def test_nothing_is_asked_of_a_closed_database(path: Path) -> None:
    async with SqliteDatabase(path) as database:
        pass
    with pytest.raises(Unavailable):
        await a_log(database).open(a_turn("t1"))
    with pytest.raises(Unavailable):
        await a_log(database).depth(now=START)
    with pytest.raises(Unavailable):
        await database.read_now(told)


@pytest.mark.parametrize("synchronous", ["NORMAL", "FULL"])
async def test_power_loss_is_a_setting(path: Path, synchronous: str) -> None:
    async with SqliteDatabase(path, synchronous=synchronous) as database:  # type: ignore[arg-type]  # parametrised
        level = await database.write(lambda connection: connection.raw.execute("PRAGMA synchronous").fetchone()[0])
        assert level == {"NORMAL": 1, "FULL": 2}[synchronous]
        await a_log(database).append(LEARNT)
    async with SqliteDatabase(path) as database:
        assert ids_of(await lease_at(a_log(database), START)) == ["t1"]


async def test_only_the_owner_of_the_file_may_read_it(path: Path) -> None:
    async with SqliteDatabase(path) as database:
        await a_log(database).append(LEARNT)
        files = sorted(path.parent.glob("turns.sqlite*"))
        assert len(files) == 4  # the file, its log, its shared memory, the folder of owners
        for file in files:
            assert stat.S_IMODE(file.stat().st_mode) & 0o077 == 0, file


async def assert_refused(path: Path, why: str) -> None:
    with pytest.raises(BadSetting, match=why):
        async with SqliteDatabase(path):
            pass


async def test_a_file_that_is_damaged_or_not_ours_stops_the_start_and_is_left_alone(tmp_path: Path) -> None:
    letter, recipes, damaged = (tmp_path / name for name in ("letter", "recipes", "damaged"))
    letter.write_bytes(b"this is a letter, not a database " * 100)
    with closing(sqlite3.connect(recipes)) as other:
        other.execute("CREATE TABLE recipes (name TEXT)")
    async with SqliteDatabase(damaged) as database:
        await a_log(database).append(LEARNT)
    recipes.chmod(0o644)
    content, before = damaged.read_bytes(), recipes.read_bytes()
    damaged.write_bytes(content[:100] + b"\xff" * 3996 + content[4096:])
    await assert_refused(letter, "damaged or no SQLite database")
    assert letter.read_bytes().startswith(b"this is a letter")
    await assert_refused(recipes, "something else")
    assert (recipes.read_bytes(), stat.S_IMODE(recipes.stat().st_mode)) == (before, 0o644)
    await assert_refused(damaged, "move it")
    for impossible in (tmp_path, letter / "turns.sqlite"):
        await assert_refused(impossible, "name another")


@pytest.mark.parametrize("version", [1, VERSION + 1])
async def test_a_file_of_another_version_stops_the_start(path: Path, version: int) -> None:
    async with SqliteDatabase(path) as database:
        await database.write(lambda connection: connection.raw.execute(f"PRAGMA user_version = {version}"))
    await assert_refused(path, f"version {version}, this memproxy reads version {VERSION}")


NOTE = PastNote("about m1", ("m1",), 7)


@dataclass
class Desk:
    """A filter, whose disk may be made to wait, and the process behind the API."""

    database: SqliteDatabase
    filter_: SqlNoteBook
    api: SqlNoteBook

    @contextmanager
    def busy_disk(self) -> Iterator[None]:
        """Its writer is stuck, outside of any transaction of the file."""
        may_go_on = threading.Event()
        assert self.database._writer is not None
        self.database._writer.thread.submit(lambda _: may_go_on.wait(60), None)  # type: ignore[arg-type]
        yield
        may_go_on.set()


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with SqliteDatabase(tmp_path / "t.sqlite") as own, SqliteDatabase(tmp_path / "t.sqlite") as other:
        yield Desk(own, SqlNoteBook(own), SqlNoteBook(other))


async def test_the_process_that_made_it_finds_it_before_it_is_written(desk: Desk) -> None:
    with desk.busy_disk():
        async with asyncio.timeout(30):  # nobody waits for the disk
            await desk.filter_.keep("ann", "k", NOTE, made_at=1.0)
        assert await notes_of(desk.filter_, "ann", ["k"]) == {"k": NOTE}
        assert await notes_of(desk.filter_, "bob", ["k"]) == {}
        assert await notes_of(desk.api, "ann", ["k"]) == {}
    await desk.database.write(lambda _: None)
    assert await notes_of(desk.api, "ann", ["k"]) == {"k": NOTE}
    async with asyncio.timeout(30):
        while desk.filter_._on_their_way:
            await asyncio.sleep(0.001)


async def test_it_is_found_too_if_written_while_rows_are_read(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    rows_of = chat_states.SQL.chat_state

    def read(connection: SqliteConnection, **asked: Any) -> list[Any]:
        rows = rows_of(connection, **asked).fetchall()
        desk.filter_._on_their_way.clear()
        return rows

    monkeypatch.setattr(chat_states.SQL, "chat_state", read)
    with desk.busy_disk():
        await desk.filter_.keep("ann", "k", NOTE, made_at=1.0)
        assert await notes_of(desk.filter_, "ann", ["k"]) == {"k": NOTE}


async def test_it_takes_the_place_of_an_older_one_at_once(desk: Desk) -> None:
    await desk.filter_.keep("ann", "k", PastNote("old", ("m0",), 7), made_at=1.0)
    await desk.database.write(lambda _: None)
    with desk.busy_disk():
        await desk.filter_.keep("ann", "k", NOTE, made_at=2.0)
        assert await notes_of(desk.filter_, "ann", ["k"]) == {"k": NOTE}


@pytest.mark.parametrize("forgotten", [["m1"], []])
async def test_what_another_process_forgot_meanwhile_is_not_found(desk: Desk, forgotten: list[str]) -> None:
    with desk.busy_disk():
        await desk.filter_.keep("ann", "k", NOTE, made_at=1.0)
        await desk.api.drop("ann", forgotten, now=2.0)
        assert await notes_of(desk.filter_, "ann", ["k"]) == {}
    await desk.database.write(lambda _: None)
    assert await notes_of(desk.filter_, "ann", ["k"]) == {}
    assert await notes_of(desk.api, "ann", ["k"]) == {}


async def test_others_find_it_when_anything_is_written_or_soon(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notes, "IN_PASSING_SECONDS", 3_600.0)
    await desk.filter_.keep("ann", "k1", NOTE, made_at=1.0)
    commits = desk.database.commits
    await desk.database.write(lambda _: None)
    assert desk.database.commits == commits + 1
    assert await notes_of(desk.api, "ann", ["k1"]) == {"k1": NOTE}
    monkeypatch.setattr(notes, "IN_PASSING_SECONDS", 0.0)
    await desk.filter_.keep("ann", "k2", NOTE, made_at=1.0)
    async with asyncio.timeout(30):
        while not await notes_of(desk.api, "ann", ["k2"]):
            await asyncio.sleep(0.001)


async def test_a_note_that_cannot_be_written_is_not_remembered_for_ever(tmp_path: Path) -> None:
    async with SqliteDatabase(tmp_path / "t.sqlite") as database:
        book = SqlNoteBook(database)
    await book.keep("ann", "k", NOTE, made_at=1.0)  # closed: nothing is written any more
    assert not book._on_their_way
    with pytest.raises(Unavailable):
        await notes_of(book, "ann", ["k"])
