"""The SQLite turn log among real processes, some of which are killed with -9 in the middle of their work."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from turn_logs import START, ids_of, lease_at

from memory.adapters.sqlite.database import SqliteDatabase
from memory.adapters.sqlite.ledger import SqliteUserLedger
from memory.adapters.sqlite.turn_log import SqliteTurnLog
from memory.model import TurnStatus

SCRIPT = Path(__file__).parents[3] / "support" / "turn_log_process.py"
TURNS = 60  # of each process


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "turns.sqlite"


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


def a_log(database: SqliteDatabase) -> SqliteTurnLog:
    return SqliteTurnLog(database, clock=lambda: START)


@pytest.mark.parametrize("lines", [1, 3, 40])
async def test_what_was_told_survives_kill_9_and_open_turns_become_unknown_at_once(path: Path, lines: int) -> None:
    async with SqliteDatabase(path) as database:
        log = a_log(database)
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
        learnt: list[str] = []
        while (lease := await lease_at(log, START)) is not None:
            learnt += ids_of(lease)
            await log.acknowledge(lease)
        assert learnt == list(status)  # each once, in the order of opening


@pytest.mark.full("starts eight processes")
async def test_eight_processes_append_at_once_and_no_turn_is_lost(path: Path) -> None:
    children = [
        subprocess.Popen([sys.executable, str(SCRIPT), "append", str(path), f"p{n}"], stdout=subprocess.PIPE)
        for n in range(8)
    ]
    for child in children:
        assert child.communicate(timeout=120)[0] == b"done\n"
    async with SqliteDatabase(path) as database:
        turns = [turn.id for n in range(7) async for turn in a_log(database).turns(f"user-{n}")]
        assert sorted(turns) == sorted(f"p{n}-{number}" for n in range(8) for number in range(TURNS))
        assert (await a_log(database).depth(now=START)).due == 8 * TURNS


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
        log, ledger = a_log(database), SqliteUserLedger(database, clock=lambda: START, wait_seconds=0.2)
        with process("hold", path) as child:
            ((_, window_id),) = lines_of(child, 1)
            held = await lease_at(log, START)
            assert held is not None
            assert held.window_id != window_id
            await log.recover()  # it lives, and keeps what it holds
            assert (await ledger.revision("user-0")).is_settled is False
            child.kill()
            child.wait()
        async with ledger.write("user-0"):
            pass
        assert await log.recover() == 0  # no turn was open; its lease has ended all the same
        taken = await lease_at(log, START)
        assert taken is not None
        assert (taken.window_id, taken.attempt, taken.plan) == (window_id, 2, b"plan")


async def test_the_dead_leave_no_files_behind(path: Path) -> None:
    async with SqliteDatabase(path) as database:
        with process("chat", path, "ann") as child:
            lines_of(child, 1)
        await a_log(database).recover()
        assert [entry.name for entry in database.owners.folder.iterdir() if not entry.name.startswith(".")] == [
            database.owners.name
        ]
    assert [entry.name for entry in database.owners.folder.iterdir()] == [".setup"]
