"""Looks for strings in the rows of a Milvus server: in every field but vectors, of every collection of the database.

Collections of other applications are read as well, since nobody knows what they copied; but a user sees the report, so
they are counted in it and not named.

The files of a server cannot be read from here, and they hold deleted rows for some time: segments that a compaction has
replaced, until the server's garbage collection deletes them, and its message log, until its retention ends. Nothing
that the server answers says when that is. Milvus Lite's files are read like all others where they are on this machine.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from memory.adapters.file_scan import forms_of
from memory.adapters.milvus import filters
from memory.adapters.milvus.collections import LIBRARY_SECONDS, Collections
from memory.adapters.milvus.connection import Link, MilvusAddress, MilvusConnection, OpensConnection
from memory.errors import Unavailable
from memory.ports.erasures import PlaceReport
from memory.runtime.metrics import Metrics

MILVUS = "milvus"
SEARCHED = "every row of every collection of the database, without vectors, after a compaction had ended"
FILES_OF_A_SERVER = (
    "files of the server: they hold deleted rows in segments that the compaction replaced, until its garbage "
    "collection (dataCoord.gc), and in its message log, until the retention of that ends; it tells neither"
)
FILES_OF_LITE = "files of this Milvus Lite: they are not in the data directory"
SCAN_SECONDS_MAX = 300.0
CALL_SECONDS = 50.0
ROWS_IN_A_PAGE = 1_000
WHOLE_NUMBER_MIN = 1 - (1 << 63)  # Milvus 2.3 cannot read the lowest one
# Milvus has no order of its own; this requests a page in the order of keys.
_IN_ORDER = {"iterator": "True", "reduce_stop_for_best": "True"}

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


@dataclass(slots=True)
class _Look:
    """`found_in`: names of collections; `unread`: why which of them could not be read."""

    needles: Sequence[bytes]
    rows: int = 0
    size: int = 0
    found_in: set[str] = field(default_factory=set)
    unread: dict[str, set[str]] = field(default_factory=dict)

    def read(self, collection: str, row: dict[str, Any]) -> None:
        texts = [_text(value) for value in row.values()]
        self.rows, self.size = self.rows + 1, self.size + sum(map(len, texts))
        if any(needle in text for text in texts for needle in self.needles):
            self.found_in.add(collection)

    def leave_out(self, collection: str, reason: str) -> None:
        self.unread.setdefault(reason, set()).add(collection)


class MilvusRowScan(OpensConnection):
    """`memory.ports.erasures.PlaceScan`. Open with `async with`; nothing is connected before the first look."""

    def __init__(
        self,
        address: MilvusAddress,
        *,
        lite_files_are_read: bool,
        metrics: Metrics,
        seconds_max: float = SCAN_SECONDS_MAX,
    ) -> None:
        """`lite_files_are_read`: if it is Milvus Lite, somebody else looks into its files."""
        super().__init__(MilvusConnection(address, metrics=metrics, opening=_live))
        self._lite_files_are_read = lite_files_are_read
        self._seconds_max = seconds_max

    async def scan(self, wanted: Sequence[str]) -> PlaceReport | None:
        is_lite = await self._call(_is_lite)
        if is_lite and self._lite_files_are_read:
            return None
        look = _Look([form for text in wanted for form in forms_of(text)])
        ours = await self._call(_ours)
        not_searched = [FILES_OF_LITE if is_lite else FILES_OF_A_SERVER]
        late: list[str] = []
        try:
            async with asyncio.timeout(self._seconds_max):
                live, *others = await self._call(_names)
                await self._read(look, live)
                for name in others:
                    await self._read_other(look, name)
        except TimeoutError:
            late = [f"rows that are not among those {look.rows} read within {self._seconds_max:.0f} s"]
        for reason, names in look.unread.items():
            not_searched += [f"{named}: {reason}" for named in _named(names, ours, "collection ")]
        found = [f"rows of {named}" for named in _named(look.found_in, ours)]
        return PlaceReport(MILVUS, SEARCHED, look.rows, look.size, tuple(found), (*not_searched, *late))

    async def _read_other(self, look: _Look, name: str) -> None:
        """One that may be no business of ours: what hinders us there is said, and hinders nothing else."""
        try:
            await self._read(look, name)
        except Unavailable as error:
            if name in await self._call(_names):  # otherwise it was dropped meanwhile, with its rows
                look.leave_out(name, str(error))

    async def _read(self, look: _Look, name: str) -> None:
        collection = await self._call(partial(_readable, name=name))
        if collection is None:
            look.leave_out(name, "not loaded")
        else:
            await self._read_rows(look, collection)

    async def _read_rows(self, look: _Look, collection: _Readable) -> None:
        last: str | int | None = None
        while rows := await self._call(partial(_page, collection=collection, last=last)):
            for row in rows:
                look.read(collection.name, row)
            last = rows[-1][collection.key]
            await asyncio.sleep(0)

    async def _call(self, work: Callable[[Link], Awaitable[Result]]) -> Result:
        return await self._connection.call("page", work, seconds=CALL_SECONDS)


async def _live(collections: Collections) -> str:
    return await collections.live()


async def _is_lite(link: Link) -> bool:
    return link.can.keeps_deleted_bytes


async def _names(link: Link) -> list[str]:
    """Of all collections of the database, that of the memories first."""
    names = set(map(str, await link.client.list_collections(timeout=LIBRARY_SECONDS)))
    return [link.collection, *sorted(names - {link.collection})]


async def _ours(link: Link) -> frozenset[str]:
    """The generations of the collection of the settings."""
    return frozenset([link.collection, *await link.collections.others()])


async def _readable(link: Link, *, name: str) -> _Readable | None:
    """None if it is not loaded, so that no row of it can be read."""
    state = await link.client.get_load_state(name, timeout=LIBRARY_SECONDS)
    if str(state.get("state")) != "Loaded":
        return None
    described = await link.collections.described(name)
    # Asked for the order of keys, a server does not wait for the latest writes; asked for the number of rows it does.
    await link.client.query(
        name, filter="", output_fields=["count(*)"], consistency_level="Strong", timeout=LIBRARY_SECONDS
    )
    [key] = [one for one in described["fields"] if one.get("is_primary")]
    fields = [str(one["name"]) for one in described["fields"] if "VECTOR" not in one["type"].name]
    if described.get("enable_dynamic_field"):
        fields.append("$meta")
    return _Readable(name, str(key["name"]), "CHAR" in key["type"].name, tuple(fields))


async def _page(link: Link, *, collection: _Readable, last: str | int | None) -> list[dict[str, Any]]:
    found = await link.client.query(
        collection.name,
        filter=collection.after(last),
        output_fields=list(collection.fields),
        limit=ROWS_IN_A_PAGE,
        consistency_level="Strong",
        timeout=LIBRARY_SECONDS,
        **_IN_ORDER,
    )
    return [dict(row) for row in found]


def _named(names: Collection[str], ours: Collection[str], kind: str = "") -> list[str]:
    """Each of ours by its name, and how many there are of others."""
    named, others = [f"{kind}{name}" for name in sorted(names) if name in ours], len(set(names) - set(ours))
    return [*named, f"collections that are not memproxy's ({others})"] if others else named


def _text(value: object) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")
