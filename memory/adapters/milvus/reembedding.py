"""Copies all memories of a collection into its next generation with new vectors, then switches to it.

Rows are copied as stored, without conversion to `Memory`, so that rows our code cannot decode are kept. Pages are read
in the order of ids, over all users and statuses. The collection in use is never dropped, and the switch is one step.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeAlias

import numpy as np

from memory.adapters import row_codec
from memory.adapters.milvus import filters, ordered_rows, schema
from memory.adapters.milvus.collections import LIBRARY_SECONDS, LIVE, Collections
from memory.adapters.milvus.connection import PART, Link, MilvusAddress, MilvusConnection, OpensConnection
from memory.errors import Unavailable
from memory.model import Vector, VectorOrigin
from memory.ports import ReembeddingStatus, StoredText
from memory.ports.paging import batched
from memory.runtime.metrics import Metrics

ROWS_IN_A_BATCH = 100  # returned at a time: the most that is lost by a kill
IDS_IN_ONE_CALL_MAX = 200

_Which: TypeAlias = Callable[[Link], str]


class MilvusReembedding(OpensConnection):
    """`memory.ports.Reembedding` on a Milvus collection. Open with `async with`."""

    def __init__(self, address: MilvusAddress, *, wanted: VectorOrigin, metrics: Metrics) -> None:
        self._wanted = wanted
        super().__init__(MilvusConnection(address, metrics=metrics, opening=self._opened))
        self._target = ""  # the generation that `begin` created or found

    async def status(self) -> ReembeddingStatus:
        status = await self.status_without_copies()
        if status.origin is None or not (status.outdated or not status.origin.agrees_with(self._wanted)):
            return status

        async def copied(link: Link) -> int:
            """A server can count what it has loaded only."""
            count = 0
            for name in await link.collections.others():
                if await link.collections.is_successor(name, self._wanted):
                    await link.collections.load(name)
                    count = await link.collections.count(name)
            return count

        return replace(status, embedded=min(await self._patiently("standing", copied), status.memories))

    async def status_without_copies(self) -> ReembeddingStatus:
        """The same, of the collection in use alone: no copy of an earlier attempt is loaded, or counted."""

        async def look(link: Link) -> ReembeddingStatus:
            live = await link.collections.live()
            if not await link.collections.exists(live):
                return ReembeddingStatus(None)
            origin = schema.origin_of(await link.collections.described(live))
            memories = await link.collections.count(live)
            return ReembeddingStatus(origin, memories, outdated=await link.collections.outdated(live, rows=memories))

        return await self._patiently("standing", look)

    async def begin(self) -> None:
        async def make(link: Link) -> str:
            for name in await link.collections.others():
                if not await link.collections.is_successor(name, self._wanted):
                    await link.collections.drop(name)
            rows = await link.collections.count(link.collection)
            return await link.collections.successor(link.collection, self._wanted, rows=rows)

        self._target = await self._patiently("begin", make)

    async def remaining(self) -> AsyncIterator[Sequence[StoredText]]:
        async for page in ordered_rows.pages(self._patiently, _live, row_codec.MEMORY_FIELDS):
            ids = [str(row["id"]) for row in page]
            known = await self._rows(self._begun, ids, row_codec.MEMORY_FIELDS) if self._target else {}
            missing = [row for row in page if known.get(row["id"]) != row]
            for batch in batched(missing, ROWS_IN_A_BATCH):
                yield [StoredText(row["id"], row_codec.embedded_text_of(row), row) for row in batch]

    async def put(self, texts: Sequence[StoredText], vectors: Vector) -> None:
        assert self._target, "begin first"
        assert vectors.shape == (len(texts), self._wanted.dimension), f"vectors {vectors.shape}"
        written = [
            {**text.row, row_codec.VECTOR_FIELD: np.asarray(vector, dtype=np.float32)}
            for text, vector in zip(texts, vectors, strict=True)
        ]

        async def write(link: Link) -> None:
            by_partition: dict[str | None, list[row_codec.Row]] = {}
            for row in written:
                by_partition.setdefault(link.partition(row["user_id"]), []).append(row)
            for partition, rows in by_partition.items():
                await link.client.upsert(self._target, rows, partition_name=partition, timeout=LIBRARY_SECONDS)

        await self._patiently("apply", write)

    async def copy(self, texts: Sequence[StoredText]) -> None:
        found = await self._rows(_live, [text.id for text in texts], row_codec.RECORD_FIELDS)
        there = [text for text in texts if text.id in found]  # the others were deleted meanwhile
        if there:
            await self.put(there, np.stack([found[text.id][row_codec.VECTOR_FIELD] for text in there]))

    async def remove_deleted(self) -> bool:
        target = self._target
        assert target, "begin first"

        async def counts(link: Link) -> tuple[int, int]:
            await link.client.flush(target, timeout=LIBRARY_SECONDS)
            return await link.collections.count(link.collection), await link.collections.count(target)

        stored, embedded = await self._patiently("count", counts)
        if stored == embedded:
            return True
        async for page in ordered_rows.pages(self._patiently, self._begun, ("id",)):
            ids = [str(row["id"]) for row in page]
            known = await self._rows(_live, ids, ("id",))
            gone = [memory_id for memory_id in ids if memory_id not in known]
            for batch in batched(gone, IDS_IN_ONE_CALL_MAX):
                await self._patiently("delete", partial(_delete, collection=target, ids=batch))
        stored, embedded = await self._patiently("count", counts)
        return stored == embedded

    async def switch(self) -> None:
        assert self._target, "begin first"
        await self._patiently("switch", lambda link: link.collections.make_live(self._target))

    async def clear(self) -> None:
        async def drop(link: Link) -> None:
            collections = link.collections
            live = await collections.live()
            found = await link.collections.count(live) if await collections.exists(live) else 0
            for name in await collections.others():
                await collections.load(name)
                if await link.collections.count(name) > found:  # an alias was lost, or the other was created again
                    raise Unavailable(
                        PART,
                        f"collection {name!r} holds more memories than {live!r}, which parts find: it is kept. "
                        f"If it is the one that counts, its alias {LIVE!r} was lost: point it there; else drop it",
                    )
                await collections.drop(name)

        await self._patiently("clear", drop)

    async def _opened(self, collections: Collections) -> str:
        """The collection in use, loaded if it exists, and the one being filled."""
        live = await collections.live()
        for name in (live, self._target):
            if name and await collections.exists(name):
                await collections.load(name)
        if await collections.exists(live):
            schema.check_fields(await collections.described(live), collection=live)
        return live

    def _begun(self, _: Link) -> str:
        return self._target

    async def _rows(self, collection: _Which, ids: Sequence[str], fields: Sequence[str]) -> dict[str, row_codec.Row]:
        found: dict[str, row_codec.Row] = {}
        for batch in batched(ids, IDS_IN_ONE_CALL_MAX):

            async def ask(link: Link, wanted: Sequence[str] = batch) -> list[row_codec.Row]:
                answer = await link.client.query(
                    collection(link),
                    filter=filters.one_of("id", wanted),
                    output_fields=list(fields),
                    consistency_level="Strong",
                    timeout=LIBRARY_SECONDS,
                )
                return [dict(row) for row in answer]

            found |= {str(row["id"]): row for row in await self._patiently("get", ask)}
        return found


async def _delete(link: Link, *, collection: str, ids: Sequence[str]) -> None:
    await link.client.delete(collection, filter=filters.one_of("id", ids), timeout=LIBRARY_SECONDS)


def _live(link: Link) -> str:
    return link.collection
