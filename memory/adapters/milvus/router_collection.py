"""Reads the collection in which vLLM Semantic Router keeps its memories; writes nothing.

Its schema (12 fields, times in Unix seconds, metadata as a JSON text) is not ours, so that rows are returned as stored.
The only change to the server is that the collection is loaded, as the router does itself.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, TypeAlias, TypeVar

from memory.adapters.milvus import filters, ordered_rows
from memory.adapters.milvus.collections import Collections
from memory.adapters.milvus.connection import PATIENT_SECONDS, Link, MilvusAccess, MilvusAddress, MilvusConnection
from memory.errors import BadInput
from memory.runtime.metrics import Metrics

FIELDS = (
    *("id", "user_id", "project_id", "memory_type", "content", "source", "metadata"),
    *("created_at", "updated_at", "access_count", "importance"),
)

Result = TypeVar("Result")
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

    async def call(name: str, work: Callable[[Link], Awaitable[Result]]) -> Result:
        return await connection.call(name, work, seconds=PATIENT_SECONDS)

    try:
        await call("count", lambda link: ordered_rows.count(link, link.collection))
        whose = f"user_id == {filters.literal(user_id)}" if user_id else ""
        async for page in ordered_rows.pages(call, lambda link: link.collection, FIELDS, where=whose):
            yield page
    finally:
        await connection.close()
