"""Recorded turns with the arms in their receipts. Read a page at a time: the record of all users may be large."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial

import msgspec

from memory.adapters.holdout_rules import compared
from memory.adapters.sql.database import SqlDatabase
from memory.adapters.sql.statements import Connection, statements
from memory.adapters.turn_texts import to_text
from memory.model import Receipt
from memory.model.arms import ComparedTurn

SQL = statements("holdout_record")

PAGE_TURNS = 500

_RECEIPT = msgspec.json.Decoder(Receipt)


class SqlHoldoutRecord:
    """`memory.ports.holdouts.HoldoutRecord` in an open `SqlDatabase`, that of the turn log."""

    def __init__(self, database: SqlDatabase) -> None:
        self._database = database

    async def turns(self, *, since: float) -> AsyncIterator[ComparedTurn]:
        after = 0
        while page := await self._database.read(partial(_page, after=after, since=since)):
            for _, turn in page:
                if turn is not None:
                    yield turn
            after = page[-1][0]


def _page(connection: Connection, *, after: int, since: float) -> list[tuple[int, ComparedTurn | None]]:
    """None for a turn whose receipt is gone."""
    rows = SQL.turns_with_receipts(connection, after=after, since=since, page_turns=PAGE_TURNS).fetchall()
    found: list[tuple[int, ComparedTurn | None]] = []
    for seq, user_id, session_id, said_at, answer, receipt_id in rows:
        receipt = SQL.body_of(connection, user_id=user_id, receipt_id=to_text(receipt_id)).fetchone()
        found.append((seq, None if receipt is None else _compared(session_id, said_at, answer, receipt[0])))
    return found


def _compared(session_id: str, said_at: float, answer: bytes, body: bytes) -> ComparedTurn:
    return compared(session_id, said_at, to_text(answer), _RECEIPT.decode(body))
