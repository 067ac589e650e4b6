"""The index of users for whom something may be to do: nobody who is marked meanwhile leaves it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import pytest
from redis.asyncio import Redis
from redis_server import redis_server

from memory.adapters.redis.log_client import LogClient
from memory.adapters.redis.user_index import Look, Marked, UserIndex


@pytest.fixture
async def client() -> AsyncIterator[LogClient]:
    server = redis_server()
    server.empty()
    async with Redis(port=server.port) as connected:
        yield LogClient(connected)


async def found(index: UserIndex, *, until: float = 1e9, limit: int = 9) -> list[str]:
    async def keep(page: Sequence[Marked]) -> list[Look[str]]:
        return [Look(one.member, one.place) for one in page]

    return await index.search(keep, until=until, limit=limit)


async def test_members_are_found_in_order_and_the_first_mark_counts(client: LogClient) -> None:
    index = UserIndex(client, "a test")
    for member in ("b", "a", "b", "c"):
        await client.calls([index.marking(member)])
    assert await found(index) == ["b", "a", "c"]
    assert await found(index, limit=2) == ["b", "a"]
    await client.calls([index.marking("d", -5.0), index.marking("c", -7.0), index.marking("d", 9.0)])
    assert await found(index) == ["c", "d", "b", "a"]
    assert await found(index, until=-6.0) == ["c"]


async def test_who_has_nothing_to_do_leaves_and_who_belongs_elsewhere_is_found_there(client: LogClient) -> None:
    index = UserIndex(client, "a test")
    await client.calls([index.marking(f"m{number:02}", float(number)) for number in range(50)])

    async def look(page: Sequence[Marked]) -> list[Look[str]]:
        numbers = [int(one.member[1:]) for one in page]
        return [
            Look(None, None) if number % 2 else Look(one.member, 100.0 if number == 0 else one.place)
            for number, one in zip(numbers, page, strict=True)
        ]

    evens = [f"m{number:02}" for number in range(2, 50, 2)]
    assert await index.search(look, limit=90) == [*evens, "m00"]
    assert await found(index, limit=90) == [*evens, "m00"]
    assert await index.search(look, until=50.0, limit=90) == evens


async def test_who_is_marked_while_somebody_looks_stays(client: LogClient) -> None:
    index = UserIndex(client, "a test")
    await client.calls([index.marking("seen", 1.0), index.marking("marked again", 2.0)])

    async def mark_meanwhile(page: Sequence[Marked]) -> list[Look[str]]:
        await client.calls([index.marking("marked again", 2.0)])
        return [Look(None, None) for _ in page]

    assert await index.search(mark_meanwhile, limit=9) == []
    assert await found(index) == ["marked again"]
