"""Recorded turns with the arms in their receipts. Read a page at a time: the record of all users may be large."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from functools import partial

import msgspec

from memory.adapters.holdout_rules import compared
from memory.adapters.sql.database import SqlDatabase
from memory.adapters.turn_texts import to_text
from memory.model import Receipt
from memory.model.arms import ComparedTurn

PAGE_TURNS = 500

_RECEIPT = msgspec.json.Decoder(Receipt)
_TURNS = """
SELECT seq, session_id, said_at, answer, body
FROM turns JOIN receipts ON receipts.user_id = turns.user_id AND receipts.id = CAST(turns.receipt_id AS TEXT)
WHERE seq > ? AND said_at >= ? AND turns.receipt_id != x'' ORDER BY seq LIMIT ?
"""


class SqlHoldoutRecord:
    """`memory.ports.holdouts.HoldoutRecord` in an open `SqlDatabase`, that of the turn log."""

    def __init__(self, database: SqlDatabase) -> None:
        self._database = database

    async def turns(self, *, since: float) -> AsyncIterator[ComparedTurn]:
        after = 0
        while page := await self._database.read(partial(_page, after=after, since=since)):
            for _, turn in page:
                yield turn
            after = page[-1][0]


def _page(connection: sqlite3.Connection, *, after: int, since: float) -> list[tuple[int, ComparedTurn]]:
    rows = connection.execute(_TURNS, (after, since, PAGE_TURNS)).fetchall()
    return [(row[0], _compared(*row[1:])) for row in rows]


def _compared(session_id: str, said_at: float, answer: bytes, body: bytes) -> ComparedTurn:
    return compared(session_id, said_at, to_text(answer), _RECEIPT.decode(body))
