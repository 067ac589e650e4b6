"""Snapshots on Redis: within their limit together, the least recently used go first, and the sum stays true."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from redis_parts import REDIS_KINDS, shared_client
from turn_logs import ManualClock

from memory.adapters.redis import log_keys
from memory.adapters.redis.background import RedisBackground
from memory.adapters.redis.log_client import LogClient
from memory.adapters.redis.snapshots import USED_AGAIN_SECONDS, RedisSnapshots

BYTES_MAX = 1_000


@pytest.fixture(params=sorted(REDIS_KINDS))
async def client(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[LogClient]:
    async with shared_client(tmp_path, is_cluster=REDIS_KINDS[request.param]) as connected:
        yield connected


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def background() -> AsyncIterator[RedisBackground]:
    async with RedisBackground() as opened:
        yield opened


@pytest.fixture
def snapshots(client: LogClient, background: RedisBackground, clock: ManualClock) -> RedisSnapshots:
    return RedisSnapshots(client, background, bytes_max=BYTES_MAX, clock=clock)


async def written(snapshots: RedisSnapshots, clock: ManualClock, *users: str, size: int = 300) -> None:
    for user in users:
        clock.now += 1
        await snapshots.write(user, b"x" * size)


async def there(snapshots: RedisSnapshots, *users: str) -> list[str]:
    return [user for user in users if await snapshots.read(user) is not None]


async def test_the_least_recently_used_go_first(
    snapshots: RedisSnapshots, background: RedisBackground, clock: ManualClock
) -> None:
    await written(snapshots, clock, "ann", "bob", "carl")
    clock.now += USED_AGAIN_SECONDS + 1
    assert await snapshots.read("ann") is not None
    await background.written()
    await written(snapshots, clock, "dora")
    assert await there(snapshots, "ann", "bob", "carl", "dora") == ["ann", "carl", "dora"]


async def test_one_that_is_written_again_counts_once(snapshots: RedisSnapshots, clock: ManualClock) -> None:
    await written(snapshots, clock, "ann", "bob", "ann", "ann", "ann")
    assert await there(snapshots, "ann", "bob") == ["ann", "bob"]


async def test_one_that_is_too_large_is_not_kept_nor_the_one_before(
    snapshots: RedisSnapshots, clock: ManualClock
) -> None:
    await written(snapshots, clock, "ann", "bob")
    await written(snapshots, clock, "ann", size=BYTES_MAX + 1)
    assert await there(snapshots, "ann", "bob") == ["bob"]


async def test_the_sum_is_that_of_what_is_there(
    snapshots: RedisSnapshots, client: LogClient, background: RedisBackground, clock: ManualClock
) -> None:
    await written(snapshots, clock, "ann", "bob", "carl", "dora", "ann")
    await snapshots.erase("ann")
    await snapshots.erase("nobody")
    left = await there(snapshots, "ann", "bob", "carl", "dora")
    await background.written()  # that they were used
    assert int(await client.call("GET", log_keys.SNAPSHOTS[2])) == 300 * len(left) > 0
    await snapshots.erase_all()
    assert int(await client.call("GET", log_keys.SNAPSHOTS[2])) == 0
