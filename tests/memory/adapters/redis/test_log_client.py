"""Calls of a Redis server: what a caller sees when it is cancelled, and when the server dies."""

from __future__ import annotations

import asyncio
import gc
import signal
from contextlib import aclosing
from pathlib import Path

import pytest
from redis.asyncio import Redis
from redis.asyncio.cluster import RedisCluster
from redis.crc import key_slot
from redis_nodes import redis_nodes
from redis_server import own_redis_server, redis_server

from memory.adapters.redis import log_client
from memory.adapters.redis.log_client import LogClient, to_its_end
from memory.errors import Unavailable


async def test_a_cancelled_call_ends_whatever_it_was_doing(connected: Redis) -> None:
    """Also while the library connects, which it does for each call here."""
    async with LogClient(connected) as client:
        for moment in range(40):
            await connected.connection_pool.disconnect()
            await cancelled_after(moment * 0.0001, client)


async def cancelled_after(seconds: float, client: LogClient) -> None:
    async def ask_for_long() -> None:
        await client.call("GET", "a")
        await asyncio.sleep(60)

    asking = asyncio.ensure_future(ask_for_long())  # noqa: TID251  # the task is what gets cancelled
    await asyncio.sleep(seconds)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(asking, timeout=5)


async def test_a_client_that_is_closed_right_after_a_cancelled_call_leaves_no_connection_open() -> None:
    with redis_server().client() as looking:
        open_before = len(looking.client_list())
        for moment in range(40):
            async with aclosing(Redis(port=redis_server().port)) as closed, LogClient(closed) as client:
                await cancelled_after(moment * 0.0001, client)
            assert len(looking.client_list()) == open_before, f"cancelled after {moment * 0.1:.1f} ms"


async def test_a_cancelled_caller_does_not_wait_for_a_server_that_hangs(tmp_path: Path) -> None:
    """A chat has a deadline."""
    with own_redis_server(tmp_path) as server:
        async with Redis(port=server.port) as connected:
            client = LogClient(connected)
            await client.call("SET", "a", 1)
            assert server.process is not None
            server.process.send_signal(signal.SIGSTOP)
            try:
                began = asyncio.get_running_loop().time()
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.1):
                        await client.call("GET", "a")
                assert asyncio.get_running_loop().time() - began < 1
            finally:
                server.process.send_signal(signal.SIGCONT)
            assert await client.call("GET", "a") == b"1"


@pytest.mark.parametrize("waits_for_its_end", [False, True])
async def test_a_call_that_fails_after_its_caller_is_gone_is_not_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, waits_for_its_end: bool
) -> None:
    """While a server is slow there is one for each chat, and of each the traceback of all layers would be logged."""
    reported: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
    with own_redis_server(tmp_path) as server:
        async with Redis(port=server.port) as connected, LogClient(connected) as client:
            await client.call("SET", "a", 1)
            monkeypatch.setattr(log_client, "CALL_SECONDS_MAX", 0.2)
            with server.client() as blocking:
                blocking.client_pause(1_000)
            asking = client.call("GET", "a")
            asking = to_its_end(asking) if waits_for_its_end else asking
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await asking
        gc.collect()
    assert reported == []


async def test_a_key_that_no_node_serves_is_an_outage() -> None:
    """So it is while slots have no node: whoever calls catches `Unavailable`, anything else would end the part."""
    async with RedisCluster("127.0.0.1", redis_nodes().port) as connected, LogClient(connected) as client:
        await client.call("SET", "a", 1)
        del connected.nodes_manager.slots_cache[key_slot(b"a")]
        with pytest.raises(Unavailable):
            client.node_of("a")
        with pytest.raises(Unavailable):
            await client.call("GET", "a")


async def test_what_is_appended_survives_the_death_of_the_server_and_calls_resume_by_themselves(
    connected: Redis,
) -> None:
    client, server = LogClient(connected), redis_server()
    await client.call("SET", "kept", "words of a user")
    server.kill()
    try:
        with pytest.raises(Unavailable) as refused:
            await client.call("SET", "words of a user", "words of a user")
    finally:
        server.start()
    assert "words" not in str(refused.value)
    assert await client.call("GET", "kept") == b"words of a user"
