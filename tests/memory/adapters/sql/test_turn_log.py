"""The turn log in SQLite: what it costs, and what becomes of it on a busy disk and among processes that are killed."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from turn_logs import START, a_turn, ids_of, lease_at, leased, tell, windows

from memory.adapters.sql import job_writer, sqlite_database
from memory.adapters.sql.ledger import SqlUserLedger
from memory.adapters.sql.sqlite_database import SqliteConnection, SqliteDatabase
from memory.adapters.sql.turn_log import SqlTurnLog
from memory.errors import Unavailable
from memory.model import Message, SentConversation, SentExchange, TurnStatus

# Of a message that continues its conversation, savepoints included; SQLite repeats the insertion for its trigger.
STATEMENTS_MAX = 15
Busy = Callable[..., AbstractAsyncContextManager[None]]


@pytest.mark.parametrize("parents", [{"t1": "t1"}, {"t1": "t2", "t2": "t1"}, {"t1": "gone"}])
async def test_no_cycle_and_no_hole_loops(database: SqliteDatabase, log: SqlTurnLog, parents: dict[str, str]) -> None:
    def damage(connection: SqliteConnection) -> None:
        for turn_id, parent in parents.items():
            connection.raw.execute("UPDATE turn_branches SET parent_id = ? WHERE turn_id = ?", (parent, turn_id))

    async with asyncio.timeout(60):
        first = SentExchange("k1", (Message("user", "a"),), "x")
        await log.trees.open(a_turn("t1", text="a"), SentConversation(("k1",)))
        await log.trees.open(a_turn("t2", text="b"), SentConversation(("k2",), (first,)))
        await database.write(damage)
        for number, key in enumerate(("k3", "k4", "k5")):
            await log.trees.open(a_turn(f"n{number}", text=key), SentConversation((key,), (first,)))
        assert [turn.id async for turn in log.turns("ann")] == ["t1", "t2", "n0", "n1", "n2"]


@pytest.mark.parametrize("length", [10, 150])
async def test_the_next_message_of_a_long_conversation_costs_as_much_as_of_a_short_one(
    database: SqliteDatabase, log: SqlTurnLog, length: int
) -> None:
    earlier: tuple[SentExchange, ...] = ()
    for number in range(length):
        await log.trees.open(a_turn(f"t{number}"), SentConversation((f"k{number}",), earlier))
        earlier += (SentExchange(f"k{number}", (Message("user", "a"),), "x"),)
    statements: list[str] = []
    await database.write(lambda connection: connection.raw.set_trace_callback(statements.append))
    await log.trees.open(a_turn("last"), SentConversation(("k",), earlier))
    steps = [one for one in statements if "BEGIN" not in one and "COMMIT" not in one]
    assert len(steps) <= STATEMENTS_MAX


def a_log(database: SqliteDatabase) -> SqlTurnLog:
    return SqlTurnLog(database, clock=lambda: START)


async def test_a_burst_costs_a_few_transactions(database: SqliteDatabase, log: SqlTurnLog, busy: Busy) -> None:
    """What comes while the writer is busy is written together."""
    before = database.commits
    async with asyncio.TaskGroup() as group, busy(database):
        for number in range(500):
            group.create_task(log.append(a_turn(f"t{number}", status=TurnStatus.CLOSED)))
        await asyncio.sleep(0)
    assert database.commits - before <= 4  # the busy one, and 500 turns in groups of at most 256
    assert (await log.depth(now=START)).due == 500


async def test_asking_in_vain_costs_no_transaction(database: SqliteDatabase, log: SqlTurnLog) -> None:
    await log.open(a_turn("t1"))
    before = database.commits
    for _ in range(20):
        assert await lease_at(log, START) is None
        assert await log.recover() == 0
    assert database.commits == before


async def test_reads_and_the_loop_wait_for_no_writes(database: SqliteDatabase, log: SqlTurnLog, busy: Busy) -> None:
    await tell(log, "t1")
    async with busy(database, lambda connection: connection.raw.execute("DELETE FROM turns")):
        assert [turn.id async for turn in log.turns("ann")] == ["t1"]
    assert [turn.id async for turn in log.turns("ann")] == []


async def test_a_cancelled_caller_leaves_a_whole_write(log: SqlTurnLog) -> None:
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


async def test_a_full_disk_is_said_and_got_over(database: SqliteDatabase, log: SqlTurnLog) -> None:
    await tell(log, "t1")
    pages = await database.read(lambda connection: connection.raw.execute("PRAGMA page_count").fetchone()[0])
    await database.write(lambda connection: connection.raw.execute(f"PRAGMA max_page_count = {pages + 1}").fetchall())
    large = replace(a_turn("t2"), messages=(Message("user", "x" * 100_000),))
    with pytest.raises(Unavailable, match="full"):
        await log.open(large)
    assert [turn.id async for turn in log.turns("ann")] == ["t1"]
    await database.write(lambda connection: connection.raw.execute("PRAGMA max_page_count = 1000000").fetchall())
    await log.open(large)
    assert ids_of(await lease_at(log, START)) == ["t1"]


async def test_a_busy_database_is_unavailable_and_still_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sqlite_database._connect.__kwdefaults__, "seconds_max", 0.2)
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


async def test_a_hanging_writer_lets_callers_go_and_refuses_more(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_writer, "CALL_SECONDS_MAX", 0.1)
    monkeypatch.setattr(job_writer, "WAITING_JOBS_MAX", 5)
    may_end = threading.Event()
    async with SqliteDatabase(path) as database:
        with pytest.raises(Unavailable, match="no answer"):
            await database.write(lambda _: may_end.wait(60))
        results = await asyncio.gather(
            *(a_log(database).open(a_turn(f"t{number}")) for number in range(7)), return_exceptions=True
        )
        assert [str(result) for result in results if "waiting" in str(result)] == [
            "turn_log is unavailable: more than 5 writes are waiting"
        ] * 2
        may_end.set()
    async with SqliteDatabase(path) as database:  # closing wrote what was waiting
        assert len([turn async for turn in a_log(database).turns("ann")]) == 5


async def test_waiting_for_a_lock_costs_no_transactions(path: Path) -> None:
    async with SqliteDatabase(path) as one, SqliteDatabase(path) as two:
        holder = SqlUserLedger(one, clock=lambda: START)
        waiter = SqlUserLedger(two, clock=lambda: START, wait_seconds=0.2)
        async with holder.write("ann"):
            before = two.commits
            with pytest.raises(Unavailable):
                async with waiter.write("ann"):
                    pytest.fail("the lock is held by somebody else")
            assert two.commits - before <= 1  # the one that makes sure that nothing was taken


SCRIPT = Path(__file__).parents[3] / "support" / "turn_log_process.py"
TURNS = 60  # of each process


@contextmanager
def process(task: str, path: Path, name: str = "p") -> Iterator[subprocess.Popen[str]]:
    """Killed with -9 at the end, if it still runs."""
    with subprocess.Popen(
        [sys.executable, str(SCRIPT), task, str(path), name], stdout=subprocess.PIPE, text=True
    ) as child:
        try:
            yield child
        finally:
            child.kill()


def lines_of(child: subprocess.Popen[str], count: int) -> list[list[str]]:
    assert child.stdout is not None
    return [child.stdout.readline().split() for _ in range(count)]


@pytest.mark.parametrize("lines", [1, 40])
async def test_what_was_told_survives_kill_9(path: Path, database: SqliteDatabase, log: SqlTurnLog, lines: int) -> None:
    with process("chat", path, "ann") as child:
        heard = lines_of(child, lines)
        assert await log.recover() == 0  # it lives
        child.kill()
        child.wait()
    found = await log.recover()
    assert found >= 1 or heard[-1][0] == "closed"
    status = {turn.id: turn.status async for turn in log.turns("ann")}
    assert TurnStatus.OPENED not in status.values()
    for word, turn_id in heard:
        assert status[turn_id] == TurnStatus.CLOSED if word == "closed" else status[turn_id]
    learnt = [turn_id for window in await windows(log, START) for turn_id in window]
    assert learnt == list(status)  # each once, in the order of opening
    owners = database.owners
    files = [entry.name for entry in owners.folder.iterdir() if not entry.name.startswith(".")]
    assert files == [owners.name], "none of the dead"
    await database.__aexit__(None, None, None)
    assert [entry.name for entry in owners.folder.iterdir()] == [".setup"]


@pytest.mark.full("starts four processes")
async def test_several_processes_learn_every_turn_exactly_once(path: Path) -> None:
    subprocess.run([sys.executable, str(SCRIPT), "append", str(path), "p"], check=True, stdout=subprocess.DEVNULL)
    learners = [
        subprocess.Popen([sys.executable, str(SCRIPT), "learn", str(path), "l"], stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    said = [child.communicate(timeout=120)[0] for child in learners]
    learnt = Counter(turn_id for text in said for line in text.splitlines() for turn_id in line.split()[1:])
    assert learnt == Counter(f"p-{number}" for number in range(TURNS))


async def test_lease_and_lock_of_a_killed_process_are_free_at_once(path: Path) -> None:
    with process("append", path) as child:
        assert lines_of(child, 1) == [["done"]]
    async with SqliteDatabase(path) as database:
        log, ledger = a_log(database), SqlUserLedger(database, clock=lambda: START, wait_seconds=30.0)
        with process("hold", path) as child:
            ((_, window_id),) = lines_of(child, 1)
            held = await leased(log, START)
            assert held.window_id != window_id
            await log.recover()  # it lives, and keeps what it holds
            assert (await ledger.revision("user-0")).is_settled is False
            child.kill()
            child.wait()
        async with ledger.write("user-0"):
            pass
        assert await log.recover() == 0  # no turn was open; its lease has ended all the same
        taken = await leased(log, START)
        assert (taken.window_id, taken.attempt, taken.plan) == (window_id, 2, b"plan")
