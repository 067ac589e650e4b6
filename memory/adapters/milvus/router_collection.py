"""Reads the collection in which vLLM Semantic Router keeps its memories; writes nothing.

Its schema (12 fields, times in Unix seconds, metadata as a JSON text) is not ours, so that rows are returned as stored.
The only change to the server is that the collection is loaded, as the router does itself.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any, TypeAlias

from memory.adapters.milvus import filters
from memory.adapters.milvus.collections import LIBRARY_SECONDS, Collections
from memory.adapters.milvus.connection import PART, Link, MilvusAccess, MilvusAddress, MilvusConnection
from memory.errors import BadInput, Unavailable
from memory.runtime.metrics import Metrics

FIELDS = (
    *("id", "user_id", "project_id", "memory_type", "content", "source", "metadata"),
    *("created_at", "updated_at", "access_count", "importance"),
)
ROWS_IN_A_PAGE = 1_000
CALL_SECONDS = 50.0  # nobody waits, and loading a large collection takes long
# Milvus has no order of its own; this requests a page in the order of keys.
_IN_ORDER = {"iterator": "True", "reduce_stop_for_best": "True"}

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

    connection = MilvusConnection(
        MilvusAddress(uri, collection, dimension=0, access=access), metrics=metrics, opening=opened
    )
    whose, last = f" and user_id == {filters.literal(user_id)}" if user_id else "", ""
    try:
        await connection.call("count", _catch_up, seconds=CALL_SECONDS)
        while True:

            async def ask(link: Link, after: str = last) -> list[RouterRow]:
                found = await link.client.query(
                    link.collection,
                    filter=f"id > {filters.literal(after)}{whose}",
                    output_fields=list(FIELDS),
                    limit=ROWS_IN_A_PAGE,
                    consistency_level="Strong",
                    timeout=LIBRARY_SECONDS,
                    **_IN_ORDER,
                )
                return [dict(row) for row in found]

            page = await connection.call("page", ask, seconds=CALL_SECONDS)
            if not page:
                return
            ids = [str(row["id"]).encode() for row in page]
            if ids != sorted(ids) or ids[0] <= last.encode():  # otherwise some might be skipped
                raise Unavailable(PART, "it does not return memories in the order of their ids")
            yield page
            last = str(page[-1]["id"])
    finally:
        await connection.close()


async def _catch_up(link: Link) -> None:
    """After this, pages have all rows written before: asked for the order of keys, a server does not wait for them."""
    await link.client.query(
        link.collection,
        filter="",
        output_fields=["count(*)"],
        consistency_level="Strong",
        timeout=LIBRARY_SECONDS,
    )
