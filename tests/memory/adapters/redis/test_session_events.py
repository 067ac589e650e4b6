"""What happens to sessions is found by those who look for summaries and removed words, in every order of events."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from redis.asyncio import Redis
from redis_server import redis_server
from summarised_sessions import IDLE, LATER, due, sessions_due, summarised, talk
from turn_logs import START, Deployment, Process, lease_at, redis_deployment, tell

from memory.adapters.redis.log_client import LogClient
from memory.adapters.redis.log_keys import UserKeys
from memory.adapters.redis.queue_store import Planned, QueueStore
from memory.adapters.redis.removed_words import RedisRemovedWords
from memory.adapters.redis.session_events import Changed, Rests, SessionEvent


@pytest.fixture
def deployment(tmp_path: Path) -> Deployment:
    return redis_deployment(tmp_path)


@pytest.fixture
async def process(deployment: Deployment) -> AsyncIterator[Process]:
    async with deployment.start() as one:
        yield one


@pytest.fixture
async def client(process: Process) -> AsyncIterator[LogClient]:
    async with Redis(port=redis_server().port) as connected:
        yield LogClient(connected)


async def happened(client: LogClient, *events: SessionEvent, removed: tuple[str, ...] = ()) -> None:
    await QueueStore(client).change("ann", lambda queue, _: Planned(None, sessions=events, removed=removed))


async def test_a_session_that_was_held_back_is_due_as_soon_as_its_last_window_is_given_up(process: Process) -> None:
    await tell(process.log, "t1")
    lease = await lease_at(process.log, START + 1)
    assert lease is not None
    assert await due(process) == []  # from here on nobody looks at it for a while
    await process.log.move_to_dead_letters(lease, now=START, reason="a test")
    assert await sessions_due(process) == [("ann", "s1")]


async def test_who_is_held_back_is_looked_at_again_even_if_nobody_says_so(process: Process, client: LogClient) -> None:
    await tell(process.log, "t1")
    assert await due(process) == []
    await client.call("HSET", UserKeys("ann").queue, "q", b"")
    assert await due(process, now=LATER + 29) == []
    assert await sessions_due(process, now=LATER + 31) == [("ann", "s1")]


async def test_a_session_that_changes_again_and_again_waits_until_it_rests(process: Process, client: LogClient) -> None:
    await talk(process, "t1")
    await summarised(process, "t1")
    await happened(client, Changed("s1"))
    assert await sessions_due(process) == [("ann", "s1")]
    await happened(client, Changed("s1"), Rests("s1", LATER))
    assert await due(process) == []
    assert await sessions_due(process, now=LATER + IDLE) == [("ann", "s1")]


async def test_a_session_whose_turns_are_all_gone_is_not_due(process: Process, client: LogClient) -> None:
    await talk(process, "t1")
    await talk(process, "t2", session="s2")
    await client.call("DEL", UserKeys("ann").session("s1"))
    assert await sessions_due(process) == [("ann", "s2")]
    assert await client.call("HLEN", UserKeys("ann").due_summaries) == 2


async def test_nobody_looks_for_an_erased_user_again(process: Process, client: LogClient) -> None:
    await talk(process, "t1")
    await summarised(process, "t1")
    await happened(client, Changed("s1"), removed=("t1",))
    await process.summaries.erase("ann")
    async with process.ledger.write("ann") as held:
        await held.end_life()
    assert await due(process) == []
    assert await process.summaries.withdrawn(limit=9) == []
    assert await RedisRemovedWords(client).next_user() is None
    assert await client.call("ZCARD", "memproxy:{removed_words}:members") == 0


async def test_removed_words_are_named_until_they_are_settled(process: Process, client: LogClient) -> None:
    words = RedisRemovedWords(client)
    assert await words.next_user() is None
    await happened(client, removed=("t1", "t2"))
    assert await words.next_user() == "ann"
    assert await words.next_user(without=["ann"]) is None
    assert sorted(await words.turn_ids("ann", limit=9)) == ["t1", "t2"]
    assert len(await words.turn_ids("ann", limit=1)) == 1
    await words.settle("ann", ["t1", "t2"])
    assert await words.turn_ids("ann", limit=9) == []
    assert await words.next_user() is None
