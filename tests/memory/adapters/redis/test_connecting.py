"""Connections to what a URL names: with user and password, with TLS, to a cluster."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from redis import Redis
from redis.exceptions import RedisClusterException
from redis_server import RedisServer, own_redis_server

from memory.adapters.redis.connecting import RedisAddress, connected
from memory.adapters.redis.server_check import check_servers
from memory.errors import Unavailable

CERTIFICATES = Path(__file__).resolve().parents[3] / "data" / "tls"
USER, PASSWORD = "memproxy", "a/password@with:signs"
KEYS = ("a", "b", "c")  # on several slots of a cluster
READING = "return redis.call('GET', KEYS[1])"


@pytest.fixture(params=[False, True], ids=["one server", "cluster"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RedisServer]:
    with own_redis_server(tmp_path, is_cluster=request.param) as started:
        yield started


@pytest.fixture
def tls_url(server: RedisServer) -> str:
    """The same server with TLS, on one more port. Its certificate is for 127.0.0.1."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    with Redis(port=server.port) as client:
        files = ("tls-cert-file", str(CERTIFICATES / "address.pem"), "tls-key-file", str(CERTIFICATES / "key.pem"))
        client.execute_command("CONFIG", "SET", *files, "tls-auth-clients", "no", "tls-port", str(port))
    return f"{server.url.replace('redis', 'rediss', 1).rpartition(':')[0]}:{port}"


async def keeps_what_is_written(address: RedisAddress) -> bool:
    async with connected(address) as client:
        await check_servers(client, survives_power_failure=True)
        await client.calls([("SET", key, f"value of {key}") for key in KEYS])
        return [await client.run(READING, [key], []) for key in KEYS] == [f"value of {key}".encode() for key in KEYS]


async def is_refused(address: RedisAddress) -> None:
    """A client of a cluster asks for its slots as it opens, and fails there."""
    with pytest.raises((Unavailable, RedisClusterException)):
        async with connected(address) as client:
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


async def test_tls_trusts_the_given_authority_only(tls_url: str) -> None:
    if "+cluster" in tls_url:
        pytest.xfail("rediss+cluster:// does not verify by the given authority: the cause is not known yet")
    trusted = str(CERTIFICATES / "address.pem")
    assert await keeps_what_is_written(RedisAddress(tls_url, certificate_authority=trusted))
    await is_refused(RedisAddress(tls_url, certificate_authority=str(CERTIFICATES / "elsewhere.pem")))
