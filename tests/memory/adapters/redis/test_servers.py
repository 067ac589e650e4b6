"""Servers are reached as their URL says, and refused if they would lose what they acknowledge; what becomes of a call
whose caller is cancelled, or whose server dies.
"""

from __future__ import annotations

import asyncio
import gc
import signal
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import TypeAlias

import pytest
import structlog
from certificates import issued_certificates
from redis.asyncio import Redis
from redis.asyncio.cluster import RedisCluster
from redis.crc import key_slot
from redis_nodes import RedisNodes, own_redis_nodes, redis_nodes
from redis_server import RedisServer, own_redis_server, redis_server, valkey_server
from served_app import free_port

from memory.adapters.redis import log_client
from memory.adapters.redis.connecting import RedisAddress
from memory.adapters.redis.connecting import connected as connected_to
from memory.adapters.redis.log_client import LogClient, to_its_end
from memory.adapters.redis.server_check import check_servers, check_version
from memory.errors import BadSetting, Unavailable

pytestmark = pytest.mark.full("what the adapter of Redis alone has; the contracts run there, too")

USER, PASSWORD = "memproxy", "a/password@with:signs"
HANG_SECONDS = 30.0
KEYS = ("a", "b", "c")  # on several slots of a cluster
READING = "return redis.call('GET', KEYS[1])"
REDIS_AND_VALKEY = [False, pytest.param(True, marks=pytest.mark.soak("a variant of what runs on Redis"))]
Server: TypeAlias = RedisServer | RedisNodes


@pytest.fixture(params=[own_redis_server, own_redis_nodes], ids=["one server", "cluster"])
def either(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Server]:
    with request.param(tmp_path) as started:
        yield started


def tell_each(server: Server, *commands: Sequence[str]) -> None:
    for one in server.servers if isinstance(server, RedisNodes) else [server]:
        with one.client() as client:
            for command in commands:
                client.execute_command(*command)


async def keeps_what_is_written(address: RedisAddress) -> bool:
    async with connected_to(address) as client:
        await check_servers(client, survives_power_failure=True)
        await client.calls([("SET", key, f"value of {key}") for key in KEYS])
        return [await client.run(READING, [key], []) for key in KEYS] == [f"value of {key}".encode() for key in KEYS]


async def is_refused(address: RedisAddress) -> None:
    """The call fails, as `Unavailable`, and nothing before it."""
    async with connected_to(address) as client:
        with pytest.raises(Unavailable):
            await client.call("GET", KEYS[0])


async def test_user_and_password_are_sent_and_wrong_ones_refused(either: Server) -> None:
    added = ("ACL", "SETUSER", USER, "on", f">{PASSWORD}", "~*", "&*", "+@all")
    tell_each(either, added, ("ACL", "SETUSER", "default", "off"))
    assert await keeps_what_is_written(RedisAddress(either.url, USER, PASSWORD))
    await is_refused(RedisAddress(either.url, USER, "another"))
    await is_refused(RedisAddress(either.url))


async def test_a_password_alone_is_that_of_the_default_user(either: Server) -> None:
    tell_each(either, ("CONFIG", "SET", "requirepass", PASSWORD))
    assert await keeps_what_is_written(RedisAddress(either.url, password=PASSWORD))


@pytest.fixture(params=[own_redis_server, own_redis_nodes], ids=["one server", "cluster"])
def tls_server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Server]:
    """With TLS and nothing else, from its start, and between the nodes as well."""
    folder = tmp_path / "server"
    folder.mkdir()
    with request.param(folder, certificates=issued_certificates(tmp_path / "ours")) as started:
        yield started


async def reason_at_the_start(address: RedisAddress) -> str:
    async with connected_to(address) as client:
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
async def test_one_that_loses_turns_is_refused_and_told_why(own_client: LogClient, name: str, value: str) -> None:
    await own_client.call("CONFIG", "SET", name, value)
    with pytest.raises(BadSetting, match=f"{name} must be .*and is {value}"):
        await check_servers(own_client, survives_power_failure=True)


async def test_the_last_second_may_be_lost_with_the_machine_where_that_is_wanted(own_client: LogClient) -> None:
    await own_client.call("CONFIG", "SET", "appendfsync", "everysec")
    await check_servers(own_client, survives_power_failure=False)
    await own_client.call("CONFIG", "SET", "appendfsync", "no")
    with pytest.raises(BadSetting, match="always or everysec"):
        await check_servers(own_client, survives_power_failure=False)


async def test_one_that_does_not_tell_its_settings_is_accepted_with_one_warning(
    own_client: LogClient, server: RedisServer
) -> None:
    await own_client.call("ACL", "SETUSER", "hosted", "on", ">word", "~*", "+@all", "-config")
    async with Redis(port=server.port, username="hosted", password="word") as hosted:
        with structlog.testing.capture_logs() as logs:
            await check_servers(LogClient(hosted), survives_power_failure=True)
    assert [one["event"] for one in logs] == ["redis.not_checked"]
    assert (logs[0]["appendonly"], logs[0]["appendfsync"]) == ("yes", "always")


async def advice(url: str) -> str:
    """What a start with this setting ends with."""
    async with connected_to(RedisAddress(url)) as client:
        with pytest.raises(BadSetting) as refused:
            await check_servers(client, survives_power_failure=True)
    return str(refused.value)


@pytest.mark.parametrize("is_valkey", REDIS_AND_VALKEY)
async def test_a_single_server_that_is_taken_for_a_cluster_and_a_missing_database_are_told(
    server: RedisServer, *, is_valkey: bool
) -> None:
    url = valkey_server().url if is_valkey else server.url
    assert "leave out +cluster, as in redis://" in await advice(url.replace("://", "+cluster://", 1))
    assert "no database of that number" in await advice(f"{url}/4711")


@pytest.mark.parametrize("is_valkey", REDIS_AND_VALKEY)
async def test_a_node_of_a_cluster_that_is_taken_for_a_single_server_is_told(
    tmp_path: Path, *, is_valkey: bool
) -> None:
    program = valkey_server().program if is_valkey else "redis-server"
    node = RedisServer(free_port(), tmp_path, ("--cluster-enabled", "yes", "--cluster-port", str(free_port())), program)
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


async def has_ended_cancelled(asking: Coroutine[object, object, object], seconds: float) -> bool:
    """Whether a task that was cancelled after that time ends, whatever it was doing."""
    task = asyncio.ensure_future(asking)  # noqa: TID251  # the task is what gets cancelled
    await asyncio.sleep(seconds)
    task.cancel()
    return task in (await asyncio.wait([task], timeout=HANG_SECONDS))[0]


async def test_a_client_that_is_closed_right_after_a_cancelled_call_leaves_no_connection_open() -> None:
    """Also while the library connects, which it does for each call here."""
    with redis_server().client() as looking:
        open_before = len(looking.client_list())
        for moment in range(40):
            async with aclosing(Redis(port=redis_server().port)) as closed, LogClient(closed) as client:
                assert await has_ended_cancelled(client.call("GET", "a"), moment * 0.0001)
            assert len(looking.client_list()) == open_before, f"cancelled after {moment * 0.1:.1f} ms"


async def test_a_cancelled_caller_does_not_wait_for_a_server_that_hangs(
    server: RedisServer, own_client: LogClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A chat has a deadline."""
    monkeypatch.setattr(log_client, "CALL_SECONDS_MAX", 9 * HANG_SECONDS)
    await own_client.call("SET", "a", 1)
    assert server.process is not None
    server.process.send_signal(signal.SIGSTOP)
    try:
        assert await has_ended_cancelled(own_client.call("GET", "a"), 0.1)
    finally:
        server.process.send_signal(signal.SIGCONT)
    assert await own_client.call("GET", "a") == b"1"


@pytest.mark.parametrize("waits_for_its_end", [False, True])
async def test_a_call_that_fails_after_its_caller_is_gone_is_not_logged(
    server: RedisServer, monkeypatch: pytest.MonkeyPatch, *, waits_for_its_end: bool
) -> None:
    """While a server is slow there is one for each chat, and of each the traceback of all layers would be logged."""
    reported: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
    async with Redis(port=server.port) as connected, LogClient(connected) as client:
        await client.call("SET", "a", 1)
        monkeypatch.setattr(log_client, "CALL_SECONDS_MAX", 0.2)
        with server.client() as blocking:
            blocking.client_pause(60_000)  # ends with the server
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
    server: RedisServer, own_client: LogClient
) -> None:
    await own_client.call("SET", "kept", "words of a user")
    server.kill()
    with pytest.raises(Unavailable) as refused:
        await own_client.call("SET", "words of a user", "words of a user")
    server.start()
    assert "words" not in str(refused.value)
    assert await own_client.call("GET", "kept") == b"words of a user"
