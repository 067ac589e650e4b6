"""Connections to what a URL names: with user and password, to one server and to a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from redis import Redis
from redis_server import RedisServer, own_redis_server

from memory.adapters.redis.connecting import RedisAddress, connected
from memory.adapters.redis.server_check import check_servers
from memory.errors import Unavailable

USER, PASSWORD = "memproxy", "a/password@with:signs"
KEYS = ("a", "b", "c")  # on several slots of a cluster
READING = "return redis.call('GET', KEYS[1])"


@pytest.fixture(params=[False, True], ids=["one server", "cluster"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RedisServer]:
    with own_redis_server(tmp_path, is_cluster=request.param) as started:
        yield started


async def keeps_what_is_written(address: RedisAddress) -> bool:
    async with connected(address) as client:
        await check_servers(client, survives_power_failure=True)
        await client.calls([("SET", key, f"value of {key}") for key in KEYS])
        return [await client.run(READING, [key], []) for key in KEYS] == [f"value of {key}".encode() for key in KEYS]


async def is_refused(address: RedisAddress) -> None:
    """The call fails, as `Unavailable`, and nothing before it."""
    async with connected(address) as client:
        with pytest.raises(Unavailable):
            await client.call("GET", KEYS[0])


async def test_a_server_and_a_cluster_are_reached_by_their_url(server: RedisServer) -> None:
    assert await keeps_what_is_written(RedisAddress(server.url))


async def test_user_and_password_are_sent_and_wrong_ones_refused(server: RedisServer) -> None:
    with Redis(port=server.port) as client:
        client.execute_command("ACL", "SETUSER", USER, "on", f">{PASSWORD}", "~*", "&*", "+@all")
        client.execute_command("ACL", "SETUSER", "default", "off")
    assert await keeps_what_is_written(RedisAddress(server.url, USER, PASSWORD))
    await is_refused(RedisAddress(server.url, USER, "another"))
    await is_refused(RedisAddress(server.url))


async def test_a_password_alone_is_that_of_the_default_user(server: RedisServer) -> None:
    with Redis(port=server.port) as client:
        client.config_set("requirepass", PASSWORD)
    assert await keeps_what_is_written(RedisAddress(server.url, password=PASSWORD))
