"""The memory store on Milvus: Milvus Lite as a server process, or a real server, through the same client.

Order, pages and rows are shared with the in-memory store. `apply` and `delete` return only when every later read of any
process includes them (see `_upsert`), so that reads need not wait for the server's clock: they are `BOUNDED`, except
where a row that is missed would be left for good. Expressions are built in `filters` only, and the owner of every
returned row is checked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np

from memory.adapters import pages, row_codec
from memory.adapters.milvus import filters, schema
from memory.adapters.milvus.collections import LIBRARY_SECONDS
from memory.adapters.milvus.connection import PART, Link, MilvusAddress, MilvusConnection, OpensConnection
from memory.errors import BadSetting, Unavailable
from memory.model import Candidate, Change, Memory, Record, Vector, is_valid_id
from memory.model.claim_filters import ANY_CLAIM, ClaimFilter
from memory.ports import MemoryFilter, Page
from memory.ports.paging import batched
from memory.runtime.metrics import Metrics

IDS_IN_ONE_CALL_MAX = 200  # of a deletion
ROWS_BY_ID_MAX = 500  # of the largest size they have 84 MB; a server answers with 100 MB at most
ROWS_IN_ONE_CALL_MAX = 1_000  # about 3 MB of memories with their vectors
ROWS_IN_A_PIECE = 50  # converted at a time: each takes 50 µs, and a chat may be waiting for the loop
ROWS_IN_ONE_ANSWER_MAX = 1_000  # likewise; decoding an answer blocks the loop for 6 ms
LIBRARY_LATER_SECONDS = 1.0  # longer than our own limit, so that ours is reported
SEARCH_LIMIT_MAX = 16_384  # Milvus' limit
BOUNDED = "Bounded"  # what the server has loaded, at most 5 s late; answers at once
STRONG = "Strong"  # all that was written before the call: waits up to 400 ms for the server's clock
SESSION = "Session"  # all that this process wrote
FLUSH_AFTER_ROWS = 200  # Milvus Lite: each unflushed row costs a search 50 µs, a flush costs the next one 20 ms

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class MilvusTimeouts:
    """Seconds, including connecting. In the filter process `search` should be below the deadline of requests."""

    search: float = 1.0
    read: float = 5.0
    write: float = 10.0


@dataclass(frozen=True, slots=True)
class _Rows:
    """All rows that the expression admits, or any `limit` of them, unordered. `user_id`: the owner; "": anybody."""

    expression: str
    fields: Sequence[str]
    user_id: str = ""
    limit: int | None = None
    consistency: str = BOUNDED


class MilvusStore(OpensConnection):
    """`memory.ports.MemoryStore` on a Milvus collection. Needs no running server at its start, and reconnects."""

    def __init__(self, address: MilvusAddress, *, metrics: Metrics, timeouts: MilvusTimeouts | None = None) -> None:
        self._address = address
        self._timeouts = timeouts or MilvusTimeouts()
        super().__init__(MilvusConnection(address, metrics=metrics))
        self._anywhere = np.full((1, address.dimension), address.dimension**-0.5, dtype=np.float32)
        self._unflushed_rows = FLUSH_AFTER_ROWS  # rows replayed by a restarted server are unflushed as well

    async def prepare(self) -> None:
        """Connect and check the collection. Raises `BadSetting` if it cannot hold our rows, and `Unavailable`."""
        await self._connection.call("prepare", self._load_state, seconds=self._timeouts.write)

    async def is_ready(self) -> bool:
        try:
            return await self._connection.call("is_ready", self._load_state, seconds=self._timeouts.search)
        except (Unavailable, BadSetting):
            return False

    async def search(self, where: MemoryFilter, vector: Vector, *, limit: int) -> list[Candidate]:
        if limit < 1:
            return []
        limit = min(limit, SEARCH_LIMIT_MAX)
        wanted = _Rows(filters.expression(where), row_codec.MEMORY_FIELDS, where.user_id, limit)
        search = partial(self._nearest, wanted=wanted, vectors=vector[None])
        [hits] = await self._call("search", search, seconds=self._timeouts.search)
        found = [(row_codec.readable(row_codec.memory_of, hit["entity"]), float(hit["distance"])) for hit in hits]
        return [
            row_codec.candidate(memory, cosine)
            for memory, cosine in found
            if memory and memory.user_id == where.user_id
        ]

    async def nearest(
        self, where: MemoryFilter, vectors: Vector, *, limit: int, words: Collection[str] = ()
    ) -> list[Record]:
        if limit < 1 or not len(vectors):
            return []

        async def ask(link: Link) -> list[row_codec.Row]:
            expression = filters.holding(where, words)
            if words and not link.can.finds_words:
                ids = await self._holding(link, where, words)
                if not ids:
                    return []
                expression = filters.among(where, ids)
            wanted = _Rows(expression, row_codec.RECORD_FIELDS, where.user_id, min(limit, SEARCH_LIMIT_MAX))
            return await self._swept(link, wanted, vectors)

        answer = await self._call("nearest", ask, seconds=self._timeouts.read)
        unique = {str(row["id"]): row for row in answer}
        return _owned(await _in_pieces(row_codec.record_of, unique.values()), where.user_id)

    async def load(self, where: MemoryFilter, *, limit: int) -> list[Record]:
        if limit < 1:
            return []
        few = min(limit, ROWS_IN_ONE_ANSWER_MAX)  # all memories of most users: one query, in any order
        wanted = _Rows(filters.expression(where), row_codec.RECORD_FIELDS, where.user_id, few + 1)
        answer = await self._query("load", wanted)
        if len(answer) > few:
            positions = sorted(await self._positions("load", where), reverse=True)
            return await self.get(where.user_id, [memory_id for _, memory_id in positions[:limit]])
        found = await _in_pieces(row_codec.record_of, answer)
        return sorted(_owned(found, where.user_id), key=lambda record: pages.position(record.memory), reverse=True)

    async def load_few(self, where: MemoryFilter, *, most: int) -> list[Record] | None:
        limit = min(most + 1, SEARCH_LIMIT_MAX)
        wanted = _Rows(filters.expression(where), row_codec.RECORD_FIELDS, where.user_id, limit)

        async def ask(link: Link) -> list[row_codec.Row]:
            if link.can.is_lite:  # in a third of a query's time
                return await self._swept(link, wanted, self._anywhere)
            return await self._ask(link, wanted)

        answer = await self._call("load", ask, seconds=self._timeouts.read)
        if len(answer) > most:
            return None
        return _owned(await _in_pieces(row_codec.record_of, answer), where.user_id)

    async def same_statement(self, where: MemoryFilter, key: str) -> Record | None:
        expression = f"{filters.expression(where)} and {filters.one_of('statement_key', (key,))}"
        found = await self._query("same_statement", _Rows(expression, row_codec.RECORD_FIELDS, where.user_id))
        own = _owned(await _in_pieces(row_codec.record_of, found), where.user_id)
        return max(own, key=lambda record: pages.position(record.memory), default=None)

    async def get(self, user_id: str, memory_ids: Sequence[str]) -> list[Record]:
        return await self._found("get", user_id, memory_ids, row_codec.RECORD_FIELDS, row_codec.record_of)

    async def ids(self, where: MemoryFilter) -> list[str]:
        positions = await self._positions("ids", where, consistency=STRONG)  # erasing must not miss any
        return [memory_id for _, memory_id in sorted(positions, reverse=True)]

    async def memories(self, user_id: str, memory_ids: Sequence[str]) -> list[Memory]:
        return await self._found("memories", user_id, memory_ids, row_codec.MEMORY_FIELDS, row_codec.memory_of)

    async def page(
        self, where: MemoryFilter, *, limit: int, cursor: str, claim: ClaimFilter = ANY_CLAIM
    ) -> Page[Memory]:
        pages.read_cursor(cursor)  # before any query
        positions = await (self._positions("page", where) if claim.is_any else self._positions_of(where, claim))
        shown, next_cursor = pages.cut(positions, limit=limit, cursor=cursor)
        ids = [memory_id for _, memory_id in shown]
        found = await self._found("page", where.user_id, ids, row_codec.MEMORY_FIELDS, row_codec.memory_of)
        return Page(tuple(found), next_cursor)

    async def count(self, where: MemoryFilter) -> int:
        [row] = await self._query("count", _Rows(filters.expression(where), ("count(*)",), where.user_id))
        return int(row["count(*)"])

    async def apply(
        self, user_id: str, changes: Sequence[Change], vectors: Vector, *, before_each: Callable[[], None] | None = None
    ) -> None:
        written = row_codec.written(user_id, changes, vectors, dimension=self._address.dimension)
        for ids in batched(list(written), ROWS_IN_ONE_CALL_MAX):
            owners = await self._query("apply", _Rows(filters.one_of("id", ids), ("id", "user_id")))
            row_codec.refuse_foreign(user_id, {row["id"]: row["user_id"] for row in owners})
        for ids in batched(list(written), ROWS_IN_ONE_CALL_MAX):
            await self._upsert(user_id, [written[memory_id] for memory_id in ids], before_each)

    async def delete(self, user_id: str, memory_ids: Collection[str]) -> None:
        for ids in batched([i for i in dict.fromkeys(memory_ids) if is_valid_id(i)], IDS_IN_ONE_CALL_MAX):
            await self._delete(user_id, ids)

    async def _upsert(self, user_id: str, batch: list[row_codec.Row], before: Callable[[], None] | None) -> None:
        seconds = self._timeouts.write

        async def write(link: Link) -> None:
            if before is not None:
                before()
            # the library's own time-out: a suspended process must not send its pending call when it resumes
            await link.client.upsert(
                link.collection, batch, timeout=seconds + LIBRARY_LATER_SECONDS, partition_name=link.partition(user_id)
            )
            # Return when searches of all processes see the rows. On Milvus Lite that is immediately (and they survive a
            # kill, since its log is written first), but unflushed rows make it slow. On a server, one read waits until
            # the node that searches has loaded what this process wrote; from then on it serves those rows to all.
            if not link.can.is_lite:
                first = filters.one_of("id", [str(batch[0]["id"])])
                await self._ask(link, _Rows(first, ("id",), user_id, consistency=SESSION))
            await self._flushed(link, written=len(batch))

        await self._call("apply", write, seconds=seconds)

    async def _delete(self, user_id: str, ids: Sequence[str]) -> None:
        async def write(link: Link) -> None:
            expression = filters.owned(user_id, ids)
            await link.client.delete(
                link.collection, filter=expression, partition_name=link.partition(user_id), timeout=LIBRARY_SECONDS
            )
            # Strong, since a server of 2.3 does not report when it deleted; and pymilvus 3.0's asynchronous client
            # ignores a refusal, such as that the collection was replaced, or is not loaded after a restart.
            if await self._ask(link, _Rows(expression, ("id",), user_id, consistency=STRONG, limit=1)):
                raise Unavailable(PART, "a deletion had no effect")
            await self._flushed(link, written=len(ids))

        await self._call("delete", write, seconds=self._timeouts.write)

    async def _flushed(self, link: Link, *, written: int) -> None:
        if not link.can.is_lite:
            return
        self._unflushed_rows += written
        if self._unflushed_rows >= FLUSH_AFTER_ROWS:
            await link.client.flush(link.collection, timeout=LIBRARY_SECONDS)
            self._unflushed_rows = 0

    async def _positions(self, name: str, where: MemoryFilter, *, consistency: str = BOUNDED) -> list[pages.Position]:
        """The positions of all memories that the filter admits; sorted by us, since Milvus has no order."""
        wanted = _Rows(filters.expression(where), ("id", "created_at"), where.user_id, consistency=consistency)
        found = await self._query(name, wanted)
        return [(float(row["created_at"]), str(row["id"])) for row in found]

    async def _positions_of(self, where: MemoryFilter, claim: ClaimFilter) -> list[pages.Position]:
        """Compared by us: Milvus folds no letters, and none of the caller's text gets into an expression."""

        def position(row: row_codec.Row) -> pages.Position | None:
            is_admitted = claim.admits(*row_codec.claim_of(row))
            return (float(row["created_at"]), str(row["id"])) if is_admitted else None

        fields = ("id", "created_at", *row_codec.CLAIM_FIELDS)
        found = await self._query("page", _Rows(filters.expression(where), fields, where.user_id))
        return [one for one in await _in_pieces(position, found) if one is not None]

    async def _found(
        self,
        name: str,
        user_id: str,
        memory_ids: Sequence[str],
        fields: Sequence[str],
        convert: Callable[[row_codec.Row], Result],
    ) -> list[Result]:
        """The converted rows with these ids, in that order, as far as they are the user's."""
        found: dict[str, Result] = {}
        # Each query of Milvus Lite reads all users' rows: as few as possible.
        for ids in batched(list(dict.fromkeys(memory_ids)), ROWS_BY_ID_MAX):
            possible = [memory_id for memory_id in ids if is_valid_id(memory_id)]
            if not possible:
                continue
            batch = await self._query(name, _Rows(filters.owned(user_id, possible), fields, user_id))
            own = [row for row in batch if row["user_id"] == user_id]
            found.update(await _in_pieces(lambda row: (str(row["id"]), convert(row)), own))
        return [found[memory_id] for memory_id in memory_ids if memory_id in found]

    async def _query(self, name: str, wanted: _Rows) -> list[row_codec.Row]:
        return await self._call(name, lambda link: self._ask(link, wanted), seconds=self._timeouts.read)

    async def _ask(self, link: Link, wanted: _Rows) -> list[row_codec.Row]:
        found = await link.client.query(
            link.collection,
            filter=wanted.expression,
            output_fields=list(wanted.fields),
            partition_names=link.partitions(wanted.user_id),
            limit=wanted.limit,
            consistency_level=wanted.consistency,
            timeout=LIBRARY_SECONDS,
        )
        return await _in_pieces(_compact, found)  # the library decodes a row only when it is accessed

    async def _swept(self, link: Link, wanted: _Rows, vectors: Vector) -> list[row_codec.Row]:
        """Those of the rows that are nearest to one of the vectors."""
        found = await self._nearest(link, wanted=wanted, vectors=vectors)
        return await _in_pieces(lambda hit: _compact(dict(hit["entity"])), [hit for hits in found for hit in hits])

    async def _nearest(self, link: Link, *, wanted: _Rows, vectors: Vector) -> list[list[row_codec.Row]]:
        found: list[list[row_codec.Row]] = await link.client.search(
            link.collection,
            data=list(np.asarray(vectors, dtype=np.float32)),
            anns_field=row_codec.VECTOR_FIELD,
            filter=wanted.expression,
            limit=wanted.limit,
            partition_names=link.partitions(wanted.user_id),
            output_fields=list(wanted.fields),
            search_params=schema.search_params(wanted.limit or 0),
            consistency_level=BOUNDED,
            timeout=LIBRARY_SECONDS,
        )
        return found

    async def _holding(self, link: Link, where: MemoryFilter, words: Collection[str]) -> list[str]:
        """The ids of the memories whose content contains one of the words, which we look for ourselves."""

        def held(row: row_codec.Row) -> str | None:
            return str(row["id"]) if pages.holds(words, str(row["content"])) else None

        found = await self._ask(link, _Rows(filters.expression(where), ("id", "content"), where.user_id))
        return [one for one in await _in_pieces(held, found) if one is not None]

    async def _load_state(self, link: Link) -> bool:
        return await link.collections.is_loaded(link.collection)

    async def _call(self, name: str, work: Callable[[Link], Awaitable[Result]], *, seconds: float) -> Result:
        """An unsuitable collection counts as unavailable for callers in a request."""
        try:
            return await self._connection.call(name, work, seconds=seconds)
        except BadSetting as error:
            raise Unavailable(PART, str(error)) from None


def _compact(row: row_codec.Row) -> row_codec.Row:
    """Replaces the vector by an array: a list of hundreds of numbers burdens the garbage collector."""
    if row_codec.VECTOR_FIELD in row:
        row[row_codec.VECTOR_FIELD] = np.array(row[row_codec.VECTOR_FIELD], dtype=np.float32)
    return row


async def _in_pieces(convert: Callable[[row_codec.Row], Result], found: Iterable[row_codec.Row]) -> list[Result]:
    """All valid rows, converted, with a pause for other tasks after each piece."""
    converted: list[Result] = []
    for number, row in enumerate(found, start=1):
        one = row_codec.readable(convert, row)
        if one is not None:
            converted.append(one)
        if number % ROWS_IN_A_PIECE == 0:
            await asyncio.sleep(0)
    return converted


def _owned(found: Sequence[Record], user_id: str) -> list[Record]:
    """The final check of ownership, before results leave the store."""
    return [record for record in found if record.memory.user_id == user_id]
