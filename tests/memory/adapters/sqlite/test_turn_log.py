"""What is true of the SQLite database alone: group commit, threads, and a disk that is full, busy or damaged."""

from __future__ import annotations

import asyncio
import sqlite3
import stat
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from turn_logs import START, a_turn, ids_of, lease_at, tell

from memory.adapters.sqlite import database as sqlite_database
from memory.adapters.sqlite.database import SqliteDatabase
from memory.adapters.sqlite.ledger import SqliteUserLedger
from memory.adapters.sqlite.schema import APPLICATION_ID, TABLES, VERSION
from memory.adapters.sqlite.turn_log import SqliteTurnLog
from memory.errors import BadSetting, Conflict, Unavailable
from memory.model import Message, TurnStatus


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "turns.sqlite"


def a_log(database: SqliteDatabase) -> SqliteTurnLog:
    return SqliteTurnLog(database, clock=lambda: START)


async def test_a_burst_costs_a_few_transactions(path: Path) -> None:
    """What comes while the writer is busy is written together."""
    async with SqliteDatabase(path) as database:
        log = a_log(database)
        may_end = threading.Event()
        before = database.commits
        async with asyncio.TaskGroup() as group:
            group.create_task(database.write(lambda _: may_end.wait(10)))
            for number in range(500):
                group.create_task(log.append(a_turn(f"t{number}", status=TurnStatus.CLOSED)))
            await asyncio.sleep(0.05)
            may_end.set()
        assert database.commits - before <= 4  # the busy one, and 500 turns in groups of at most 256
        assert (await log.depth(now=START)).due == 500


async def test_asking_in_vain_costs_no_transaction(path: Path) -> None:
    async with SqliteDatabase(path) as database:
        log = a_log(database)
        await log.open(a_turn("t1"))
        before = database.commits
        for _ in range(20):
            assert await lease_at(log, START) is None
            assert await log.recover() == 0
        assert database.commits == before


async def test_reads_do_not_wait_for_writes_nor_does_the_loop(path: Path) -> None:
    async with SqliteDatabase(path) as database:
        log = a_log(database)
        await tell(log, "t1")
        may_end = threading.Event()

        def slow(connection: sqlite3.Connection) -> bool:
            connection.execute("DELETE FROM turns")
            return may_end.wait(10)

        writing = asyncio.ensure_future(database.write(slow))  # noqa: TID251  # something to read beside
        await asyncio.sleep(0.05)
        assert [turn.id async for turn in log.turns("ann")] == ["t1"]
        assert not writing.done()
        may_end.set()
        assert await writing
        assert [turn.id async for turn in log.turns("ann")] == []


async def test_a_cancelled_caller_leaves_a_whole_write(path: Path) -> None:
    async with SqliteDatabase(path) as database:
        log = a_log(database)
        for number in range(20):
            opening = asyncio.ensure_future(tell(log, f"t{number}"))  # noqa: TID251  # the task is what gets cancelled
            await asyncio.sleep(number * 0.0001)
            opening.cancel()
            await asyncio.gather(opening, return_exceptions=True)
        await tell(log, "last")
        depth = await log.depth(now=START)
        record = [turn async for turn in log.turns("ann")]
        assert depth.opened + depth.due == len(record)
        assert depth.due == sum(turn.status is TurnStatus.CLOSED for turn in record)


async def test_what_sqlite_cannot_store_fails_alone(path: Path) -> None:
    async with SqliteDatabase(path) as database:
        log = a_log(database)
        results = await asyncio.gather(
            log.open(a_turn("t1")), log.open(a_turn("broken \ud800")), log.open(a_turn("t2")), return_exceptions=True
        )
        assert [type(result) for result in results] == [type(None), UnicodeEncodeError, type(None)]
        assert [turn.id async for turn in log.turns("ann")] == ["t1", "t2"]


async def test_a_refused_job_leaves_nothing_behind(path: Path) -> None:
    async with SqliteDatabase(path) as database:

        def refused(connection: sqlite3.Connection) -> None:
            connection.execute("DELETE FROM turns")
            raise Conflict("somebody was faster")

        await a_log(database).open(a_turn("t1"))
        with pytest.raises(Conflict):
            await database.write(refused)
        assert [turn.id async for turn in a_log(database).turns("ann")] == ["t1"]


async def test_a_fault_of_our_own_is_not_swallowed_and_stops_nobody(path: Path) -> None:
    async with SqliteDatabase(path) as database:

        def faulty(connection: sqlite3.Connection) -> None:
            connection.execute("DELETE FROM turns")
            raise KeyError("ours")

        await a_log(database).open(a_turn("t1"))
        with pytest.raises(KeyError):
            await database.write(faulty)
        await a_log(database).open(a_turn("t2"))
        assert [turn.id async for turn in a_log(database).turns("ann")] == ["t1", "t2"]


async def test_a_full_disk_is_said_and_got_over(path: Path) -> None:
    async with SqliteDatabase(path) as database:
        log = a_log(database)
        await tell(log, "t1")
        pages = await database.read(lambda connection: connection.execute("PRAGMA page_count").fetchone()[0])
        await database.write(lambda connection: connection.execute(f"PRAGMA max_page_count = {pages + 1}").fetchall())
        large = replace(a_turn("t2"), messages=(Message("user", "x" * 100_000),))
        with pytest.raises(Unavailable, match="full"):
            await log.open(large)
        assert [turn.id async for turn in log.turns("ann")] == ["t1"]
        await database.write(lambda connection: connection.execute("PRAGMA max_page_count = 1000000").fetchall())
        await log.open(large)
        assert ids_of(await lease_at(log, START)) == ["t1"]


async def test_a_busy_database_is_unavailable_in_time_and_still_read(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_database, "BUSY_SECONDS_MAX", 0.2)
    async with SqliteDatabase(path) as database:
        await tell(a_log(database), "t1")
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(Unavailable, match="locked"):
            await a_log(database).open(a_turn("t2"))
        assert [turn.id async for turn in a_log(database).turns("ann")] == ["t1"]
        other.execute("ROLLBACK")
        other.close()
        await a_log(database).open(a_turn("t2"))


async def test_a_writer_that_hangs_lets_callers_go_and_refuses_more_than_it_can_hold(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_database, "CALL_SECONDS_MAX", 0.1)
    monkeypatch.setattr(sqlite_database, "WAITING_JOBS_MAX", 5)
    may_end = threading.Event()
    async with SqliteDatabase(path) as database:
        with pytest.raises(Unavailable, match="no answer"):
            await database.write(lambda _: may_end.wait(10))
        results = await asyncio.gather(
            *(a_log(database).open(a_turn(f"t{number}")) for number in range(7)), return_exceptions=True
        )
        assert [str(result) for result in results if "waiting" in str(result)] == [
            "turn_log is unavailable: more than 5 writes are waiting"
        ] * 2
        may_end.set()
    async with SqliteDatabase(path) as database:  # closing wrote what was waiting
        assert len([turn async for turn in a_log(database).turns("ann")]) == 5


async def test_nothing_is_asked_of_a_closed_database(path: Path) -> None:
    async with SqliteDatabase(path) as database:
        pass
    with pytest.raises(Unavailable):
        await a_log(database).open(a_turn("t1"))
    with pytest.raises(Unavailable):
        await a_log(database).depth(now=START)


@pytest.mark.parametrize("synchronous", ["NORMAL", "FULL"])
async def test_power_loss_is_a_setting(path: Path, synchronous: str) -> None:
    async with SqliteDatabase(path, synchronous=synchronous) as database:  # type: ignore[arg-type]  # parametrised
        level = await database.write(lambda connection: connection.execute("PRAGMA synchronous").fetchone()[0])
        assert level == {"NORMAL": 1, "FULL": 2}[synchronous]
        await tell(a_log(database), "t1")
    async with SqliteDatabase(path) as database:
        assert ids_of(await lease_at(a_log(database), START)) == ["t1"]


async def test_only_the_owner_of_the_file_may_read_it(path: Path) -> None:
    async with SqliteDatabase(path) as database:
        await tell(a_log(database), "t1")
        files = sorted(path.parent.glob("turns.sqlite*"))
        assert len(files) == 4  # the file, its log, its shared memory, the folder of owners
        for file in files:
            assert stat.S_IMODE(file.stat().st_mode) & 0o077 == 0, file


async def test_a_file_that_is_no_database_stops_the_start_and_is_left_alone(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"this is a letter, not a database " * 100)
    with pytest.raises(BadSetting, match="damaged or no SQLite database"):
        async with SqliteDatabase(path):
            pass
    assert path.read_bytes().startswith(b"this is a letter")


async def test_a_damaged_database_stops_the_start(path: Path) -> None:
    async with SqliteDatabase(path) as database:
        await tell(a_log(database), "t1")
    content = bytearray(path.read_bytes())
    content[100:4096] = b"\xff" * 3996
    path.write_bytes(bytes(content))
    with pytest.raises(BadSetting, match="move it"):
        async with SqliteDatabase(path):
            pass


async def test_the_database_of_something_else_is_not_touched(path: Path) -> None:
    path.parent.mkdir()
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE recipes (name TEXT)")
    other.close()
    with pytest.raises(BadSetting, match="something else"):
        async with SqliteDatabase(path):
            pass


async def test_a_file_of_another_version_stops_the_start(path: Path) -> None:
    async with SqliteDatabase(path) as database:
        await database.write(lambda connection: connection.execute(f"PRAGMA user_version = {VERSION + 1}"))
    with pytest.raises(BadSetting, match=f"version {VERSION + 1}, this memproxy reads version {VERSION}"):
        async with SqliteDatabase(path):
            pass


async def test_a_file_without_the_table_of_chains_stops_the_start(path: Path) -> None:
    """Version 1 had no such table; opening its file must fail at the start, not at the first reply."""
    path.parent.mkdir()
    with sqlite3.connect(path) as earlier:
        for statement in TABLES:
            if "chains" not in statement:
                earlier.execute(statement)
        earlier.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        earlier.execute("PRAGMA user_version = 1")
    earlier.close()
    with pytest.raises(BadSetting, match=f"has version 1, this memproxy reads version {VERSION}: start the"):
        async with SqliteDatabase(path):
            pass


async def test_a_path_that_cannot_be_a_file_stops_the_start(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for impossible in (tmp_path, tmp_path / "file" / "turns.sqlite"):
        with pytest.raises(BadSetting, match="name another"):
            async with SqliteDatabase(impossible):
                pass


async def test_waiting_for_a_lock_costs_no_transactions(path: Path) -> None:
    async with SqliteDatabase(path) as one, SqliteDatabase(path) as two:
        holder = SqliteUserLedger(one, clock=lambda: START)
        waiter = SqliteUserLedger(two, clock=lambda: START, wait_seconds=0.2)
        async with holder.write("ann"):
            before = two.commits
            with pytest.raises(Unavailable):
                async with waiter.write("ann"):
                    pytest.fail("the lock is held by somebody else")
            await asyncio.sleep(0.05)
            assert two.commits - before <= 1  # the one that makes sure that nothing was taken
