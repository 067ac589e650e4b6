"""Reads all rows of a collection as stored, in pages in the order of ids: ours, or the one in which vLLM Semantic
Router keeps its memories. Writes nothing.

The router's schema (12 fields, times in Unix seconds, metadata as a JSON text) is not ours; rows come as stored. The
only change to the server is that the collection is loaded, as the router does itself.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import Any, TypeAlias

from memory.adapters import row_codec
from memory.adapters.milvus import filters
from memory.adapters.milvus.collections import LIBRARY_SECONDS, Client, Collections
from memory.adapters.milvus.connection import PART, Link, MilvusAccess, MilvusAddress, MilvusConnection
from memory.errors import BadInput, Unavailable
from memory.runtime.metrics import Metrics

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


FIELDS = (
    *("id", "user_id", "project_id", "memory_type", "content", "source", "metadata"),
    *("created_at", "updated_at", "access_count", "importance"),
)

RouterRow: TypeAlias = dict[str, Any]
"""By the names in `FIELDS`."""


async def router_rows(
    uri: str, collection: str, *, user_id: str = "", metrics: Metrics, access: MilvusAccess
) -> AsyncIterator[Sequence[RouterRow]]:
    """All rows of all users, or of one, page by page, in the order of their ids.

    Raises `Unavailable`, and `BadInput` if there is no such collection or it has other fields.
    """

    async def opened(collections: Collections) -> str:
        if not await collections.exists(collection):
            raise BadInput(f"{uri} has no collection {collection!r}: name the router's with --collection")
        described = await collections.described(collection)
        missing = [name for name in FIELDS if name not in {str(field["name"]) for field in described["fields"]}]
        if missing:
            raise BadInput(f"collection {collection!r} is not one of the router's: it has no field {missing[0]!r}")
        await collections.load(collection)
        return collection

    address = MilvusAddress(uri, collection, dimension=0, access=access)
    async with aclosing(MilvusConnection(address, metrics=metrics, opening=opened)) as connection:
        await connection.call_patiently("count", lambda link: link.collections.count(link.collection))
        whose = f"user_id == {filters.literal(user_id)}" if user_id else ""
        async for page in pages(connection.call_patiently, lambda link: link.collection, FIELDS, where=whose):
            yield page
