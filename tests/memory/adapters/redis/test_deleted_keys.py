"""After a rewriting no file of a Redis server holds anything of a user who was erased."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from redis.asyncio import Redis
from redis.asyncio.cluster import RedisCluster
from redis_nodes import redis_nodes
from redis_server import RedisServer, own_redis_server

from memory.adapters.file_scan import scanned
from memory.adapters.redis.deleted_keys import RedisDeletedKeys
from memory.adapters.redis.log_client import LogClient
from memory.errors import Unavailable


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    with own_redis_server(tmp_path) as started:
        yield started


@pytest.fixture
async def client(server: RedisServer) -> AsyncIterator[LogClient]:
    async with Redis(port=server.port) as connected:
        yield LogClient(connected)


async def told(client: LogClient, words: str) -> None:
    await client.calls([("SET", f"kept:{number}", f"{words} {number}") for number in range(50)])


async def delete(client: LogClient) -> None:
    await client.calls([("DEL", f"kept:{number}") for number in range(50)])


async def test_what_was_deleted_is_in_no_file_and_the_rest_survives(server: RedisServer, client: LogClient) -> None:
    await told(client, "Quetzalbimxford")
    await client.call("SET", "other", "Xylophonquist")
    await delete(client)
    assert scanned([server.folder], ["Quetzalbimxford"])[2] != []
    await RedisDeletedKeys(client).rewrite()
    assert scanned([server.folder], ["Quetzalbimxford"])[2] == []
    assert scanned([server.folder], ["Xylophonquist"])[2] != []
    server.kill()
    server.start()
    assert await client.call("GET", "other") == b"Xylophonquist"


async def test_a_rewriting_that_began_before_is_followed_by_another(server: RedisServer, client: LogClient) -> None:
    for number in range(5):
        await told(client, f"Quetzalbimxford{number}")
        await client.call("BGREWRITEAOF")
        await delete(client)
        await RedisDeletedKeys(client).rewrite()
        assert scanned([server.folder], ["Quetzalbimxford"])[2] == []


async def test_a_snapshot_is_made_again_where_the_server_makes_some(server: RedisServer, client: LogClient) -> None:
    await client.call("CONFIG", "SET", "save", "3600 1")
    await told(client, "Quetzalbimxford")
    await client.call("SAVE")
    await delete(client)
    assert "dump.rdb" in scanned([server.folder], ["Quetzalbimxford"])[2]
    await RedisDeletedKeys(client).rewrite()
    assert scanned([server.folder], ["Quetzalbimxford"])[2] == []


async def test_a_server_that_refuses_leaves_the_erasure_waiting(server: RedisServer, client: LogClient) -> None:
    await client.call("ACL", "SETUSER", "hosted", "on", ">word", "~*", "+@all", "-bgrewriteaof")
    async with Redis(port=server.port, username="hosted", password="word") as hosted:
        with pytest.raises(Unavailable, match="refuses BGREWRITEAOF"):
            await RedisDeletedKeys(LogClient(hosted)).rewrite()


async def test_all_servers_of_a_cluster_rewrite_their_files() -> None:
    server, words = redis_nodes(), f"Quetzal{uuid.uuid4().hex}"
    async with RedisCluster("127.0.0.1", server.port) as cluster:
        client = LogClient(cluster)
        await told(client, words)
        await delete(client)
        assert scanned([server.folder], [words])[2] != []
        await asyncio.gather(*(RedisDeletedKeys(client).rewrite() for _ in range(2)), return_exceptions=True)
        await RedisDeletedKeys(client).rewrite()
        assert scanned([server.folder], [words])[2] == []
