"""Commits by comparison: nothing is lost, nothing happens twice, and others learn of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from redis.asyncio import Redis
from redis_server import redis_server

from memory.adapters.redis import user_queue
from memory.adapters.redis.log_client import LogClient
from memory.adapters.redis.log_keys import UserKeys
from memory.adapters.redis.queue_replica import QueueReplica
from memory.adapters.redis.queue_store import COMMIT_IF_UNCHANGED, Planned, QueueStore
from memory.adapters.redis.queue_values import UserQueue, WaitingTurn


@pytest.fixture
async def client() -> AsyncIterator[LogClient]:
    server = redis_server()
    server.empty()
    async with Redis(port=server.port) as connected:
        yield LogClient(connected)


async def add(store: QueueStore, seq: int, user: str = "ann") -> None:
    turn = WaitingTurn(seq, f"t{seq}", "s1", "", opened_at=1.0, stage="ready", size=9)
    await store.change(user, lambda queue, _: Planned(None, user_queue.add(queue, turn)))


async def end_all(store: QueueStore, user: str = "ann") -> None:
    def ending(queue: UserQueue, _: object) -> Planned[None]:
        return Planned(None, user_queue.without(queue, {turn.id: "learnt" for turn in queue.turns}))

    await store.change(user, ending)


async def test_concurrent_changes_of_one_user_are_all_kept(client: LogClient) -> None:
    stores = [QueueStore(client) for _ in range(4)]
    await asyncio.gather(*(add(stores[seq % 4], seq) for seq in range(24)))
    assert [turn.seq for turn in (await stores[0].read("ann")).turns] == list(range(24))


async def test_a_commit_that_is_sent_again_is_done_once(client: LogClient) -> None:
    keys = UserKeys("ann")
    arguments: list[str | bytes | int | float] = [b"", "first", 4, "ZINCRBY", keys.turns, 1, "t1"]
    for _ in range(2):
        assert await client.run(COMMIT_IF_UNCHANGED, [keys.queue, keys.turns], arguments) == 1
    assert float(await client.call("ZSCORE", keys.turns, "t1")) == 1.0
    other = [b"", "second", *arguments[2:]]
    assert await client.run(COMMIT_IF_UNCHANGED, [keys.queue, keys.turns], other) == 0


async def test_a_replica_sees_what_was_complete_before_it_looked(client: LogClient) -> None:
    store, replica = QueueStore(client), QueueReplica(client, QueueStore(client))
    assert list(await replica.refreshed()) == []
    await add(store, 1)
    await add(store, 2, user="bob")
    assert {summary.queue.user_id for summary in await replica.refreshed()} == {"ann", "bob"}
    await end_all(store)
    assert {summary.queue.user_id for summary in await replica.refreshed()} == {"bob"}


async def test_a_replica_notices_a_server_that_lost_everything(client: LogClient) -> None:
    store, replica = QueueStore(client), QueueReplica(client, QueueStore(client))
    for seq in range(5):
        await add(store, seq)
    assert len(await replica.refreshed()) == 1
    redis_server().empty()
    assert list(await replica.refreshed()) == []
    await add(store, 1, user="bob")
    assert [summary.queue.user_id for summary in await replica.refreshed()] == ["bob"]
