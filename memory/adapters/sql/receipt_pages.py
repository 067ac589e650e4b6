"""Pages of receipts: of one user by `ordinal`, of all users by `position`. Both grow with each receipt: the cursors.

Rows are decoded one after another until a page is full: what a note held stands in the body only.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import msgspec

from memory.adapters.receipt_rules import held
from memory.adapters.sql.statements import Connection, Rows, statements
from memory.model import Receipt
from memory.ports import ReceiptPage

SQL = statements("receipt_pages")

_RECEIPT = msgspec.json.Decoder(Receipt)


def user_page(
    connection: Connection, *, user_id: str, memory_id: str, limit: int, before: int, expired: float
) -> ReceiptPage:
    rows = SQL.receipts_of_user(
        connection,
        user_id=user_id,
        before=before,
        expired=expired,
        memory_id=msgspec.json.encode(memory_id) if memory_id else b"{",
    )
    return _page(rows, limit, lambda receipt: not memory_id or held(receipt, memory_id))


def page_of_all(connection: Connection, *, limit: int, before: int, expired: float) -> ReceiptPage:
    rows = SQL.receipts_of_all(connection, before=before, expired=expired)
    return _page(rows, limit, lambda _: True)


def _page(rows: Rows, limit: int, is_wanted: Callable[[Receipt], bool]) -> ReceiptPage:
    decoded = ((number, _RECEIPT.decode(body)) for number, body in rows)
    found = list(itertools.islice(((number, one) for number, one in decoded if is_wanted(one)), limit + 1))
    shown = found[:limit]
    return ReceiptPage(tuple(one for _, one in shown), str(shown[-1][0]) if len(found) > limit else "")


__all__ = ["page_of_all", "user_page"]
