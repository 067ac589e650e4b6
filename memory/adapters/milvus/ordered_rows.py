"""Reads all rows of a collection as stored, in pages in the order of ids."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

from memory.adapters import row_codec
from memory.adapters.milvus import filters
from memory.adapters.milvus.collections import LIBRARY_SECONDS, Client
from memory.adapters.milvus.connection import PART, Link
from memory.errors import Unavailable

ROWS_IN_A_PAGE = 1_000  # about 1 MB; Milvus Lite scans all keys for each page, so that small pages cost more
# Milvus has no order of its own; this requests a page in the order of keys.
_IN_ORDER = {"iterator": "True", "reduce_stop_for_best": "True"}


async def page_where(client: Client, collection: str, fields: Sequence[str], expression: str) -> list[row_codec.Row]:
    """The first rows that it admits, in the order of keys."""
    found = await client.query(
        collection,
        filter=expression,
        output_fields=list(fields),
        limit=ROWS_IN_A_PAGE,
        consistency_level="Strong",
        timeout=LIBRARY_SECONDS,
        **_IN_ORDER,
    )
    return [dict(row) for row in found]


async def pages(
    call: Callable[[str, Callable[[Link], Awaitable[list[row_codec.Row]]]], Awaitable[list[row_codec.Row]]],
    collection: Callable[[Link], str],
    fields: Sequence[str],
    *,
    where: str = "",
) -> AsyncIterator[list[row_codec.Row]]:
    """All rows that the expression `where` admits, in pages. Raises `Unavailable` if they are not in order."""
    last, more = "", f" and {where}" if where else ""
    while True:

        async def ask(link: Link, after: str = last) -> list[row_codec.Row]:
            expression = f"id > {filters.literal(after)}{more}"
            return await page_where(link.client, collection(link), fields, expression)

        page = await call("page", ask)
        if not page:
            return
        ids = [str(row["id"]).encode() for row in page]
        if ids != sorted(ids) or ids[0] <= last.encode():  # otherwise some might be skipped
            raise Unavailable(PART, "it does not return memories in the order of their ids")
        yield page
        last = str(page[-1]["id"])


async def count(link: Link, collection: str) -> int:
    """Of all rows. After this, pages have all that was written before: in the order of keys a server does not wait."""
    [row] = await link.client.query(
        collection, filter="", output_fields=["count(*)"], consistency_level="Strong", timeout=LIBRARY_SECONDS
    )
    return int(row["count(*)"])
