"""Values on shelves while processes die, or meet, between two steps: no value is ever without a place."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from redis.asyncio import Redis
from redis_parts import InterruptedClient, MortalClient
from redis_server import redis_server, valkey_server

from memory.adapters.redis.log_client import LogClient
from memory.adapters.redis.log_keys import NOTES, UserKeys
from memory.adapters.redis.shelves import UNLIMITED, NewValue, Shelf, ShelfLimits
from memory.errors import Unavailable

AT = 1_000.0
LIMITS = ShelfLimits(weight_max=3, seconds_max=100.0, mark_seconds=60.0)
PLACES = f"memproxy:{{{NOTES}}}:places"
VALUES = UserKeys("ann").shelf(NOTES)[0]


@pytest.fixture(params=[redis_server, valkey_server])
async def connected(request: pytest.FixtureRequest) -> AsyncIterator[Redis]:
    server = request.param()
    server.empty()
    async with Redis(port=server.port) as client:
        yield client


@pytest.fixture
def shelf(connected: Redis) -> Shelf:
    return Shelf(LogClient(connected), NOTES, LIMITS)


def a_value(name: str, value: bytes = b"v", *, at: float = AT) -> NewValue:
    return NewValue(name, value, at)


async def names(shelf: Shelf) -> list[bytes]:
    """Of the values at places, the newest first."""
    shelved, _ = await shelf.newest_of_all(below=UNLIMITED, limit=100)
    return [one.name for one in shelved]


@pytest.mark.parametrize("calls", range(5))
async def test_whoever_dies_between_two_steps_leaves_no_value_without_a_place(
    connected: Redis, shelf: Shelf, calls: int
) -> None:
    for name in ("a", "b", "c"):
        await shelf.put("ann", a_value(name))
    mortal = Shelf(MortalClient(connected, calls), NOTES, LIMITS)
    try:
        await mortal.put("ann", a_value("d"))
    except Unavailable:
        assert calls < 5
    stored = {one.name for one in await shelf.all("ann")}
    assert stored == set(await names(shelf))
    for number in range(3):  # what was left goes when its turn comes
        await shelf.put("bob", a_value(f"later{number}"))
    assert await shelf.all("ann") == []
    assert await connected.zcard(PLACES) == 3


async def test_a_value_whose_place_was_taken_while_it_was_written_gets_it_again(connected: Redis, shelf: Shelf) -> None:
    async def take() -> None:
        for number in range(4):
            await shelf.put("bob", a_value(f"other{number}"))
        assert await connected.zcard(PLACES) == 3

    slow = Shelf(InterruptedClient(connected, VALUES, take), NOTES, LIMITS)
    await slow.put("ann", a_value("slow"))
    assert b"slow" in await names(shelf)
    await shelf.put("bob", a_value("last"))
    assert await shelf.all("ann") == []


async def test_a_value_that_was_put_again_is_not_removed_in_place_of_the_earlier_one(shelf: Shelf) -> None:
    await shelf.put("ann", a_value("a"))
    seen = await shelf.all("ann")
    await shelf.put("ann", a_value("a", b"newer"))
    await shelf.remove("ann", seen)
    assert await shelf.find("ann", ["a"]) == [b"newer"]
    assert await names(shelf) == [b"a"]


async def test_a_refused_value_leaves_the_earlier_one_at_a_place(shelf: Shelf) -> None:
    await shelf.put("ann", a_value("a", b"first", at=AT + 2))
    await shelf.mark("ann", ["m"], at=AT + 1)
    await shelf.put("ann", NewValue("a", b"second", AT, marks=("m",)))
    await shelf.put("ann", NewValue("b", b"third", AT, marks=("m",)))
    assert await shelf.find("ann", ["a", "b"]) == [b"first", None]
    assert await names(shelf) == [b"a"]


async def test_the_expired_go_whosever_they_are(connected: Redis, shelf: Shelf) -> None:
    await shelf.put("ann", a_value("a"))
    await shelf.put("bob", a_value("b", at=AT + LIMITS.seconds_max + 1))
    assert await shelf.all("ann") == []
    assert await names(shelf) == [b"b"]
    assert await connected.keys(f"{VALUES}*") == []


async def test_bytes_are_counted_through_all_changes(connected: Redis, shelf: Shelf) -> None:
    for name, value in (("a", b"12345"), ("b", b"1"), ("a", b"123")):
        await shelf.put("ann", a_value(name, value))
    assert await shelf.replace("ann", "b", b"1", b"12")
    assert not await shelf.replace("ann", "b", b"1", b"1234567")
    assert await connected.get(UserKeys("ann").shelf(NOTES)[2]) == b"5"
