"""What a Redis server holds of a user is found under every name and in values of every type, and what cannot be read is
said.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from redis.asyncio import Redis
from redis.asyncio.cluster import RedisCluster
from redis_nodes import redis_nodes
from redis_server import RedisServer, own_redis_server, redis_server, valkey_server

from memory.adapters.redis import key_scan
from memory.adapters.redis.deleted_keys import RedisDeletedKeys
from memory.adapters.redis.key_scan import FOREIGN, RedisKeyScan
from memory.adapters.redis.log_client import KEYS_IN_A_PAGE, Command, LogClient
from memory.adapters.redis.log_keys import UserKeys, user_of_turn
from memory.errors import Unavailable

USER = "zoë-7f3a@example.com"
MANY = 700  # more than a page of keys, or than a reply has members
HOLDING: dict[str, Command] = {
    "string": ("SET", "k", f"to {USER}"),
    "long string": ("SET", "k", "x" * (key_scan.FIRST_BYTES + key_scan.PIECE_BYTES - 9) + USER + "y" * 99),
    "JSON": ("SET", "k", json.dumps({"user": USER})),
    "field of a hash": ("HSET", "k", f"of {USER}", "v"),
    "value of a hash": ("HSET", "k", *(word for n in range(MANY) for word in (f"f{n}", USER if n == 500 else "v"))),
    "set": ("SADD", "k", *(USER if n == 500 else f"m{n}" for n in range(MANY))),
    "sorted set": ("ZADD", "k", *(word for n in range(MANY) for word in (n, USER if n == 500 else f"m{n}"))),
    "list": ("RPUSH", "k", *(USER if n == 500 else f"m{n}" for n in range(MANY))),
}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    with own_redis_server(tmp_path) as started:
        yield started


@pytest.fixture
async def client(server: RedisServer) -> AsyncIterator[LogClient]:
    async with Redis(port=server.port) as connected:
        yield LogClient(connected)


@pytest.mark.parametrize("where", HOLDING)
async def test_a_user_is_found_in_values_of_every_type(client: LogClient, where: str) -> None:
    others = [("SET", f"other:{number}", "tea") for number in range(3 * KEYS_IN_A_PAGE)]
    await client.calls(others)
    clean = await RedisKeyScan(client).scan([USER])
    assert (clean.found_in, clean.not_searched) == ((), ())
    assert clean.items >= len(others)
    await client.call(*HOLDING[where])
    assert (await RedisKeyScan(client).scan([USER])).found_in == (FOREIGN,)


@pytest.mark.parametrize("place", [key_scan.FIRST_BYTES, key_scan.FIRST_BYTES + key_scan.PIECE_BYTES])
async def test_a_user_who_stands_between_two_pieces_of_a_value_is_found(client: LogClient, place: int) -> None:
    for shift in range(1, len(USER.encode())):
        await client.call("SET", "k", "x" * (place - shift) + USER + "y" * 9)
        assert (await RedisKeyScan(client).scan([USER])).found_in == (FOREIGN,)


async def test_the_report_names_no_user(client: LogClient) -> None:
    """Nor a session, project or turn of another whose id holds theirs."""
    await client.call("SET", UserKeys("bob").session(f"bob's and {USER}'s"), "tea")
    await client.call("HSET", user_of_turn(f"turn of {USER}"), "a", "tea")
    await client.call("SET", f"session:{USER}:1", "tea")
    found = await RedisKeyScan(client).scan([USER])
    assert set(found.found_in) == {"keys of the kind session", "keys of the kind turn", FOREIGN}


async def test_types_that_cannot_be_read_and_replicas_are_named(
    server: RedisServer, client: LogClient, tmp_path: Path
) -> None:
    await client.call("XADD", "events", "*", "user", USER)
    (tmp_path / "replica").mkdir()
    with own_redis_server(tmp_path / "replica") as replica:
        async with Redis(port=replica.port) as connected:
            await LogClient(connected).call("REPLICAOF", "127.0.0.1", server.port)
        while not (await client.of_each_node("INFO", "replication"))[0]["connected_slaves"]:
            await client.call("PING")
        found = await RedisKeyScan(client).scan([USER])
    assert found.not_searched[0] == "keys of the type stream"
    assert "files of 1 replicas" in found.not_searched[1]


@pytest.mark.parametrize(
    ("forbidden", "says"), [("-scan", "keys: "), ("-get +getrange -hscan", "keys: "), ("-slowlog", "slow commands")]
)
async def test_what_the_server_refuses_to_show_is_named(
    server: RedisServer, client: LogClient, forbidden: str, says: str
) -> None:
    await client.call("HSET", "k", "f", "v")
    await client.call("ACL", "SETUSER", "hosted", "on", ">word", "~*", "+@all", *forbidden.split())
    async with Redis(port=server.port, username="hosted", password="word") as hosted:
        found = await RedisKeyScan(LogClient(hosted)).scan([USER])
    assert any(says in one for one in found.not_searched), found


async def test_what_was_not_read_in_time_is_named_and_a_server_that_is_away_proves_nothing(
    server: RedisServer, client: LogClient
) -> None:
    await client.call("SET", "k", USER)
    found = await RedisKeyScan(client, seconds_max=0.0).scan([USER])
    assert "read within 0 s" in found.not_searched[0]
    server.kill()
    with pytest.raises(Unavailable):
        await RedisKeyScan(client).scan([USER])


@pytest.mark.parametrize("is_valkey", [False, True], ids=["redis", "valkey"])
async def test_a_user_is_found_in_the_log_of_slow_commands_until_files_are_rewritten(*, is_valkey: bool) -> None:
    server = valkey_server() if is_valkey else redis_server()
    server.empty()
    async with Redis(port=server.port) as connected:
        client = LogClient(connected)
        try:
            await client.call("CONFIG", "SET", "slowlog-log-slower-than", "0")
            await client.call("SET", "k", USER)
        finally:
            await client.call("CONFIG", "SET", "slowlog-log-slower-than", "10000")
        await client.call("DEL", "k")
        assert (await RedisKeyScan(client).scan([USER])).found_in == ("SLOWLOG of the server",)
        await RedisDeletedKeys(client).rewrite()
        found = await RedisKeyScan(client).scan([USER])
        assert (found.found_in, found.not_searched) == ((), ())


async def test_all_keys_of_a_cluster_are_read() -> None:
    server = redis_nodes()
    server.empty()
    async with RedisCluster("127.0.0.1", server.port) as cluster:
        client = LogClient(cluster)
        for number in range(3 * KEYS_IN_A_PAGE):
            await client.call("SET", f"k:{number}", USER if number == 7 else "tea")
        found = await RedisKeyScan(client).scan([USER])
    assert (found.found_in, found.not_searched) == ((FOREIGN,), ())
    assert found.items >= 3 * KEYS_IN_A_PAGE
