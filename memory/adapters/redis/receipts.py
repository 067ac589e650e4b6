"""Receipts on Redis: every process can read those of all filters. The limits are those of SQLite.

Written in the background after the request. Erasing leaves a mark with the time, so that receipts on their way are not
stored after it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import msgspec

from memory.adapters.receipt_rules import before, held, project_mark, without_secrets
from memory.adapters.redis import log_keys
from memory.adapters.redis.background import RedisBackground
from memory.adapters.redis.log_client import LogClient
from memory.adapters.redis.shelves import UNLIMITED, NewValue, Shelf, ShelfLimits, Shelved
from memory.adapters.retention import DEFAULT_RECEIPT_LIMITS, ReceiptLimits
from memory.errors import Unavailable
from memory.model import Receipt
from memory.ports import Clock, ReceiptPage

READ_AT_ONCE = 100  # for a page: some may be unwanted
AMEND_TRIES_MAX = 50

Look = Callable[[int], Awaitable[tuple[Sequence[Shelved], int]]]
"""Receipts at places below that one, and where to look further; 0 at the end."""


class RedisReceipts:
    """`memory.ports.Receipts`. `background` must be open."""

    def __init__(
        self,
        client: LogClient,
        background: RedisBackground,
        *,
        clock: Clock,
        redact: Callable[[str], str],
        limits: ReceiptLimits = DEFAULT_RECEIPT_LIMITS,
    ) -> None:
        """`redact` removes secrets from the query before it is written."""
        kept = ShelfLimits(
            weight_max=limits.total_bytes_max,
            user_values_max=limits.user_receipts_max,
            seconds_max=limits.seconds_max,
            mark_seconds=limits.seconds_max,
        )
        self._shelf = Shelf(client, log_keys.RECEIPTS, kept)
        self._background = background
        self._clock = clock
        self._redact = redact
        self._limits = limits

    def keep(self, receipt: Receipt) -> None:
        self._background.post(partial(self._keep, receipt))

    async def get(self, user_id: str, receipt_id: str) -> Receipt | None:
        (stored,) = await self._shelf.find(user_id, [receipt_id])
        receipt = None if stored is None else _RECEIPTS.decode(stored)
        return receipt if receipt is not None and self._is_current(receipt) else None

    async def page(self, user_id: str, *, memory_id: str = "", limit: int, cursor: str = "") -> ReceiptPage:
        async def look(below: int) -> tuple[Sequence[Shelved], int]:
            return await self._shelf.newest(user_id, below=below, limit=READ_AT_ONCE)

        return await self._page(look, cursor, limit, lambda receipt: not memory_id or held(receipt, memory_id))

    async def page_of_all(self, *, limit: int, cursor: str = "") -> ReceiptPage:
        async def look(below: int) -> tuple[Sequence[Shelved], int]:
            return await self._shelf.newest_of_all(below=below, limit=READ_AT_ONCE)

        return await self._page(look, cursor, limit, lambda _: True)

    async def amend(self, user_id: str, receipt_id: str, outcome: Mapping[str, Any]) -> None:
        for _ in range(AMEND_TRIES_MAX):
            (stored,) = await self._shelf.find(user_id, [receipt_id])
            if stored is None:
                return
            amended = _ENCODER.encode(replace(_RECEIPTS.decode(stored), outcome=outcome))
            if await self._shelf.replace(user_id, receipt_id, stored, amended):
                return
        raise Unavailable("turn_log", f"others changed this receipt {AMEND_TRIES_MAX} times meanwhile")

    async def erase(self, user_id: str, *, project_id: str = "") -> None:
        if not project_id:
            await self._shelf.erase(user_id, at=self._clock())
            return
        await self._shelf.mark(user_id, [project_mark(project_id)], at=self._clock())
        shelved = await self._shelf.all(user_id)
        of_project = [one for one in shelved if _RECEIPTS.decode(one.value).project_id == project_id]
        await self._shelf.remove(user_id, of_project)

    async def _keep(self, receipt: Receipt) -> None:
        body = _ENCODER.encode(without_secrets(receipt, self._redact))
        marks = [project_mark(receipt.project_id)] if receipt.project_id else []
        new = NewValue(receipt.id, body, receipt.at, len(body), marks)
        await self._shelf.put(receipt.user_id, new, keeps_first=True)

    async def _page(self, look: Look, cursor: str, limit: int, is_wanted: Callable[[Receipt], bool]) -> ReceiptPage:
        """Read until a page is full, and one more shows that there is a next one."""
        below, found = min(before(cursor), UNLIMITED), list[tuple[int, Receipt]]()
        while below and len(found) <= limit:
            shelved, below = await look(below)
            decoded = [(one.place, _RECEIPTS.decode(one.value)) for one in shelved]
            found += [pair for pair in decoded if self._is_current(pair[1]) and is_wanted(pair[1])]
        shown = found[:limit]
        return ReceiptPage(tuple(one for _, one in shown), str(shown[-1][0]) if len(found) > limit else "")

    def _is_current(self, receipt: Receipt) -> bool:
        return receipt.at > self._clock() - self._limits.seconds_max


_ENCODER = msgspec.msgpack.Encoder()
_RECEIPTS = msgspec.msgpack.Decoder(Receipt)
