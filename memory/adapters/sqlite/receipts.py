"""Receipts on SQLite, in the turn log's database: any process can show what any filter decided.

Bounded three ways: in age, per user in number, and in bytes of all together (`position` grows by each receipt's bytes).
Erasing a user's leaves one row without a name that says when: what was on its way then is not kept after it.
Written by the database's own thread after the request went on; nobody waits for that, and nobody hears if it fails.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import msgspec

from memory.adapters.sqlite.database import SqliteDatabase
from memory.model import Receipt
from memory.ports import Clock
from memory.settings import ReceiptSettings

DAY = 86_400.0
NO_ID = ""  # no receipt's: it marks when a user's were erased
EXPIRED_AT_ONCE = 100  # deleted with one write, so that no writer waits for a backlog

_DEFAULTS = ReceiptSettings()
_RECEIPT = msgspec.json.Decoder(Receipt)


@dataclass(frozen=True, slots=True)
class ReceiptLimits:
    """How long a receipt lasts, how many one user has, and the bytes of all together."""

    seconds_max: float = _DEFAULTS.keep_days * DAY
    user_receipts_max: int = _DEFAULTS.user_receipts_max
    total_bytes_max: int = _DEFAULTS.total_mib << 20


DEFAULT_LIMITS = ReceiptLimits()


class SqliteReceipts:
    """`memory.ports.Receipts` in an open `SqliteDatabase`."""

    def __init__(
        self,
        database: SqliteDatabase,
        *,
        clock: Clock,
        redact: Callable[[str], str],
        limits: ReceiptLimits = DEFAULT_LIMITS,
    ) -> None:
        """`redact` takes secrets out of what the user asked before it is written; it runs in the writer's thread."""
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

    async def amend(self, user_id: str, receipt_id: str, outcome: Mapping[str, Any]) -> None:
        await self._database.write(partial(_amended, user_id=user_id, receipt_id=receipt_id, outcome=outcome))

    async def erase(self, user_id: str) -> None:
        await self._database.write(partial(_erased, user_id=user_id, now=self._clock()))

    def _kept(self, connection: sqlite3.Connection, *, receipt: Receipt, expired: float) -> None:
        erased_later = "SELECT 1 FROM receipts WHERE user_id = ? AND id = ? AND kept_at > ?"
        if connection.execute(erased_later, (receipt.user_id, NO_ID, receipt.at)).fetchone():
            return
        body = msgspec.json.encode(_without_secrets(receipt, self._redact))
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
            "DELETE FROM receipts WHERE user_id = ? AND ordinal <= ?",
            (receipt.user_id, ordinal - self._limits.user_receipts_max),
        )
        connection.execute(
            "DELETE FROM receipts WHERE position IN (SELECT position FROM receipts WHERE kept_at <= ? LIMIT ?)",
            (expired, EXPIRED_AT_ONCE),
        )


def _without_secrets(receipt: Receipt, redact: Callable[[str], str]) -> Receipt:
    signals = {name: redact(value) if isinstance(value, str) else value for name, value in receipt.signals.items()}
    return replace(receipt, query=redact(receipt.query), signals=signals)


def _got(connection: sqlite3.Connection, *, user_id: str, receipt_id: str, expired: float) -> Receipt | None:
    row = connection.execute(
        "SELECT body FROM receipts WHERE user_id = ? AND id = ? AND kept_at > ?", (user_id, receipt_id, expired)
    ).fetchone()
    return None if row is None else _RECEIPT.decode(row[0])


def _amended(connection: sqlite3.Connection, *, user_id: str, receipt_id: str, outcome: Mapping[str, Any]) -> None:
    """The few bytes more are not counted: a receipt is amended once, with a list of ids that its maker bounds."""
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
