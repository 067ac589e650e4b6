"""What keeps writers of memories out for a moment, in all processes. On every adapter."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from turn_logs import Deployment, Process

from memory.errors import Conflict, Unavailable


@pytest.fixture
async def world(deployment: Deployment) -> AsyncIterator[Process]:
    async with deployment.start() as process:
        yield process


async def written(world: Process, user: str, memory_id: str) -> None:
    async with world.ledger.write(user) as held:
        held.touch([memory_id])


async def test_nobody_gets_a_lock_behind_the_barrier_and_everybody_does_after_it(world: Process) -> None:
    async with world.barrier.closed(seconds=10):
        with pytest.raises(Unavailable):
            await written(world, "ann", "m-1")
    await written(world, "ann", "m-1")


async def test_a_barrier_whose_owner_died_opens_by_itself(world: Process, deployment: Deployment) -> None:
    barrier = world.barrier.closed(seconds=10)
    await barrier.__aenter__()
    deployment.clock.now += 11
    await written(world, "ann", "m-1")
    await barrier.__aexit__(None, None, None)


async def test_it_closes_once_the_locks_that_are_held_are_released(world: Process) -> None:
    order: list[str] = []

    async def close() -> None:
        async with world.barrier.closed(seconds=10):
            order.append("closed")

    async with asyncio.TaskGroup() as group, world.ledger.write("ann"):
        group.create_task(close())
        await asyncio.sleep(0.05)
        order.append("released")
    assert order == ["released", "closed"]


async def test_who_writes_while_one_is_alone_is_remembered_and_forgotten_after_it(world: Process) -> None:
    await written(world, "before", "m")
    async with world.ledger.write("during"), world.barrier.alone(seconds=10):
        await written(world, "later", "m")
        assert list(await world.barrier.writers()) == ["during", "later"]
        with pytest.raises(Conflict):
            async with world.barrier.alone(seconds=10):
                pass
    assert list(await world.barrier.writers()) == []
    async with world.barrier.alone(seconds=10):
        assert list(await world.barrier.writers()) == []


async def test_what_a_dead_process_was_at_may_be_begun_at_once(deployment: Deployment) -> None:
    async with deployment.start() as process:
        async with deployment.start() as mortal:
            await mortal.barrier.alone(seconds=3_600).__aenter__()
        async with process.barrier.alone(seconds=10):
            pass


async def test_a_crowd_that_waits_does_not_keep_the_barrier_from_closing(deployment: Deployment) -> None:
    """Nor does anybody of it get a lock behind it."""
    is_closed, writing = asyncio.Event(), list[str]()

    async def write(process: Process, user: str) -> None:
        async with process.ledger.write(user) as held:
            assert not is_closed.is_set()
            held.touch(["m"])
            writing.append(user)

    async with deployment.start() as one, deployment.start() as two, asyncio.TaskGroup() as group:
        for number in range(20):
            group.create_task(write((one, two)[number % 2], f"user-{number}"))
            await asyncio.sleep(0.002)
        async with one.barrier.closed(seconds=10):
            is_closed.set()
            await asyncio.sleep(0.05)
            is_closed.clear()
    assert len(writing) == 20
