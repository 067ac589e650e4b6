"""When nobody recorded, on Redis: which gaps there are, however many processes record."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest
from redis_parts import REDIS_KINDS, shared_client
from turn_logs import START, ManualClock

from memory.adapters.redis.owners import RedisOwners
from memory.adapters.redis.recording_times import RedisRecordingTimes
from memory.adapters.redis.recording_values import RecordingGap, gap_after, gap_with_room

Opener = Callable[[], AbstractAsyncContextManager[RedisRecordingTimes]]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(params=sorted(REDIS_KINDS))
def start(request: pytest.FixtureRequest, tmp_path: Path, clock: ManualClock) -> Opener:
    """One more process that records; leaving it is its death."""

    @asynccontextmanager
    async def process() -> AsyncIterator[RedisRecordingTimes]:
        is_cluster = REDIS_KINDS[request.param]
        async with shared_client(tmp_path, is_cluster=is_cluster) as client, RedisOwners(client) as owners:
            yield RedisRecordingTimes(client, owners, clock=clock)

    return process


@pytest.fixture
async def times(start: Opener) -> AsyncIterator[RedisRecordingTimes]:
    async with start() as one:
        yield one


async def lengths(times: RedisRecordingTimes) -> list[float]:
    return [gap.ended_at - gap.began_at for gap in await times.gaps()]


async def test_the_first_recording_of_all_and_beats_in_time_are_no_gap(
    times: RedisRecordingTimes, clock: ManualClock
) -> None:
    for _ in range(10):
        await times.beat()
        clock.now += 5
    assert await lengths(times) == []


async def test_after_a_restart_there_is_a_gap_as_long_as_it_took(start: Opener, clock: ManualClock) -> None:
    async with start() as first:
        await first.beat()
        clock.now += 2
        await first.end()
    clock.now += 6
    async with start() as second:
        await second.beat()
        assert await second.gaps() == [RecordingGap(START + 2, START + 8, is_loss=False)]


async def test_a_process_that_starts_or_ends_while_another_records_is_no_gap(start: Opener, clock: ManualClock) -> None:
    async with start() as one, start() as two:
        await one.beat()
        clock.now += 5
        await two.beat()
        await one.end()
        clock.now += 5
        await two.beat()
        await one.beat()
        assert await lengths(two) == []


async def test_a_process_that_died_leaves_a_gap_once(start: Opener, clock: ManualClock) -> None:
    async with start() as one:
        await one.beat()
        async with start() as two:
            await two.beat()
        clock.now += 5
        assert await lengths(one) == []
        for _ in range(2):
            await one.beat()
            assert await lengths(one) == [5]


async def test_a_long_silence_is_a_gap(times: RedisRecordingTimes, clock: ManualClock) -> None:
    await times.beat()
    clock.now += 60
    await times.beat()
    assert await lengths(times) == [60]


async def test_lost_turns_are_a_gap(times: RedisRecordingTimes, clock: ManualClock) -> None:
    await times.beat()
    clock.now += 3
    await times.beat(missed_since=clock.now - 2)
    assert await times.gaps() == [RecordingGap(START + 1, START + 3, is_loss=True)]


async def test_the_end_of_a_process_that_never_recorded_is_nothing(
    times: RedisRecordingTimes, clock: ManualClock
) -> None:
    await times.end()
    clock.now += 60
    await times.beat()
    assert await lengths(times) == []


def test_the_first_gap_that_ended_in_time_and_is_long_enough_counts() -> None:
    gaps = [RecordingGap(10, 20, False), RecordingGap(29, 30, True), RecordingGap(35, 37, False)]
    assert gap_after(gaps, 20) == 29
    assert gap_after(gaps, 37) is None
    assert gap_with_room(gaps, since=0, seconds=5, after_loss=1) == 10
    assert gap_with_room(gaps, since=25, seconds=2, after_loss=1) == 29
    assert gap_with_room(gaps, since=25, seconds=2, after_loss=2) == 35
    assert gap_with_room(gaps, since=25, seconds=5, after_loss=5) is None
