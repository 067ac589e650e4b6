"""The keys of an erasure are under several hash tags: what a process breaks off between two of them ends by itself."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace

import pytest
from redis.asyncio import Redis
from redis_parts import MortalClient

from memory.adapters.redis import erasures as redis_erasures
from memory.adapters.redis.erasures import RedisErasures
from memory.adapters.redis.log_client import Command, LogClient, Reply
from memory.errors import Unavailable
from memory.ports.erasures import ErasureRequest, ScanReport

AT = 1_750_000_000.0
CALLS_MAX = 12


def asked(erasure_id: str) -> ErasureRequest:
    return ErasureRequest(erasure_id, AT, AT, {"memories": 1})


async def keys_left(connected: Redis) -> list[str]:
    """Without the last numbers of lists."""
    names = [key.decode() if isinstance(key, bytes) else key for key in await connected.keys()]
    return [name for name in names if not name.endswith(":number")]


async def test_whoever_dies_while_deleting_old_records_leaves_none_for_ever(connected: Redis) -> None:
    erasures, broken_off = RedisErasures(LogClient(connected)), 0
    for calls in range(CALLS_MAX):
        for part in ("", "red"):
            await erasures.begun("ann", asked(f"e{calls}{part}"), part=part)
        await erasures.rewritten(await erasures.pending(), at=AT)
        assert await erasures.pending() == []
        with suppress(Unavailable):
            await RedisErasures(MortalClient(connected, calls)).expire(before=AT + 1)
        broken_off += bool(await keys_left(connected))
        await erasures.expire(before=AT + 1)
        assert await keys_left(connected) == []
    assert 3 < broken_off < CALLS_MAX


async def test_whoever_dies_while_beginning_an_erasure_leaves_nothing_for_ever(connected: Redis) -> None:
    erasures, begun = RedisErasures(LogClient(connected)), 0
    for calls in range(CALLS_MAX):
        with suppress(Unavailable):
            await RedisErasures(MortalClient(connected, calls)).begun("ann", asked(f"e{calls}"))
            begun += 1
        await erasures.rewritten(await erasures.pending(), at=AT)
        assert await erasures.pending() == []
        await erasures.expire(before=AT + 1)
        assert await keys_left(connected) == []
    assert 0 < begun < CALLS_MAX - 2


async def test_an_erasure_that_begins_while_old_records_are_deleted_is_listed(connected: Redis) -> None:
    erasures = RedisErasures(LogClient(connected))

    async def expire() -> None:
        await erasures.expire(before=AT + 1)

    await RedisErasures(SteppedClient(connected, expire)).begun("ann", asked("e1"))
    assert [one.request for one in await erasures.latest(limit=9)] == [asked("e1")]


async def test_an_erasure_that_is_recorded_has_begun_although_earlier_ones_could_not_be_deleted(
    connected: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_erasures, "ERASURES_PER_USER_MAX", 1)
    erasures = RedisErasures(LogClient(connected))
    for number, calls in enumerate((3, 3, 4, 5, 6)):
        await RedisErasures(MortalClient(connected, calls)).begun("ann", asked(f"e{number}"))
        assert await erasures.get("ann", f"e{number}") is not None
    await erasures.begun("ann", asked("last"))
    assert next(one.request.id for one in await erasures.latest(limit=9)) == "last"
    await erasures.rewritten(await erasures.pending(), at=AT)
    await erasures.scanned("last", ScanReport(AT, 1, 1))
    await erasures.expire(before=AT + 1)
    assert await erasures.latest(limit=9) == []


class SteppedClient(LogClient):
    """Something else happens between any two commands, as on a server with other clients."""

    def __init__(self, client: Redis, between: Callable[[], Awaitable[object]]) -> None:
        super().__init__(client)
        self._between = between

    async def calls(self, commands: Sequence[Command]) -> list[Reply]:
        replies = []
        for command in commands:
            replies += await super().calls([command])
            await self._between()
        return replies


async def test_files_rewritten_for_an_earlier_request_are_not_for_one_that_begins_at_that_moment(
    connected: Redis,
) -> None:
    erasures = RedisErasures(LogClient(connected))
    await erasures.begun("ann", asked("e1"))
    found = await erasures.pending()
    again = replace(asked("e1"), deleted_at=AT + 9)

    async def rewritten() -> None:
        await erasures.rewritten(found, at=AT + 5)

    await RedisErasures(SteppedClient(connected, rewritten)).begun("ann", again)
    assert await erasures.pending() == [again]
