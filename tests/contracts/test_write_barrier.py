"""What keeps writers of memories out for a moment, in all processes. On SQLite."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from turn_logs import ManualClock

from memory.adapters.sqlite.database import SqliteDatabase
from memory.adapters.sqlite.ledger import SqliteUserLedger
from memory.adapters.sqlite.write_barrier import SqliteWriteBarrier
from memory.errors import Conflict, Unavailable
from memory.ports import UserLedger
from memory.ports.erasures import WriteBarrier


@dataclass(frozen=True)
class World:
    clock: ManualClock
    ledger: UserLedger
    barrier: WriteBarrier


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    clock = ManualClock()
    async with SqliteDatabase(tmp_path / "turns.sqlite") as database:
        ledger = SqliteUserLedger(database, clock=clock, lock_seconds=30.0, wait_seconds=0.2)
        yield World(clock, ledger, SqliteWriteBarrier(database, clock=clock))


async def written(world: World, user: str, memory_id: str) -> None:
    async with world.ledger.write(user) as held:
        held.touch([memory_id])


async def test_nobody_gets_a_lock_behind_the_barrier_and_everybody_does_after_it(world: World) -> None:
    async with world.barrier.closed(seconds=10):
        with pytest.raises(Unavailable):
            await written(world, "ann", "m-1")
    await written(world, "ann", "m-1")


async def test_a_barrier_whose_owner_died_opens_by_itself(world: World) -> None:
    barrier = world.barrier.closed(seconds=10)
    await barrier.__aenter__()
    world.clock.now += 11
    await written(world, "ann", "m-1")
    await barrier.__aexit__(None, None, None)


async def test_it_closes_once_the_locks_that_are_held_are_released(world: World) -> None:
    order: list[str] = []

    async def close() -> None:
        async with world.barrier.closed(seconds=10):
            order.append("closed")

    async with asyncio.TaskGroup() as group, world.ledger.write("ann"):
        group.create_task(close())
        await asyncio.sleep(0.05)
        order.append("released")
    assert order == ["released", "closed"]


async def test_who_writes_while_one_is_alone_is_remembered_and_forgotten_after_it(world: World) -> None:
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


async def test_what_a_dead_process_was_at_may_be_begun_at_once(tmp_path: Path) -> None:
    clock = ManualClock()
    async with SqliteDatabase(tmp_path / "turns.sqlite") as database:
        async with SqliteDatabase(tmp_path / "turns.sqlite") as mortal:
            await SqliteWriteBarrier(mortal, clock=clock).alone(seconds=3_600).__aenter__()
        async with SqliteWriteBarrier(database, clock=clock).alone(seconds=10):
            pass
