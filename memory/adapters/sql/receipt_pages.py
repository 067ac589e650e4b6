"""Pages of receipts: of one user by `ordinal`, of all users by `position`. Both grow with each receipt: the cursors.

Rows are decoded one after another until a page is full: what a note held stands in the body only.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator

import msgspec

from memory.adapters.sql.statements import Connection, statements
from memory.errors import BadInput
from memory.model import Receipt
from memory.ports import ReceiptPage

SQL = statements("receipt_pages")

READ_AT_ONCE = 100
LAST = (1 << 63) - 1  # above every number that orders receipts
_RECEIPT = msgspec.json.Decoder(Receipt)


def user_page(
    connection: Connection, user_id: str, *, memory_id: str, limit: int, cursor: str, expired: float
) -> ReceiptPage:
    def read(before: int) -> list[tuple[int, bytes]]:
        return SQL.receipts_of_user(
            connection, user_id=user_id, before=before, expired=expired, limit=READ_AT_ONCE
        ).fetchall()

    quoted = msgspec.json.encode(memory_id)  # tells cheaply that a body does not name it
    bodies = (one for one in _read_on(read, _before(cursor)) if not memory_id or quoted in one[1])
    return _page(bodies, limit, lambda receipt: not memory_id or _held(receipt, memory_id))


def page_of_all(connection: Connection, *, limit: int, cursor: str, expired: float) -> ReceiptPage:
    before = _before(cursor)
    rows = SQL.receipts_of_all(connection, before=before, expired=expired, limit=limit + 1).fetchall()
    return _page(rows, limit, lambda _: True)


def _before(cursor: str) -> int:
    """The number that a page stays below. Raises `BadInput`."""
    if not cursor:
        return LAST
    if not (cursor.isascii() and cursor.isdecimal() and len(cursor) < len(str(LAST))):
        raise BadInput("cursor must be the next_cursor of the page before")
    return int(cursor)


def _held(receipt: Receipt, memory_id: str) -> bool:
    """Whether a note of the request held that memory."""
    return any(memory_id in note.memory_ids for note in receipt.notes)


def _read_on(read: Callable[[int], list[tuple[int, bytes]]], before: int) -> Iterator[tuple[int, bytes]]:
    """Until there are no more, or nobody asks for more."""
    while rows := read(before):
        yield from rows
        before = rows[-1][0]


def _page(rows: Iterable[tuple[int, bytes]], limit: int, is_wanted: Callable[[Receipt], bool]) -> ReceiptPage:
    decoded = ((number, _RECEIPT.decode(body)) for number, body in rows)
    found = list(itertools.islice(((number, one) for number, one in decoded if is_wanted(one)), limit + 1))
    shown = found[:limit]
    return ReceiptPage(tuple(one for _, one in shown), str(shown[-1][0]) if len(found) > limit else "")
