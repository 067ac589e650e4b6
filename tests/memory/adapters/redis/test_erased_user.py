"""What a server holds of a user is found under every name, and once the user is erased no key names them, nor any file
of the server after its files were rewritten.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from pathlib import Path

import pytest
from redis.asyncio import Redis
from redis.asyncio.cluster import RedisCluster
from redis_nodes import redis_nodes
from redis_server import RedisServer, own_redis_server, redis_server, valkey_server
from summarised_sessions import LATER, due, summarised, talk
from turn_logs import START, Deployment, Process

from memory.adapters.file_scan import scanned
from memory.adapters.redis import key_scan
from memory.adapters.redis.deleted_keys import RedisDeletedKeys
from memory.adapters.redis.key_scan import FOREIGN, RedisKeyScan
from memory.adapters.redis.log_client import KEYS_IN_A_PAGE, Command, LogClient
from memory.adapters.redis.log_keys import UserKeys, user_of_turn
from memory.errors import Conflict, Unavailable
from memory.model import PastNote, ProfileLine, RecallStatus, Receipt, WithdrawnSummary
from memory.model.projects import MemoryVisibility, ProjectRole, SharedMemory, SharedProject

pytestmark = pytest.mark.full("what the adapter of Redis alone has; the contracts run there, too")


@pytest.fixture
def user() -> str:
    return f"ann-{uuid.uuid4().hex[:12]}"


async def keep_everything_of(process: Process, user: str) -> None:
    """Without turns."""
    async with process.ledger.write(user) as held:
        held.touch(["m1"])
        await held.forget(["m2"], raw_ids=["r1"])
    revision = (await process.ledger.revision(user)).number
    await process.profiles.put(user, {"": [ProfileLine("- I sail", 3, "m1")]}, revision=revision, now=START)
    await process.projects.create(SharedProject(uuid.uuid4().hex, "", f"boats of {user}", START), "bob")
    (joined,) = await process.projects.joined("bob")
    key = joined.project.key
    await process.projects.set_roles(key, {user: ProjectRole.EDITOR}, at=START)
    await process.projects.put([SharedMemory(f"{key}.1", key, user, MemoryVisibility.MEMBERS, START)])
    await process.projects.add_reader(key, user)
    await process.notes.keep(user, "k1", PastNote(f"about {user}", ("m1",), 7), made_at=START)
    await process.opt_outs.set(user, at=START)
    process.receipts.keep(Receipt("r1", user, START, RecallStatus.USED, "found", query=f"who is {user}"))
    process.usage_counts.count(user, ["m1"], at=START)
    while await process.receipts.get(user, "r1") is None:
        await asyncio.sleep(0.01)


async def erase(process: Process, user: str, *, drops: bool = True) -> None:
    """As the erasure of the service does; without `drops`, what was kept since then is left to the end of the life."""
    await process.projects.drop([entry.memory_id for entry in await process.projects.authored(user)])
    for access in await process.projects.joined(user):
        await process.projects.set_roles(access.project.key, {user: None}, at=START)
    await process.projects.forget_user(user)
    for access in await process.projects.joined("bob"):
        await process.projects.delete(access.project.key)  # its name has the user's in it
    await process.profiles.erase(user)
    await process.summaries.erase(user)
    if drops:
        await process.notes.drop(user, [], now=START)
        await process.receipts.erase(user)
        await process.usage_counts.drop(user, [])
    async with process.ledger.write(user) as held:
        await held.end_life()


@pytest.mark.parametrize("drops", [True, False])
async def test_no_key_and_no_file_names_an_erased_user(
    process: Process, client: LogClient, user: str, *, drops: bool
) -> None:
    await keep_everything_of(process, user)
    assert redis_server().keys_with(user) != []
    await erase(process, user, drops=drops)
    assert redis_server().keys_with(user) == []
    assert scanned([redis_server().folder], [user])[2] != []
    await RedisDeletedKeys(client).rewrite()
    assert scanned([redis_server().folder], [user])[2] == []


async def test_nor_are_turns_and_summaries_left(process: Process, client: LogClient, user: str) -> None:
    log = process.log
    await talk(process, "t1", "t2", user=user)
    await summarised(process, "t1", "t2", user=user)
    await keep_everything_of(process, user)
    await log.messages.erase(user, before=LATER)
    await log.trees.erase(user)
    await erase(process, user)
    assert redis_server().keys_with(user) == []
    await RedisDeletedKeys(client).rewrite()
    assert scanned([redis_server().folder], [user])[2] == []


async def test_nobody_looks_for_an_erased_user_and_their_next_life_is_a_new_one(process: Process, user: str) -> None:
    await talk(process, "t1", user=user)
    await keep_everything_of(process, user)
    before = (await process.ledger.revision(user)).number
    await erase(process, user)
    assert await process.profiles.stale(limit=9) == []
    assert await process.profiles.unwritten(settled_before=LATER, limit=9) == []
    assert await due(process) == []
    assert not await process.profiles.is_stale(user)
    assert (await process.ledger.revision(user)).number > before
    await talk(process, "t3", session="s3", user=user)
    async with process.ledger.write(user) as held:
        held.touch(["m9"])
    assert await process.profiles.stale(limit=9) == [user]
    assert [one.session_id for one in await due(process)] == ["s3"]


async def test_whoever_was_at_work_for_them_writes_nothing_that_names_them(
    process: Process, deployment: Deployment, client: LogClient, user: str
) -> None:
    """A lock that was lost, or is taken afterwards and written nothing under, a profile, and a summary to settle."""
    async with deployment.start() as other:
        await keep_everything_of(process, user)
        withdrawn = WithdrawnSummary(user, "s1", 7, 1)
        (profile,) = await other.profiles.all(user)
        revision = (await other.ledger.revision(user)).number
        slow = other.ledger.write(user)
        held = await slow.__aenter__()
        held.touch(["m3"])
        deployment.clock.now += 60
        await erase(process, user)
        with pytest.raises(Conflict):
            await slow.__aexit__(None, None, None)
        async with other.ledger.write(user):
            assert redis_server().keys_with(user) != []
        assert not await other.profiles.put(user, {"": profile.lines}, revision=revision, now=START)
        erased = (await other.ledger.revision(user)).number
        assert await other.profiles.put(user, {}, revision=erased, now=START)
        assert not await other.profiles.put_prose(profile, None)
        await other.profiles.drop(user, ["m1"], now=START)
        await other.summaries.settle([withdrawn])
        await other.summaries.end(user, "s1")
        await other.summaries.leave_out(user, ["t1"])
        await other.log.make_due_now(user)
        await other.log.withdraw(user, opened_before=LATER)
    await process.log.recover()
    assert redis_server().keys_with(user) == []


async def test_a_project_that_they_join_while_they_are_erased_is_one_of_their_next_life(
    process: Process, user: str
) -> None:
    project = SharedProject(uuid.uuid4().hex, "", "boats", START)
    await process.projects.create(project, "bob")
    async with process.ledger.write(user) as held:
        await process.projects.set_roles(project.key, {user: ProjectRole.EDITOR}, at=START)
        await held.end_life()
    assert [one.project for one in await process.projects.joined(user)] == [project]


async def told(client: LogClient, words: str) -> None:
    await client.calls([("SET", f"kept:{number}", f"{words} {number}") for number in range(50)])


async def delete(client: LogClient) -> None:
    await client.calls([("DEL", f"kept:{number}") for number in range(50)])


async def test_what_was_deleted_is_in_no_file_and_the_rest_survives(server: RedisServer, own_client: LogClient) -> None:
    await told(own_client, "Quetzalbimxford")
    await own_client.call("SET", "other", "Xylophonquist")
    await delete(own_client)
    assert scanned([server.folder], ["Quetzalbimxford"])[2] != []
    await RedisDeletedKeys(own_client).rewrite()
    assert scanned([server.folder], ["Quetzalbimxford"])[2] == []
    assert scanned([server.folder], ["Xylophonquist"])[2] != []
    server.kill()
    server.start()
    assert await own_client.call("GET", "other") == b"Xylophonquist"


async def test_a_rewriting_that_began_before_is_followed_by_another(server: RedisServer, own_client: LogClient) -> None:
    for number in range(5):
        await told(own_client, f"Quetzalbimxford{number}")
        await own_client.call("BGREWRITEAOF")
        await delete(own_client)
        await RedisDeletedKeys(own_client).rewrite()
        assert scanned([server.folder], ["Quetzalbimxford"])[2] == []


async def test_a_snapshot_is_made_again_where_the_server_makes_some(server: RedisServer, own_client: LogClient) -> None:
    await own_client.call("CONFIG", "SET", "save", "3600 1")
    await told(own_client, "Quetzalbimxford")
    await own_client.call("SAVE")
    await delete(own_client)
    assert "dump.rdb" in scanned([server.folder], ["Quetzalbimxford"])[2]
    await RedisDeletedKeys(own_client).rewrite()
    assert scanned([server.folder], ["Quetzalbimxford"])[2] == []


async def test_a_server_that_refuses_leaves_the_erasure_waiting(server: RedisServer, own_client: LogClient) -> None:
    await own_client.call("ACL", "SETUSER", "hosted", "on", ">word", "~*", "+@all", "-bgrewriteaof")
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


@pytest.mark.parametrize("where", HOLDING)
async def test_a_user_is_found_in_values_of_every_type(own_client: LogClient, where: str) -> None:
    others = [("SET", f"other:{number}", "tea") for number in range(3 * KEYS_IN_A_PAGE)]
    await own_client.calls(others)
    clean = await RedisKeyScan(own_client).scan([USER])
    assert (clean.found_in, clean.not_searched) == ((), ())
    assert clean.items >= len(others)
    await own_client.call(*HOLDING[where])
    assert (await RedisKeyScan(own_client).scan([USER])).found_in == (FOREIGN,)


@pytest.mark.parametrize("place", [key_scan.FIRST_BYTES, key_scan.FIRST_BYTES + key_scan.PIECE_BYTES])
async def test_a_user_who_stands_between_two_pieces_of_a_value_is_found(own_client: LogClient, place: int) -> None:
    for shift in range(1, len(USER.encode())):
        await own_client.call("SET", "k", "x" * (place - shift) + USER + "y" * 9)
        assert (await RedisKeyScan(own_client).scan([USER])).found_in == (FOREIGN,)


async def test_the_report_names_no_user(own_client: LogClient) -> None:
    """Nor a session, project or turn of another whose id holds theirs."""
    await own_client.call("SET", UserKeys("bob").session(f"bob's and {USER}'s"), "tea")
    await own_client.call("HSET", user_of_turn(f"turn of {USER}"), "a", "tea")
    await own_client.call("SET", f"session:{USER}:1", "tea")
    found = await RedisKeyScan(own_client).scan([USER])
    assert set(found.found_in) == {"keys of the kind session", "keys of the kind turn", FOREIGN}


async def test_types_that_cannot_be_read_and_replicas_are_named(
    server: RedisServer, own_client: LogClient, tmp_path: Path
) -> None:
    await own_client.call("XADD", "events", "*", "user", USER)
    (tmp_path / "replica").mkdir()
    with own_redis_server(tmp_path / "replica") as replica:
        async with Redis(port=replica.port) as connected:
            await LogClient(connected).call("REPLICAOF", "127.0.0.1", server.port)
        while not (await own_client.of_each_node("INFO", "replication"))[0]["connected_slaves"]:
            await own_client.call("PING")
        found = await RedisKeyScan(own_client).scan([USER])
    assert found.not_searched[0] == "keys of the type stream"
    assert "files of 1 replicas" in found.not_searched[1]


@pytest.mark.parametrize(
    ("forbidden", "says"), [("-scan", "keys: "), ("-get +getrange -hscan", "keys: "), ("-slowlog", "slow commands")]
)
async def test_what_the_server_refuses_to_show_is_named(
    server: RedisServer, own_client: LogClient, forbidden: str, says: str
) -> None:
    await own_client.call("HSET", "k", "f", "v")
    await own_client.call("ACL", "SETUSER", "hosted", "on", ">word", "~*", "+@all", *forbidden.split())
    async with Redis(port=server.port, username="hosted", password="word") as hosted:
        found = await RedisKeyScan(LogClient(hosted)).scan([USER])
    assert any(says in one for one in found.not_searched), found


async def test_what_was_not_read_in_time_is_named_and_a_server_that_is_away_proves_nothing(
    server: RedisServer, own_client: LogClient
) -> None:
    await own_client.call("SET", "k", USER)
    found = await RedisKeyScan(own_client, seconds_max=0.0).scan([USER])
    assert "read within 0 s" in found.not_searched[0]
    server.kill()
    with pytest.raises(Unavailable):
        await RedisKeyScan(own_client).scan([USER])


@pytest.mark.parametrize(
    "is_valkey", [False, pytest.param(True, marks=pytest.mark.soak("a variant of what runs on Redis"))]
)
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
