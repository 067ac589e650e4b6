"""Recorded turns with the arms in their receipts, on Redis. Found by the receipts, which are limited in bytes."""

from __future__ import annotations

from collections.abc import AsyncIterator

import msgspec

from memory.adapters.holdout_rules import compared
from memory.adapters.redis import log_keys
from memory.adapters.redis.log_client import LogClient
from memory.adapters.redis.log_keys import UserKeys
from memory.adapters.redis.shelves import UNLIMITED, Shelf, ShelfLimits
from memory.adapters.redis.turn_records import read_command, record_of
from memory.model import Receipt
from memory.model.arms import ComparedTurn

PAGE_RECEIPTS = 500
PAGE_TURNS = 50  # a turn may have 2 MiB


class RedisHoldoutRecord:
    """`memory.ports.holdouts.HoldoutRecord`."""

    def __init__(self, client: LogClient) -> None:
        self._client = client
        self._receipts = Shelf(client, log_keys.RECEIPTS, ShelfLimits())

    async def turns(self, *, since: float) -> AsyncIterator[ComparedTurn]:
        """No index has all turns in the order of opening: they are put in order when all are there, without texts."""
        found: list[tuple[int, ComparedTurn]] = []
        for user_id in await self._users():
            found += await self._turns_of(user_id, since)
        for _, turn in sorted(found, key=lambda one: one[0]):
            yield turn

    async def _users(self) -> list[str]:
        users: set[str] = set()
        below = UNLIMITED
        while below:
            shelved, below = await self._receipts.newest_of_all(below=below, limit=PAGE_RECEIPTS)
            users |= {_RECEIPTS.decode(one.value).user_id for one in shelved}
        return sorted(users)

    async def _turns_of(self, user_id: str, since: float) -> list[tuple[int, ComparedTurn]]:
        shelved = await self._receipts.all(user_id)
        receipts = {receipt.id: receipt for receipt in (_RECEIPTS.decode(one.value) for one in shelved)}
        keys, found = UserKeys(user_id), list[tuple[int, ComparedTurn]]()
        ids = [turn_id.decode() for turn_id in await self._client.call("ZRANGE", keys.turns, 0, -1)]
        for start in range(0, len(ids), PAGE_TURNS):
            commands = [read_command(keys, turn_id) for turn_id in ids[start : start + PAGE_TURNS]]
            for reply in await self._client.calls(commands):
                record = record_of(reply)
                if record is None or record.beginning.said_at < since:
                    continue
                turn = record.turn()
                receipt = receipts.get(turn.receipt_id)
                if receipt is not None:
                    found.append((record.seq, compared(turn.scope.session_id, turn.at, turn.answer, receipt)))
        return found


_RECEIPTS = msgspec.msgpack.Decoder(Receipt)
