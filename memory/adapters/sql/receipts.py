"""Receipts in SQL, in the turn log's database: every process can read those of all filters.

Limited in age, in number per user, and in total bytes (`position` grows by the bytes of each receipt). Erasing a user's
receipts, or those of a project, leaves one marker row with the time, which has no body, so that receipts on their way
are not stored after it. Written in the background after the request; failures are not reported.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import msgspec

from memory.adapters.retention import DEFAULT_RECEIPT_LIMITS, ReceiptLimits
from memory.adapters.sql import receipt_pages
from memory.adapters.sql.database import IN_PASSING_SECONDS, SqlDatabase
from memory.adapters.sql.erased_users import was_erased_since
from memory.adapters.sql.jobs import OnDatabase, reads, writes
from memory.adapters.sql.statements import Connection, statements
from memory.model import Receipt
from memory.ports import Clock, ReceiptPage

SQL = statements("receipts")

NO_ID = ""  # not an id: marks when a user's receipts were erased
EXPIRED_AT_ONCE = 100  # deleted with one write, so that no writer waits for a backlog

_RECEIPT = msgspec.json.Decoder(Receipt)


class SqlReceipts(OnDatabase):
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
        super().__init__(database)
        self._redact = redact
        self._clock = clock
        self._limits = limits

    def keep(self, receipt: Receipt) -> None:
        self._database.post(partial(self._kept, receipt=receipt, expired=self._expired), within=IN_PASSING_SECONDS)

    @reads
    def get(self, connection: Connection, user_id: str, receipt_id: str) -> Receipt | None:
        if receipt_id == NO_ID:
            return None
        row = SQL.unexpired_body(connection, user_id=user_id, receipt_id=receipt_id, expired=self._expired).fetchone()
        return None if row is None else _RECEIPT.decode(row[0])

    @reads
    def page(
        self, connection: Connection, user_id: str, *, memory_id: str = "", limit: int, cursor: str = ""
    ) -> ReceiptPage:
        return receipt_pages.user_page(
            connection, user_id, memory_id=memory_id, limit=limit, cursor=cursor, expired=self._expired
        )

    @reads
    def page_of_all(self, connection: Connection, *, limit: int, cursor: str = "") -> ReceiptPage:
        return receipt_pages.page_of_all(connection, limit=limit, cursor=cursor, expired=self._expired)

    @writes
    def amend(self, connection: Connection, user_id: str, receipt_id: str, outcome: Mapping[str, Any]) -> None:
        """The additional bytes are not counted: a receipt is amended once, with a bounded list of ids."""
        row = SQL.body_of(connection, user_id=user_id, receipt_id=receipt_id).fetchone()
        if row is not None:
            body = msgspec.json.encode(replace(_RECEIPT.decode(row[0]), outcome=outcome))
            SQL.set_body(connection, body=body, user_id=user_id, receipt_id=receipt_id)

    async def erase(self, user_id: str, *, project_id: str = "") -> None:
        await self._erased(user_id, project_id, now=self._clock())

    @property
    def _expired(self) -> float:
        """Receipts before that time are none any more."""
        return self._clock() - self._limits.seconds_max

    @writes
    def _erased(self, connection: Connection, user_id: str, project_id: str, *, now: float) -> None:
        if not project_id:
            SQL.delete_receipts(connection, user_id=user_id)
            SQL.insert_mark(connection, user_id=user_id, no_id=NO_ID, now=now)
            return
        rows = SQL.bodies_of_user(connection, user_id=user_id)
        of_project = [position for position, body in rows if _RECEIPT.decode(body).project_id == project_id]
        SQL.delete_at.many(connection, [{"one": one} for one in of_project])
        mark = _project_mark(project_id)
        SQL.delete_receipt(connection, user_id=user_id, mark=mark)
        SQL.insert_project_mark(connection, user_id=user_id, mark=mark, now=now)

    def _kept(self, connection: Connection, *, receipt: Receipt, expired: float) -> None:
        project = _project_mark(receipt.project_id) if receipt.project_id else NO_ID
        is_erased = SQL.erased_later(
            connection, user_id=receipt.user_id, mark=NO_ID, project_mark=project, at=receipt.at
        ).fetchone()
        if is_erased or was_erased_since(connection, receipt.user_id, receipt.at):
            return
        body = msgspec.json.encode(_without_secrets(receipt, self._redact))
        position, ordinal = SQL.last_positions(connection, user_id=receipt.user_id).fetchone()
        position, ordinal = (position or 0) + len(body), (ordinal or 0) + 1
        SQL.insert_receipt(
            connection,
            position=position,
            user_id=receipt.user_id,
            ordinal=ordinal,
            id=receipt.id,
            at=receipt.at,
            body=body,
        )
        SQL.delete_up_to(connection, position=position - self._limits.total_bytes_max)
        SQL.delete_of_user_up_to(connection, user_id=receipt.user_id, ordinal=ordinal - self._limits.user_receipts_max)
        SQL.delete_expired(connection, expired=expired, expired_at_once=EXPIRED_AT_ONCE)


def _without_secrets(receipt: Receipt, redact: Callable[[str], str]) -> Receipt:
    signals = {name: redact(value) if isinstance(value, str) else value for name, value in receipt.signals.items()}
    return replace(receipt, query=redact(receipt.query), signals=signals)


def _project_mark(project_id: str) -> str:
    """Names a project whose receipts were erased: by a digest, since the name has gone with them. It is no id."""
    return f" project/{hashlib.sha256(project_id.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"
