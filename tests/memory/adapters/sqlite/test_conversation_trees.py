"""Positions in SQLite: what a request costs, and that damaged ones never loop."""

from __future__ import annotations

import asyncio
import sqlite3
from functools import partial
from pathlib import Path

import pytest
from turn_logs import ManualClock, a_turn

from memory.adapters.sqlite.database import SqliteDatabase
from memory.adapters.sqlite.filling_in import seconds_to_begin
from memory.adapters.sqlite.turn_log import SqliteTurnLog
from memory.model import Message, SentConversation, SentExchange

# Of a message that continues its conversation, savepoints included; SQLite repeats the insertion for its trigger.
STATEMENTS_MAX = 15


def damage(connection: sqlite3.Connection, *, turn_id: str, parent: str) -> None:
    connection.execute("UPDATE turn_branches SET parent_id = ? WHERE turn_id = ?", (parent, turn_id))


@pytest.mark.parametrize("parents", [{"t1": "t1"}, {"t1": "t2", "t2": "t1"}, {"t1": "gone"}])
async def test_a_cycle_or_a_hole_never_loops(tmp_path: Path, parents: dict[str, str]) -> None:
    async with asyncio.timeout(10), SqliteDatabase(tmp_path / "turns.sqlite") as database:
        log = SqliteTurnLog(database, clock=ManualClock())
        first = SentExchange("k1", (Message("user", "a"),), "x")
        await log.trees.open(a_turn("t1", text="a"), SentConversation(("k1",)))
        await log.trees.open(a_turn("t2", text="b"), SentConversation(("k2",), (first,)))
        for turn_id, parent in parents.items():
            await database.write(partial(damage, turn_id=turn_id, parent=parent))
        for number, key in enumerate(("k3", "k4", "k5")):
            await log.trees.open(a_turn(f"n{number}", text=key), SentConversation((key,), (first,)))
        assert [turn.id async for turn in log.turns("ann")] == ["t1", "t2", "n0", "n1", "n2"]


@pytest.mark.parametrize("length", [10, 150])
async def test_the_next_message_of_a_long_conversation_costs_as_much_as_of_a_short_one(
    tmp_path: Path, length: int
) -> None:
    async with SqliteDatabase(tmp_path / "turns.sqlite") as database:
        log = SqliteTurnLog(database, clock=ManualClock())
        earlier: tuple[SentExchange, ...] = ()
        for number in range(length):
            await log.trees.open(a_turn(f"t{number}"), SentConversation((f"k{number}",), earlier))
            earlier += (SentExchange(f"k{number}", (Message("user", "a"),), "x"),)
        statements: list[str] = []
        await database.write(partial(watch, statements=statements))
        await log.trees.open(a_turn("last"), SentConversation(("k",), earlier))
        steps = [one for one in statements if "BEGIN" not in one and "COMMIT" not in one]
        assert len(steps) <= STATEMENTS_MAX


def watch(connection: sqlite3.Connection, *, statements: list[str]) -> None:
    connection.set_trace_callback(statements.append)


@pytest.mark.parametrize(("exchanges", "seconds"), [(1, 5.0), (5, 5.0), (6, 6.0), (100, 100.0)])
def test_a_conversation_takes_time_to_begin_however_short(exchanges: int, seconds: float) -> None:
    assert seconds_to_begin(exchanges, is_loss=False) == seconds


def test_a_lost_turn_is_the_first_exchange_of_those_missed() -> None:
    assert [seconds_to_begin(exchanges, is_loss=True) for exchanges in (1, 2, 6)] == [0.0, 1.0, 5.0]
