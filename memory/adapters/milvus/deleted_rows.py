"""Removes the bytes of deleted rows from the files of Milvus Lite, which keeps them as long as the collection exists.

All rows are copied to the next generation of the collection while everybody goes on. Then writers are kept out for a
moment, the rows of users who were written meanwhile are copied again, and the new generation takes the place of the old
one, which is dropped. Others who ask Milvus for the collection by its name find the new one by an alias. A Milvus
server replaces its segments by itself: it is asked to compact them, and waited for. The old ones stay in its storage
until its garbage collection, which nobody can ask for.

What is left of a user is looked for in the rows of a Milvus server: in every field but vectors, of every collection of
the database. Those of other applications are read as well, since nobody knows what they copied. The files of a server
cannot be read from here, and hold deleted rows for some time: segments that a compaction has replaced, until the
server's garbage collection deletes them, and its message log, until its retention ends. Nothing that the server answers
says when that is. The files of the Milvus Lite that `up` runs are read like all others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from memory.adapters import row_codec
from memory.adapters.milvus import filters, ordered_rows, schema
from memory.adapters.milvus.collections import LIBRARY_SECONDS, Collections
from memory.adapters.milvus.connection import PART, Link, MilvusAddress, MilvusConnection, OpensConnection
from memory.adapters.whole_ids import WholeId
from memory.errors import Unavailable
from memory.model.erasures import PlaceReport
from memory.ports import MemoryFilter
from memory.ports.erasures import WriteBarrier
from memory.runtime.metrics import Metrics

MILVUS = "milvus"
SEARCHED = "every row of every collection of the database, without vectors"
FILES_OF_A_SERVER = (
    "files of the server: they hold deleted rows in segments that the compaction replaced, until its garbage "
    "collection (dataCoord.gc), and in its message log, until the retention of that ends; it tells neither"
)
WHOLE_NUMBER_MIN = 1 - (1 << 63)  # Milvus 2.3 cannot read the lowest one


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
        super().__init__(MilvusConnection(address, metrics=metrics, opening=Collections.live))

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


async def _names(link: Link) -> list[str]:
    return sorted(map(str, await link.client.list_collections(timeout=LIBRARY_SECONDS)))


async def _readable(link: Link, *, name: str) -> _Readable | None:
    """None if it is not loaded, so that no row of it can be read."""
    if not await link.collections.is_loaded(name):
        return None
    described = await link.collections.described(name)
    await link.collections.count(name)  # so that all that was written before is in the pages
    [key] = [one for one in described["fields"] if one.get("is_primary")]
    fields = [str(one["name"]) for one in described["fields"] if "VECTOR" not in one["type"].name]
    if described.get("enable_dynamic_field"):
        fields.append("$meta")
    return _Readable(name, str(key["name"]), "CHAR" in key["type"].name, tuple(fields))


async def _page(link: Link, *, collection: _Readable, last: str | int | None) -> list[dict[str, Any]]:
    return await ordered_rows.page_where(link.client, collection.name, collection.fields, collection.after(last))


ALONE_SECONDS = 3_600.0  # for all of it
COMPACTION_SECONDS_MAX = 600.0
COMPACTION_LOOK_SECONDS = 0.5
CLOSED_SECONDS = 20.0  # writers wait no longer, whatever happens to this process


class MilvusDeletedRows(OpensConnection):
    """`memory.ports.erasures.FileRewriting` of a collection. Open with `async with`."""

    def __init__(
        self,
        address: MilvusAddress,
        *,
        barrier: WriteBarrier,
        metrics: Metrics,
        compaction_seconds: float = COMPACTION_SECONDS_MAX,
    ) -> None:
        super().__init__(MilvusConnection(address, metrics=metrics, opening=_live))
        self._barrier = barrier
        self._compaction_seconds = compaction_seconds

    async def refuse_in_vain(self) -> None:
        return None

    async def rewrite(self) -> None:
        """Raises `Conflict` while another process is at it."""
        if not await self._patiently("compact", _is_lite):
            await self._compact()
            return
        async with self._barrier.alone(seconds=ALONE_SECONDS):
            live = await self._patiently("live", lambda link: link.collections.live())
            if not await self._patiently("live", lambda link: link.collections.exists(live)):
                return
            target = await self._patiently("begin", _successor)
            await self._copy(live, target)
            async with self._barrier.closed(seconds=CLOSED_SECONDS):
                await self._copy_written(live, target)
                await self._patiently("switch", lambda link: _switch(link, live, target))

    async def _compact(self) -> None:
        job = await self._patiently("compact", _begin_compaction)
        if job is None:
            return

        async def has_ended(link: Link) -> bool:
            return str(await link.client.get_compaction_state(job, timeout=LIBRARY_SECONDS)) == "Completed"

        try:
            async with asyncio.timeout(self._compaction_seconds):
                while not await self._patiently("compact", has_ended):  # noqa: ASYNC110  # only the server knows
                    await asyncio.sleep(COMPACTION_LOOK_SECONDS)
        except TimeoutError:
            reason = f"it did not end a compaction within {self._compaction_seconds:.0f} s"
            raise Unavailable(PART, reason) from None

    async def _copy_written(self, live: str, target: str) -> None:
        for user_id in await self._barrier.writers():
            where = filters.expression(MemoryFilter(user_id, status=None, with_raw=True))

            async def delete(link: Link, where: str = where) -> None:
                await link.client.delete(target, filter=where, timeout=LIBRARY_SECONDS)

            await self._patiently("delete", delete)
            await self._copy(live, target, where=where)

    async def _copy(self, live: str, target: str, *, where: str = "") -> None:
        async for rows in ordered_rows.pages(self._patiently, lambda _: live, row_codec.RECORD_FIELDS, where=where):

            async def write(link: Link, rows: Sequence[row_codec.Row] = rows) -> None:
                await link.client.upsert(target, list(rows), timeout=LIBRARY_SECONDS)

            await self._patiently("apply", write)


async def _live(collections: Collections) -> str:
    live = await collections.live()
    if await collections.exists(live):
        await collections.load(live)
    return live


async def _is_lite(link: Link) -> bool:
    return link.can.is_lite


async def _begin_compaction(link: Link) -> int | None:
    """The number of the job; None without a collection. Only rows in sealed segments are compacted, hence the flush."""
    if not await link.collections.exists(link.collection):
        return None
    await link.client.flush(link.collection, timeout=LIBRARY_SECONDS)
    return int(await link.client.compact(link.collection, timeout=LIBRARY_SECONDS))


async def _successor(link: Link) -> str:
    """An empty generation of the same vectors. Raises `Unavailable` while memories are embedded again."""
    collections = link.collections
    origin = schema.origin_of(await collections.described(await collections.live()))
    for name in await collections.others():  # left by a process that died
        if not await collections.has_vectors_of(name, origin):
            raise Unavailable(PART, "memories are being embedded again: finish `memproxy reembed` first")
        await collections.drop(name)
    return await collections.successor(await collections.live(), origin)


async def _switch(link: Link, live: str, target: str) -> None:
    """Nobody writes now. The old generation goes at once, so that nobody writes into it later either."""
    await link.client.flush(target, timeout=LIBRARY_SECONDS)
    if await link.collections.count(live) != await link.collections.count(target):
        raise Unavailable(PART, "the copy of the memories is not complete")
    await link.collections.make_live(target)
    await link.collections.drop(live)
    await link.collections.answer_by_name(target)
