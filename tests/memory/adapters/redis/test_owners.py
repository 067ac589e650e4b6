"""Which processes are alive: the dead are found soon, and nobody is dead because the server was away."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

import pytest
from redis.asyncio import Redis
from redis_nodes import RedisNodes, own_redis_nodes
from redis_server import RedisServer, own_redis_server, redis_server
from slow_relay import SlowRelay, running_relay

from memory.adapters.redis import log_keys
from memory.adapters.redis import owners as owners_module
from memory.adapters.redis.connecting import RedisAddress, connected
from memory.adapters.redis.log_client import LogClient
from memory.adapters.redis.owners import RedisOwners
from memory.errors import Unavailable

PROCESSES = 4  # of which one is looked at


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    with own_redis_server(tmp_path) as started:
        yield started


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[RedisNodes]:
    with own_redis_nodes(tmp_path) as started:
        yield started


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in (
        ("ALIVE_SECONDS", 0.6),
        ("BEAT_SECONDS", 0.1),
        ("RETURN_SECONDS", 1.5),
        ("SLOW_SECONDS", 0.3),
    ):
        monkeypatch.setattr(owners_module, name, seconds)


async def test_nobody_is_dead_because_the_server_was_away(server: RedisServer) -> None:
    async with (
        connected(RedisAddress(server.url)) as client,
        connected(RedisAddress(server.url)) as another,
        RedisOwners(client) as one,
        RedisOwners(another) as two,
    ):
        await two.note("ann")
        server.kill()
        await asyncio.sleep(2.0)  # longer than a key lives
        await asyncio.to_thread(server.start)
        async with asyncio.timeout(20):
            while await client.call("EXISTS", log_keys.heartbeat(two.name)) == 0:
                assert await one.find_dead() == []
        await asyncio.sleep(1.0)
        assert await one.find_dead() == []
        assert await one.find_living() == [two.name]


async def test_nobody_is_dead_because_a_look_took_longer_than_a_heartbeat_lives(server: RedisServer) -> None:
    """It began before anybody knew that the server is slow, and the other's heartbeat is still on its way."""
    with running_relay(server.port) as to_one, running_relay(server.port) as to_two:
        async with (
            connected(RedisAddress(f"redis://127.0.0.1:{to_one.port}")) as client,
            connected(RedisAddress(f"redis://127.0.0.1:{to_two.port}")) as another,
            RedisOwners(client) as one,
            RedisOwners(another) as two,
        ):
            assert await one.find_living() == [two.name]
            for relay in (to_one, to_two):
                relay.stall()
            async with asyncio.TaskGroup() as looks:
                finding = looks.create_task(one.find_dead())
                judging = looks.create_task(one.is_dead(two.name))
                await asyncio.sleep(1.2)  # twice as long as a key lives
                to_one.resume()
            assert (finding.result(), judging.result()) == ([], False)
            to_two.resume()


async def test_nobody_is_dead_because_a_node_of_a_cluster_was_away(nodes: RedisNodes) -> None:
    """Its own heartbeats may be on another node."""
    async with AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(connected(RedisAddress(nodes.url))) for _ in range(PROCESSES)]
        one, *others = [await stack.enter_async_context(RedisOwners(client)) for client in clients]
        own = nodes.master_of(log_keys.heartbeat(one.name))
        away = [nodes.master_of(log_keys.heartbeat(other.name)) for other in others]
        server = next((node for node in away if node is not own), own)
        server.kill()
        await asyncio.sleep(2.0)  # longer than a key lives
        await asyncio.to_thread(server.start)
        ends_at = asyncio.get_running_loop().time() + 3.0
        while asyncio.get_running_loop().time() < ends_at:
            with suppress(Unavailable):  # nobody answers
                assert await one.find_dead() == []
                assert not any([await one.is_dead(other.name) for other in others])
            await asyncio.sleep(0.02)
        assert await one.find_living() == sorted(other.name for other in others)


async def test_whoever_ends_without_a_word_is_found_dead_before_long() -> None:
    redis_server().empty()
    async with Redis(port=redis_server().port) as connection, RedisOwners(LogClient(connection)) as one:
        dying = RedisOwners(LogClient(connection))
        await dying.__aenter__()
        assert await one.find_dead() == []
        assert dying._beat_task is not None
        dying._beat_task.cancel()
        async with asyncio.timeout(5):
            while await one.find_dead() != [dying.name]:
                await asyncio.sleep(0.02)


@asynccontextmanager
async def behind_a_relay(server: RedisServer) -> AsyncIterator[tuple[SlowRelay, RedisOwners, LogClient]]:
    """An owner who reaches the server through the relay, and a client who does without."""
    with running_relay(server.port) as relay:
        async with (
            connected(RedisAddress(f"redis://127.0.0.1:{relay.port}")) as another,
            connected(RedisAddress(server.url)) as client,
            RedisOwners(another) as living,
        ):
            yield relay, living, client


async def test_whoever_opens_right_after_an_outage_takes_no_living_process_for_dead(
    server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one's heartbeat has expired, and the next is still on its way."""
    monkeypatch.setattr(owners_module, "RETURN_SECONDS", 60.0)
    async with behind_a_relay(server) as (relay, living, client):
        relay.stall()
        server.kill()
        await asyncio.sleep(1.2)  # twice as long as a key lives
        await asyncio.to_thread(server.start)
        async with RedisOwners(client) as opened:
            assert await opened.find_dead() == []
            assert not await opened.is_dead(living.name)
            relay.resume()
            async with asyncio.timeout(20):
                while await opened.find_living() != [living.name]:
                    await asyncio.sleep(0.02)


async def test_a_heartbeat_that_is_about_to_expire_is_late_as_well(
    server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owners_module, "RETURN_SECONDS", 60.0)
    monkeypatch.setattr(owners_module, "ALIVE_SECONDS", 3.0)
    monkeypatch.setattr(owners_module, "SLOW_SECONDS", 1.5)
    async with behind_a_relay(server) as (relay, living, client):
        relay.stall()
        beat = log_keys.heartbeat(living.name)
        async with asyncio.timeout(20):
            while await client.call("PTTL", beat) > 1_000:
                await asyncio.sleep(0.02)
            async with RedisOwners(client) as opened:
                while await client.call("EXISTS", beat):
                    await asyncio.sleep(0.02)
                assert await opened.find_dead() == []
                assert not await opened.is_dead(living.name)
        relay.resume()


async def test_whoever_was_dead_before_another_opened_is_found_a_little_later(server: RedisServer) -> None:
    async with connected(RedisAddress(server.url)) as client:
        dead = RedisOwners(client)
        await dead.__aenter__()
        assert dead._beat_task is not None
        dead._beat_task.cancel()
        await asyncio.sleep(1.2)  # twice as long as a key lives
        async with RedisOwners(client) as opened, asyncio.timeout(20):
            while not await opened.is_dead(dead.name):
                await asyncio.sleep(0.02)
            assert await opened.find_dead() == [dead.name]


async def test_whoever_ended_in_order_is_dead_at_once_until_it_is_forgotten(
    server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also for those that do not yet trust what they miss."""
    monkeypatch.setattr(owners_module, "RETURN_SECONDS", 60.0)
    async with connected(RedisAddress(server.url)) as client:
        async with RedisOwners(client) as ended:
            await ended.note("ann")
        async with RedisOwners(client) as silent:
            await client.call("DEL", log_keys.heartbeat(silent.name))
            async with RedisOwners(client) as opened:
                assert await opened.find_dead() == [ended.name]
                assert await opened.is_dead(ended.name)
                await opened.forget(ended.name)
                assert await opened.find_dead() == []
        assert await client.call("SMEMBERS", log_keys.LEFT_OWNERS) == {silent.name.encode(), opened.name.encode()}
