"""Copies of the conversation record on SQLite, out of the turn log's database and into it."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import replace
from functools import partial
from typing import Protocol, TypeVar

import msgspec

from memory.adapters.copy_rules import moved_to, owned_turn, plain_message, plain_turn
from memory.adapters.sql import known_exchanges, recorded_changes
from memory.adapters.sql.database import SqlDatabase
from memory.adapters.sql.recorded_rows import MESSAGE_COLUMNS, message_of
from memory.adapters.sql.turns_opening import insert_turn
from memory.adapters.sql.turns_rows import TURN_COLUMNS, turn_of
from memory.adapters.turn_rules import TAUGHT
from memory.model import RecordedMessage
from memory.model.turn_copies import Learning, TurnCopy, copied_turn_id
from memory.ports import Clock

PAGE_ROWS = 50  # of at most 2 MiB each
_LEARNING = {"learnt": Learning.LEARNT, "open": Learning.DUE, "ready": Learning.DUE, "window": Learning.DUE}
_IS_LEFT_OUT = "is_order = 1 OR id IN (SELECT turn_id FROM turns_in_no_summary)"


Row = TypeVar("Row", covariant=True)


class _Page(Protocol[Row]):
    """The next rows of a user after a position, each with its own."""

    def __call__(self, connection: sqlite3.Connection, *, user_id: str, after: int) -> Sequence[tuple[int, Row]]: ...


class SqlRecordCopies:
    """`memory.ports.RecordCopies` in an open `SqlDatabase`."""

    def __init__(self, database: SqlDatabase, *, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    def turns(self, user_id: str) -> AsyncIterator[TurnCopy]:
        return self._paged(_turns, user_id)

    def messages(self, user_id: str) -> AsyncIterator[RecordedMessage]:
        return self._paged(_messages, user_id)

    async def _paged(self, page: _Page[Row], user_id: str) -> AsyncIterator[Row]:
        after, is_last = 0, False
        while not is_last:
            rows = await self._database.read(partial(page, user_id=user_id, after=after))
            for position, row in rows:
                after = position
                yield row
            is_last = len(rows) < PAGE_ROWS

    async def add_turns(self, user_id: str, copies: Sequence[TurnCopy]) -> int:
        own = [replace(copy, turn=owned_turn(copy.turn, user_id)) for copy in copies]
        return await self._database.write(partial(_add_turns, copies=own, now=self._clock()))

    async def own_turns(self, user_id: str, turn_ids: Collection[str]) -> frozenset[str]:
        return await self._database.read(partial(_own_turns, user_id=user_id, turn_ids=turn_ids))

    async def add_messages(self, user_id: str, messages: Sequence[RecordedMessage]) -> int:
        job = partial(_add_messages, user_id=user_id, messages=messages, now=self._clock())
        return await self._database.write(job)


def _turns(connection: sqlite3.Connection, *, user_id: str, after: int) -> list[tuple[int, TurnCopy]]:
    rows = connection.execute(
        f"SELECT stage, {_IS_LEFT_OUT}, {TURN_COLUMNS} FROM turns WHERE user_id = ? AND seq > ? "  # noqa: S608  # our own constants
        "ORDER BY seq LIMIT ?",
        (user_id, after, PAGE_ROWS),
    )
    return [
        (row[0], TurnCopy(plain_turn(turn_of(tuple(row))), _LEARNING.get(stage, Learning.NEVER), not is_left_out))
        for stage, is_left_out, *row in rows
    ]


def _messages(connection: sqlite3.Connection, *, user_id: str, after: int) -> list[tuple[int, RecordedMessage]]:
    rows = connection.execute(
        f"SELECT {MESSAGE_COLUMNS} FROM messages WHERE user_id = ? AND position > ? "  # noqa: S608  # our own constant
        "ORDER BY position LIMIT ?",
        (user_id, after, PAGE_ROWS),
    )
    return [(row[-1], plain_message(message_of(row))) for row in rows]


def _add_turns(connection: sqlite3.Connection, *, copies: Sequence[TurnCopy], now: float) -> int:
    return sum(_add_turn(connection, copy, now) for copy in copies)


def _own_turns(connection: sqlite3.Connection, *, user_id: str, turn_ids: Collection[str]) -> frozenset[str]:
    rows = connection.execute(
        "SELECT id FROM turns WHERE user_id = ? AND id IN (SELECT value FROM json_each(?))",
        (user_id, msgspec.json.encode(sorted(turn_ids)).decode()),
    )
    return frozenset(turn_id for (turn_id,) in rows)


def _add_turn(connection: sqlite3.Connection, copy: TurnCopy, now: float) -> bool:
    user_id = copy.turn.scope.user_id
    turn = replace(copy.turn, id=copied_turn_id(user_id, copy.turn.id))
    ids = (copy.turn.id, turn.id)
    if _own_turns(connection, user_id=user_id, turn_ids=ids):
        return False
    if any(known_exchanges.was_recorded(connection, replace(turn, id=one)) for one in ids):
        return False
    if copy.learning is Learning.DUE and turn.status in TAUGHT:
        insert_turn(connection, turn=turn, now=now, owner="")
    else:
        stage = "learnt" if copy.learning is Learning.LEARNT else "nothing"
        insert_turn(connection, turn=turn, now=now, owner="", stage=stage)
    if not copy.in_summaries:
        connection.execute(
            "INSERT INTO turns_in_no_summary (turn_id, user_id, session_id) VALUES (?, ?, ?)",
            (turn.id, turn.scope.user_id, turn.scope.session_id),
        )
    return True


def _add_messages(
    connection: sqlite3.Connection, *, user_id: str, messages: Sequence[RecordedMessage], now: float
) -> int:
    placed = [placed for message in messages if (placed := _placed(connection, message, user_id)) is not None]
    before = connection.total_changes
    recorded_changes.add(connection, user_id=user_id, messages=placed, now=now)
    return connection.total_changes - before


def _placed(connection: sqlite3.Connection, message: RecordedMessage, user_id: str) -> RecordedMessage | None:
    """With the id and the position of its turn here; None without that turn."""
    if not message.turn_id:
        return message
    for turn_id in (message.turn_id, copied_turn_id(user_id, message.turn_id)):
        row = connection.execute("SELECT seq FROM turns WHERE id = ? AND user_id = ?", (turn_id, user_id)).fetchone()
        if row is not None:
            return moved_to(message, turn_id, seq=row[0])
    return None
