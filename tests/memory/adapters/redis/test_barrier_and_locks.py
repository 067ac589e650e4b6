"""Barrier and locks have different hash tags: whoever is between two steps of the one sees the other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest
from redis.asyncio import Redis
from redis_parts import InterruptedClient
from turn_logs import ManualClock

from memory.adapters.redis import log_keys
from memory.adapters.redis.ledger import RedisUserLedger
from memory.adapters.redis.ledger_store import LedgerStore
from memory.adapters.redis.log_client import LogClient
from memory.adapters.redis.owners import RedisOwners
from memory.adapters.redis.write_barrier import RedisWriteBarrier
from memory.errors import Unavailable


@pytest.fixture
async def owners(connected: Redis) -> AsyncIterator[RedisOwners]:
    async with RedisOwners(LogClient(connected)) as opened:
        yield opened


async def test_a_lock_that_is_taken_while_the_barrier_closes_is_given_back(
    connected: Redis, owners: RedisOwners
) -> None:
    clock = ManualClock()
    barrier = RedisWriteBarrier(LogClient(connected), owners, clock=clock)
    async with AsyncExitStack() as closed:
        client = InterruptedClient(
            connected, log_keys.LOCKED_USERS, lambda: closed.enter_async_context(barrier.closed(seconds=10))
        )
        ledger = RedisUserLedger(client, owners, clock=clock, wait_seconds=0.2)
        with pytest.raises(Unavailable):
            async with ledger.write("ann"):
                pytest.fail("nobody may write behind the barrier")
    async with ledger.write("ann"):
        pass


async def test_who_waits_behind_the_barrier_takes_no_lock(connected: Redis, owners: RedisOwners) -> None:
    """Otherwise a crowd of them would keep the barrier from closing."""
    clock, client = ManualClock(), LogClient(connected)
    ledger = RedisUserLedger(client, owners, clock=clock, wait_seconds=10.0)

    async def write(user: str) -> None:
        async with ledger.write(user):
            pass

    async with asyncio.TaskGroup() as group, RedisWriteBarrier(client, owners, clock=clock).closed(seconds=10):
        for number in range(5):
            group.create_task(write(f"user-{number}"))
        for _ in range(100):
            assert await LedgerStore(client).held_locks() == []


@pytest.mark.parametrize("number", [1, 2], ids=["while it is taken", "before it is released"])
async def test_whoever_becomes_alone_remembers_who_holds_a_lock(
    connected: Redis, owners: RedisOwners, number: int
) -> None:
    clock = ManualClock()
    barrier = RedisWriteBarrier(LogClient(connected), owners, clock=clock)
    async with AsyncExitStack() as stack:
        client = InterruptedClient(
            connected,
            log_keys.BARRIER_ALONE,
            lambda: stack.enter_async_context(barrier.alone(seconds=10)),
            number=number,
        )
        ledger = RedisUserLedger(client, owners, clock=clock)
        async with ledger.write("ann") as held:
            held.touch(["m"])
        assert list(await barrier.writers()) == ["ann"]
