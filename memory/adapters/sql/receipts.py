"""Receipts on SQLite, in the turn log's database: every process can read those of all filters.

Limited in age, in number per user, and in total bytes (`position` grows by the bytes of each receipt). Erasing a user's
receipts, or those of a project, leaves one marker row with the time, which has no body, so that receipts on their way
are not stored after it. Written in the background after the request; failures are not reported.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import msgspec

from memory.adapters.receipt_rules import before, project_mark, without_secrets
from memory.adapters.retention import DEFAULT_RECEIPT_LIMITS, ReceiptLimits
from memory.adapters.sql import receipt_pages
from memory.adapters.sql.database import SqlDatabase
from memory.adapters.sql.erased_users import was_erased_since
from memory.model import Receipt
from memory.ports import Clock, ReceiptPage

NO_ID = ""  # not an id: marks when a user's receipts were erased
EXPIRED_AT_ONCE = 100  # deleted with one write, so that no writer waits for a backlog

_RECEIPT = msgspec.json.Decoder(Receipt)


class SqlReceipts:
    """`memory.ports.Receipts` in an open `SqlDatabase`."""

    def __init__(
        self,
        database: SqlDatabase,
        *,
        clock: Clock,
        redact: Callable[[str], str],
        limits: ReceiptLimits = DEFAULT_RECEIPT_LIMITS,
    ) -> None:
        """`redact` removes secrets from the query before it is written; it runs in the writer's thread."""
        self._database = database
        self._redact = redact
        self._clock = clock
        self._limits = limits

    def keep(self, receipt: Receipt) -> None:
        self._database.post(partial(self._kept, receipt=receipt, expired=self._clock() - self._limits.seconds_max))

    async def get(self, user_id: str, receipt_id: str) -> Receipt | None:
        if receipt_id == NO_ID:
            return None
        expired = self._clock() - self._limits.seconds_max
        return await self._database.read(partial(_got, user_id=user_id, receipt_id=receipt_id, expired=expired))

    async def page(self, user_id: str, *, memory_id: str = "", limit: int, cursor: str = "") -> ReceiptPage:
        look = partial(receipt_pages.user_page, user_id=user_id, memory_id=memory_id, limit=limit)
        expired = self._clock() - self._limits.seconds_max
        return await self._database.read(partial(look, before=before(cursor), expired=expired))

    async def page_of_all(self, *, limit: int, cursor: str = "") -> ReceiptPage:
        expired = self._clock() - self._limits.seconds_max
        return await self._database.read(
            partial(receipt_pages.page_of_all, limit=limit, before=before(cursor), expired=expired)
        )

    async def amend(self, user_id: str, receipt_id: str, outcome: Mapping[str, Any]) -> None:
        await self._database.write(partial(_amended, user_id=user_id, receipt_id=receipt_id, outcome=outcome))

    async def erase(self, user_id: str, *, project_id: str = "") -> None:
        if project_id:
            erased = partial(_project_erased, user_id=user_id, project_id=project_id)
            await self._database.write(partial(erased, now=self._clock()))
        else:
            await self._database.write(partial(_erased, user_id=user_id, now=self._clock()))

    def _kept(self, connection: sqlite3.Connection, *, receipt: Receipt, expired: float) -> None:
        erased_later = "SELECT 1 FROM receipts WHERE user_id = ? AND id IN (?, ?) AND kept_at > ?"
        marks = (NO_ID, project_mark(receipt.project_id) if receipt.project_id else NO_ID)
        is_erased = connection.execute(erased_later, (receipt.user_id, *marks, receipt.at)).fetchone()
        if is_erased or was_erased_since(connection, receipt.user_id, receipt.at):
            return
        body = msgspec.json.encode(without_secrets(receipt, self._redact))
        position, ordinal = connection.execute(
            "SELECT (SELECT max(position) FROM receipts), (SELECT max(ordinal) FROM receipts WHERE user_id = ?)",
            (receipt.user_id,),
        ).fetchone()
        position, ordinal = (position or 0) + len(body), (ordinal or 0) + 1
        connection.execute(
            "INSERT OR IGNORE INTO receipts (position, user_id, ordinal, id, kept_at, body) VALUES (?, ?, ?, ?, ?, ?)",
            (position, receipt.user_id, ordinal, receipt.id, receipt.at, body),
        )
        connection.execute("DELETE FROM receipts WHERE position <= ?", (position - self._limits.total_bytes_max,))
        connection.execute(
            "DELETE FROM receipts WHERE user_id = ? AND ordinal <= ? AND body <> ''",  # marks of erased projects stay
            (receipt.user_id, ordinal - self._limits.user_receipts_max),
        )
        connection.execute(
            "DELETE FROM receipts WHERE position IN (SELECT position FROM receipts WHERE kept_at <= ? LIMIT ?)",
            (expired, EXPIRED_AT_ONCE),
        )


def _got(connection: sqlite3.Connection, *, user_id: str, receipt_id: str, expired: float) -> Receipt | None:
    row = connection.execute(
        "SELECT body FROM receipts WHERE user_id = ? AND id = ? AND kept_at > ?", (user_id, receipt_id, expired)
    ).fetchone()
    return None if row is None else _RECEIPT.decode(row[0])


def _amended(connection: sqlite3.Connection, *, user_id: str, receipt_id: str, outcome: Mapping[str, Any]) -> None:
    """The additional bytes are not counted: a receipt is amended once, with a bounded list of ids."""
    row = connection.execute("SELECT body FROM receipts WHERE user_id = ? AND id = ?", (user_id, receipt_id)).fetchone()
    if row is not None:
        body = msgspec.json.encode(replace(_RECEIPT.decode(row[0]), outcome=outcome))
        connection.execute("UPDATE receipts SET body = ? WHERE user_id = ? AND id = ?", (body, user_id, receipt_id))


def _erased(connection: sqlite3.Connection, *, user_id: str, now: float) -> None:
    connection.execute("DELETE FROM receipts WHERE user_id = ?", (user_id,))
    connection.execute(
        "INSERT INTO receipts (position, user_id, ordinal, id, kept_at, body) "
        "SELECT coalesce(max(position), 0) + 1, ?, 0, ?, ?, '' FROM receipts",
        (user_id, NO_ID, now),
    )


def _project_erased(connection: sqlite3.Connection, *, user_id: str, project_id: str, now: float) -> None:
    rows = connection.execute("SELECT position, body FROM receipts WHERE user_id = ? AND body <> ''", (user_id,))
    of_project = [position for position, body in rows if _RECEIPT.decode(body).project_id == project_id]
    connection.executemany("DELETE FROM receipts WHERE position = ?", [(one,) for one in of_project])
    mark = project_mark(project_id)
    connection.execute("DELETE FROM receipts WHERE user_id = ? AND id = ?", (user_id, mark))
    connection.execute(
        "INSERT INTO receipts (position, user_id, ordinal, id, kept_at, body) "
        "SELECT (SELECT coalesce(max(position), 0) + 1 FROM receipts), ?1, "
        "min(0, coalesce(min(ordinal), 0)) - 1, ?2, ?3, '' FROM receipts WHERE user_id = ?1",
        (user_id, mark, now),
    )
