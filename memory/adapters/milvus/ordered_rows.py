"""Reads all rows of a collection as stored, in pages in the order of ids."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

from memory.adapters import row_codec
from memory.adapters.milvus import filters
from memory.adapters.milvus.collections import LIBRARY_SECONDS, Client
from memory.adapters.milvus.connection import PART
from memory.errors import Unavailable

ROWS_IN_A_PAGE = 1_000  # about 1 MB; Milvus Lite scans all keys for each page, so that small pages cost more
# Milvus has no order of its own; this requests a page in the order of keys.
_IN_ORDER = {"iterator": "True", "reduce_stop_for_best": "True"}


async def page_after(
    client: Client, collection: str, fields: Sequence[str], *, after: str, where: str = ""
) -> list[row_codec.Row]:
    """The next rows with an id greater than `after`, of those that the expression `where` admits."""
    expression = f"id > {filters.literal(after)}" + (f" and {where}" if where else "")
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


async def pages(ask: Callable[[str], Awaitable[list[row_codec.Row]]]) -> AsyncIterator[list[row_codec.Row]]:
    """All pages, each asked for by the last id of the one before. Raises `Unavailable` if they are not in order."""
    last = ""
    while page := await ask(last):
        ids = [str(row["id"]).encode() for row in page]
        if ids != sorted(ids) or ids[0] <= last.encode():  # otherwise some might be skipped
            raise Unavailable(PART, "it does not return memories in the order of their ids")
        yield page
        last = str(page[-1]["id"])
