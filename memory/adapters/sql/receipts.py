"""Receipts in SQL, in the turn log's database: every process can read those of all filters.

Limited in age, in number per user, and in total bytes (`position` grows by the bytes of each receipt). Erasing a user's
receipts, or those of a project, leaves one marker row with the time, which has no body, so that receipts on their way
are not stored after it. Written in the background after the request; failures are not reported.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import msgspec

from memory.adapters.receipt_rules import before, project_mark, without_secrets
from memory.adapters.retention import DEFAULT_RECEIPT_LIMITS, ReceiptLimits
from memory.adapters.sql import receipt_pages
from memory.adapters.sql.database import IN_PASSING_SECONDS, SqlDatabase
from memory.adapters.sql.erased_users import was_erased_since
from memory.adapters.sql.statements import Connection, statements
from memory.model import Receipt
from memory.ports import Clock, ReceiptPage

SQL = statements("receipts")

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
        expired = self._clock() - self._limits.seconds_max
        self._database.post(partial(self._kept, receipt=receipt, expired=expired), within=IN_PASSING_SECONDS)

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

    def _kept(self, connection: Connection, *, receipt: Receipt, expired: float) -> None:
        project = project_mark(receipt.project_id) if receipt.project_id else NO_ID
        is_erased = SQL.erased_later(
            connection, user_id=receipt.user_id, mark=NO_ID, project_mark=project, at=receipt.at
        ).fetchone()
        if is_erased or was_erased_since(connection, receipt.user_id, receipt.at):
            return
        body = msgspec.json.encode(without_secrets(receipt, self._redact))
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


def _got(connection: Connection, *, user_id: str, receipt_id: str, expired: float) -> Receipt | None:
    row = SQL.unexpired_body(connection, user_id=user_id, receipt_id=receipt_id, expired=expired).fetchone()
    return None if row is None else _RECEIPT.decode(row[0])


def _amended(connection: Connection, *, user_id: str, receipt_id: str, outcome: Mapping[str, Any]) -> None:
    """The additional bytes are not counted: a receipt is amended once, with a bounded list of ids."""
    row = SQL.body_of(connection, user_id=user_id, receipt_id=receipt_id).fetchone()
    if row is not None:
        body = msgspec.json.encode(replace(_RECEIPT.decode(row[0]), outcome=outcome))
        SQL.set_body(connection, body=body, user_id=user_id, receipt_id=receipt_id)


def _erased(connection: Connection, *, user_id: str, now: float) -> None:
    SQL.delete_receipts(connection, user_id=user_id)
    SQL.insert_mark(connection, user_id=user_id, no_id=NO_ID, now=now)


def _project_erased(connection: Connection, *, user_id: str, project_id: str, now: float) -> None:
    rows = SQL.bodies_of_user(connection, user_id=user_id)
    of_project = [position for position, body in rows if _RECEIPT.decode(body).project_id == project_id]
    SQL.delete_at.many(connection, [{"one": one} for one in of_project])
    mark = project_mark(project_id)
    SQL.delete_receipt(connection, user_id=user_id, mark=mark)
    SQL.insert_project_mark(connection, user_id=user_id, mark=mark, now=now)
