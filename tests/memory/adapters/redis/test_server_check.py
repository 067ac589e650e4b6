"""A server that would lose what it acknowledged is refused at the start, and one that is not what the URL says."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import structlog
from redis.asyncio import Redis
from redis.asyncio.cluster import RedisCluster
from redis_nodes import redis_nodes
from redis_server import RedisServer, free_port, own_redis_server, valkey_server

from memory.adapters.redis.connecting import RedisAddress
from memory.adapters.redis.connecting import connected as connected_to
from memory.adapters.redis.log_client import LogClient
from memory.adapters.redis.server_check import check_servers, check_version
from memory.errors import BadSetting


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    with own_redis_server(tmp_path) as started:
        yield started


@pytest.fixture
async def connected(server: RedisServer) -> AsyncIterator[Redis]:
    async with Redis(port=server.port) as client:
        yield client


async def check(connected: Redis, *, survives_power_failure: bool = True) -> None:
    await check_servers(LogClient(connected), survives_power_failure=survives_power_failure)


async def test_a_server_that_keeps_every_write_is_accepted_and_a_cluster_as_well(connected: Redis) -> None:
    await check(connected)
    async with RedisCluster("127.0.0.1", redis_nodes().port) as cluster:
        await check_servers(LogClient(cluster), survives_power_failure=True)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("appendonly", "no"),
        ("appendfsync", "everysec"),
        ("appendfsync", "no"),
        ("no-appendfsync-on-rewrite", "yes"),
        ("maxmemory-policy", "allkeys-lru"),
        ("maxmemory-policy", "volatile-ttl"),
    ],
)
async def test_one_that_loses_turns_is_refused_and_told_why(connected: Redis, name: str, value: str) -> None:
    await connected.config_set(name, value)
    with pytest.raises(BadSetting, match=f"{name} must be .*and is {value}"):
        await check(connected)


async def test_the_last_second_may_be_lost_with_the_machine_where_that_is_wanted(connected: Redis) -> None:
    await connected.config_set("appendfsync", "everysec")
    await check(connected, survives_power_failure=False)
    await connected.config_set("appendfsync", "no")
    with pytest.raises(BadSetting, match="always or everysec"):
        await check(connected, survives_power_failure=False)


async def test_one_that_does_not_tell_its_settings_is_accepted_with_one_warning(
    connected: Redis, server: RedisServer
) -> None:
    await connected.execute_command("ACL", "SETUSER", "hosted", "on", ">word", "~*", "+@all", "-config")  # type: ignore[no-untyped-call]
    async with Redis(port=server.port, username="hosted", password="word") as hosted:
        with structlog.testing.capture_logs() as logs:
            await check(hosted)
    assert [one["event"] for one in logs] == ["redis.not_checked"]
    assert (logs[0]["appendonly"], logs[0]["appendfsync"]) == ("yes", "always")


async def advice(url: str) -> str:
    """What a start with this setting ends with."""
    async with connected_to(RedisAddress(url)) as client:
        with pytest.raises(BadSetting) as refused:
            await check_servers(client, survives_power_failure=True)
    return str(refused.value)


@pytest.mark.parametrize("is_valkey", [False, True], ids=["redis", "valkey"])
async def test_a_single_server_that_is_taken_for_a_cluster_and_a_missing_database_are_told(
    server: RedisServer, *, is_valkey: bool
) -> None:
    url = valkey_server().url if is_valkey else server.url
    assert "leave out +cluster, as in redis://" in await advice(url.replace("://", "+cluster://", 1))
    assert "no database of that number" in await advice(f"{url}/4711")


@pytest.mark.parametrize("is_valkey", [False, True], ids=["redis", "valkey"])
async def test_a_node_of_a_cluster_that_is_taken_for_a_single_server_is_told(
    tmp_path: Path, *, is_valkey: bool
) -> None:
    program = valkey_server().program if is_valkey else "redis-server"
    node = RedisServer(free_port(), tmp_path, ("--cluster-enabled", "yes"), program)
    node.start()
    try:
        assert "write redis+cluster://HOST:PORT" in await advice(node.url)
        other = await advice(f"{node.url}/3")  # refused before anything else
        assert ("leave it out (a cluster has 0 only)" if is_valkey else "write redis+cluster://HOST:PORT") in other
    finally:
        node.kill()


@pytest.mark.parametrize(
    ("version", "is_refused"),
    [("6.2.14", True), ("7.0.15", False), ("7.2.4", False), ("8.1.0", False), ("10.0", False)],
)
def test_versions_before_7_are_refused(version: str, *, is_refused: bool) -> None:
    info = {"redis_version": version}
    if is_refused:
        with pytest.raises(BadSetting, match=version):
            check_version(info)
    else:
        check_version(info)
