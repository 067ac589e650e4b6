"""When nobody recorded: seen by what a conversation that nobody knows may have begun in. On every adapter."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator

import pytest
from tellers import Teller
from turn_logs import Deployment, Process


@pytest.fixture
async def process(deployment: Deployment) -> AsyncIterator[Process]:
    async with deployment.start() as started:
        yield started


NUMBERS = itertools.count()


async def has_gap(process: Process) -> bool:
    """Whether a conversation that a new user continues is filled in from its beginning."""
    tell = Teller(process, user=f"user {next(NUMBERS)}")
    await tell("ab")
    return len(await tell.record()) == 2


async def test_the_first_recording_of_all_is_no_gap(deployment: Deployment, process: Process) -> None:
    await process.log.times.beat()
    assert not await has_gap(process)


async def test_beats_in_time_are_no_gap(deployment: Deployment, process: Process) -> None:
    for _ in range(10):
        await process.log.times.beat()
        deployment.clock.now += 5
    assert not await has_gap(process)


@pytest.mark.parametrize(("seconds", "is_gap"), [(0.5, False), (4.5, False), (6.0, True)])
async def test_after_a_restart_there_is_a_gap_if_it_took_long(
    deployment: Deployment, process: Process, seconds: float, *, is_gap: bool
) -> None:
    await process.log.times.beat()
    await process.log.times.end()
    deployment.clock.now += seconds
    assert not await has_gap(process)  # it has not ended
    async with deployment.start() as second:
        await second.log.times.beat()
        assert await has_gap(second) is is_gap


async def test_a_process_that_starts_or_ends_while_another_records_is_no_gap(deployment: Deployment) -> None:
    async with deployment.start() as one, deployment.start() as two:
        await one.log.times.beat()
        deployment.clock.now += 5
        await two.log.times.beat()
        await one.log.times.end()
        deployment.clock.now += 5
        await two.log.times.beat()
        await one.log.times.beat()
        assert not await has_gap(two)


async def test_a_process_that_died_leaves_a_gap(deployment: Deployment) -> None:
    async with deployment.start() as one:
        await one.log.times.beat()
        async with deployment.start() as two:
            await two.log.times.beat()
        deployment.clock.now += 5
        assert not await has_gap(one)
        await one.log.times.beat()
        assert await has_gap(one)


async def test_a_long_silence_is_a_gap(deployment: Deployment, process: Process) -> None:
    await process.log.times.beat()
    deployment.clock.now += 60
    await process.log.times.beat()
    assert await has_gap(process)


async def test_lost_turns_are_a_gap(deployment: Deployment, process: Process) -> None:
    await process.log.times.beat()
    deployment.clock.now += 3
    await process.log.times.beat(missed_since=deployment.clock.now - 2)
    assert await has_gap(process)


async def test_the_end_of_a_process_that_never_recorded_is_nothing(deployment: Deployment, process: Process) -> None:
    await process.log.times.end()
    deployment.clock.now += 60
    await process.log.times.beat()
    assert not await has_gap(process)
