"""Connections to what a URL names: with user and password, with TLS, to one server and to a cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

import pytest
from certificates import issued_certificates
from redis_nodes import RedisNodes, own_redis_nodes
from redis_server import RedisServer, own_redis_server

from memory.adapters.redis.connecting import RedisAddress, connected
from memory.adapters.redis.server_check import check_servers
from memory.errors import Unavailable

USER, PASSWORD = "memproxy", "a/password@with:signs"
KEYS = ("a", "b", "c")  # on several slots of a cluster
READING = "return redis.call('GET', KEYS[1])"


Server: TypeAlias = RedisServer | RedisNodes


@pytest.fixture(params=[own_redis_server, own_redis_nodes], ids=["one server", "cluster"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Server]:
    with request.param(tmp_path) as started:
        yield started


def tell_each(server: Server, *commands: Sequence[str]) -> None:
    for one in server.servers if isinstance(server, RedisNodes) else [server]:
        with one.client() as client:
            for command in commands:
                client.execute_command(*command)


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


async def test_a_server_and_a_cluster_are_reached_by_their_url(server: Server) -> None:
    assert await keeps_what_is_written(RedisAddress(server.url))


async def test_user_and_password_are_sent_and_wrong_ones_refused(server: Server) -> None:
    added = ("ACL", "SETUSER", USER, "on", f">{PASSWORD}", "~*", "&*", "+@all")
    tell_each(server, added, ("ACL", "SETUSER", "default", "off"))
    assert await keeps_what_is_written(RedisAddress(server.url, USER, PASSWORD))
    await is_refused(RedisAddress(server.url, USER, "another"))
    await is_refused(RedisAddress(server.url))


async def test_a_password_alone_is_that_of_the_default_user(server: Server) -> None:
    tell_each(server, ("CONFIG", "SET", "requirepass", PASSWORD))
    assert await keeps_what_is_written(RedisAddress(server.url, password=PASSWORD))


@pytest.fixture(params=[own_redis_server, own_redis_nodes], ids=["one server", "cluster"])
def tls_server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Server]:
    """With TLS and nothing else, from its start, and between the nodes as well."""
    folder = tmp_path / "server"
    folder.mkdir()
    with request.param(folder, certificates=issued_certificates(tmp_path / "ours")) as started:
        yield started


async def reason_at_the_start(address: RedisAddress) -> str:
    async with connected(address) as client:
        with pytest.raises(Unavailable) as refused:
            await check_servers(client, survives_power_failure=True)
    return str(refused.value)


async def test_tls_trusts_the_given_authority_only_and_says_what_is_wrong(tls_server: Server, tmp_path: Path) -> None:
    url, others = tls_server.url, issued_certificates(tmp_path / "others")
    assert await keeps_what_is_written(RedisAddress(url, certificate_authority=str(tmp_path / "ours/authority.pem")))
    for authority in (str(others.authority), ""):
        reason = await reason_at_the_start(RedisAddress(url, certificate_authority=authority))
        assert "its certificate is refused (" in reason
        assert "memory.redis.certificate_authority" in reason
    assert "needs rediss:// in redis_url" in await reason_at_the_start(RedisAddress(url.replace("rediss", "redis", 1)))
