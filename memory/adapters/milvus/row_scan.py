"""Looks for an id in the rows of a Milvus server: in every field but vectors, of every collection of the database.

Collections of other applications are read as well, since nobody knows what they copied. The files of a server cannot be
read from here, and hold deleted rows for some time: segments that a compaction has replaced, until the server's garbage
collection deletes them, and its message log, until its retention ends. Nothing that the server answers says when that
is. The files of the Milvus Lite that `up` runs are read like all others.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from memory.adapters.milvus import filters, ordered_rows
from memory.adapters.milvus.collections import LIBRARY_SECONDS, Collections
from memory.adapters.milvus.connection import Link, MilvusAddress, MilvusConnection, OpensConnection
from memory.adapters.whole_ids import WholeId
from memory.errors import Unavailable
from memory.model.erasures import PlaceReport
from memory.runtime.metrics import Metrics

MILVUS = "milvus"
SEARCHED = "every row of every collection of the database, without vectors"
FILES_OF_A_SERVER = (
    "files of the server: they hold deleted rows in segments that the compaction replaced, until its garbage "
    "collection (dataCoord.gc), and in its message log, until the retention of that ends; it tells neither"
)
WHOLE_NUMBER_MIN = 1 - (1 << 63)  # Milvus 2.3 cannot read the lowest one

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class _Readable:
    """A loaded collection. `key`: its primary field; `fields`: all that may hold text."""

    name: str
    key: str
    is_text_key: bool
    fields: tuple[str, ...]

    def after(self, last: str | int | None) -> str:
        """The expression for the rows after that key, or for all."""
        if last is None:
            return f"{self.key} >= {filters.literal('') if self.is_text_key else WHOLE_NUMBER_MIN}"
        return f"{self.key} > {filters.literal(last) if isinstance(last, str) else last}"


class MilvusRowScan(OpensConnection):
    """Open with `async with`; nothing is connected before the first look."""

    def __init__(self, address: MilvusAddress, *, metrics: Metrics) -> None:
        super().__init__(MilvusConnection(address, metrics=metrics, opening=_live))

    async def scan(self, wanted: WholeId) -> PlaceReport:
        """Raises `Unavailable` if the server does not answer; a collection that cannot be read is named."""
        rows, found, unread = 0, list[str](), [FILES_OF_A_SERVER]
        for name in await self._patiently("page", _names):
            try:
                collection = await self._patiently("page", partial(_readable, name=name))
                if collection is None:
                    unread.append(f"collection {name}: not loaded")
                    continue
                holds, last = False, None
                while page := await self._patiently("page", partial(_page, collection=collection, last=last)):
                    rows, last = rows + len(page), page[-1][collection.key]
                    holds = holds or any(wanted.is_in([*row.values()]) for row in page)
                    await asyncio.sleep(0)
                found += [f"rows of {name}"] if holds else []
            except Unavailable as error:
                unread.append(f"collection {name}: {error}")
        return PlaceReport(MILVUS, SEARCHED, rows, tuple(found), tuple(unread))


async def _live(collections: Collections) -> str:
    return await collections.live()


async def _names(link: Link) -> list[str]:
    return sorted(map(str, await link.client.list_collections(timeout=LIBRARY_SECONDS)))


async def _readable(link: Link, *, name: str) -> _Readable | None:
    """None if it is not loaded, so that no row of it can be read."""
    state = await link.client.get_load_state(name, timeout=LIBRARY_SECONDS)
    if str(state.get("state")) != "Loaded":
        return None
    described = await link.collections.described(name)
    await ordered_rows.count(link, name)  # so that all that was written before is in the pages
    [key] = [one for one in described["fields"] if one.get("is_primary")]
    fields = [str(one["name"]) for one in described["fields"] if "VECTOR" not in one["type"].name]
    if described.get("enable_dynamic_field"):
        fields.append("$meta")
    return _Readable(name, str(key["name"]), "CHAR" in key["type"].name, tuple(fields))


async def _page(link: Link, *, collection: _Readable, last: str | int | None) -> list[dict[str, Any]]:
    return await ordered_rows.page_where(link.client, collection.name, collection.fields, collection.after(last))
