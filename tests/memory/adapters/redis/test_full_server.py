"""Room for snapshots: the least recently used go first, all give way to turns, and what was refused can be written once
there is memory.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from redis import exceptions
from redis_nodes import own_redis_nodes
from redis_server import RedisServer
from turn_logs import START, ManualClock, a_turn, ids_of, lease_at

from memory.adapters.redis import log_client, log_keys
from memory.adapters.redis import snapshots as snapshots_module
from memory.adapters.redis.background import RedisBackground
from memory.adapters.redis.connecting import RedisAddress, connected
from memory.adapters.redis.failure_reasons import is_refused
from memory.adapters.redis.log_client import LogClient, Reply
from memory.adapters.redis.log_keys import UserKeys
from memory.adapters.redis.owners import RedisOwners
from memory.adapters.redis.snapshots import USED_AGAIN_SECONDS, RedisSnapshots
from memory.adapters.redis.whole_log import RedisTurnLog
from memory.errors import Unavailable
from memory.model import TurnStatus
from memory.ports import TurnLog

pytestmark = pytest.mark.full("what the adapter of Redis alone has; the contracts run there, too")

ROOM = 4 << 20  # what the server may hold beyond what it needs itself
SNAPSHOT = b"x" * 200_000
WORDS = "w" * 200_000
USERS = [f"user-{number}" for number in range(60)]


@pytest.fixture
async def log(own_client: LogClient) -> AsyncIterator[TurnLog]:
    async with RedisOwners(own_client) as owners:
        yield RedisTurnLog(own_client, owners, clock=lambda: START)


@pytest.fixture
async def snapshots(own_client: LogClient) -> AsyncIterator[RedisSnapshots]:
    async with RedisBackground() as background:
        made = RedisSnapshots(own_client, background, bytes_max=1 << 30, clock=lambda: START)
        own_client.give_way(made.delete_least_used)
        yield made


def limit(server: RedisServer, room: int) -> None:
    with server.client() as client:
        client.config_set("maxmemory", client.info("memory")["used_memory"] + room)


async def there(snapshots: RedisSnapshots, users: Sequence[str] = USERS) -> list[str]:
    return [user for user in users if await snapshots.read(user) is not None]


async def append(log: TurnLog, turn_id: str) -> None:
    await log.append(a_turn(turn_id, status=TurnStatus.CLOSED, text=WORDS))


async def refusal_of(log: TurnLog, turn_id: str) -> str:
    """Why it was refused; "" if it was taken."""
    try:
        await append(log, turn_id)
    except Unavailable as error:
        return str(error)
    return ""


async def filled(log: TurnLog) -> list[str]:
    """Turns that were taken until one was refused."""
    taken: list[str] = []
    while not (refusal := await refusal_of(log, f"turn-{len(taken)}")):
        taken.append(f"turn-{len(taken)}")
    assert "no memory left" in refusal
    return taken


async def test_snapshots_leave_a_part_to_turns_and_give_way_to_them(
    server: RedisServer, log: TurnLog, snapshots: RedisSnapshots
) -> None:
    await append(log, "first")
    limit(server, ROOM)
    for user in USERS:
        await snapshots.write(user, SNAPSHOT)  # nobody is told that there is no room
    before = await there(snapshots)
    assert before
    assert len(before) < len(USERS)
    await append(log, "second")
    assert await there(snapshots) == before
    taken = await filled(log)
    assert len(taken) * len(WORDS) > len(before) * len(SNAPSHOT) / 2
    assert await there(snapshots) == []
    recorded = [turn.id async for turn in log.turns("ann")]
    assert recorded[: 2 + len(taken)] == ["first", "second", *taken]


async def test_what_was_refused_is_written_and_learnt_once_there_is_memory(
    server: RedisServer, log: TurnLog, snapshots: RedisSnapshots
) -> None:
    limit(server, ROOM)
    taken = await filled(log)
    server.set("maxmemory", "1mb")  # not even what becomes free for a moment
    with pytest.raises(Unavailable, match="no memory left"):
        await lease_at(log, START)
    server.set("maxmemory", "0")
    await append(log, f"turn-{len(taken)}")
    assert ids_of(await lease_at(log, START)) == [*taken, f"turn-{len(taken)}"]
    await snapshots.write("ann", SNAPSHOT)
    assert await snapshots.read("ann") == SNAPSHOT


async def test_many_calls_at_once_delete_no_more_than_they_need(
    server: RedisServer, log: TurnLog, snapshots: RedisSnapshots
) -> None:
    for user in USERS:
        await snapshots.write(user, SNAPSHOT)
    limit(server, 0)
    await asyncio.gather(
        *(log.append(a_turn(f"of-{user}", user=user, status=TurnStatus.CLOSED)) for user in USERS[:20])
    )
    assert len(await there(snapshots)) >= len(USERS) // 2


async def test_where_room_is_never_made_the_turn_waits_as_in_any_outage(
    server: RedisServer, own_client: LogClient, log: TurnLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever writes catches `Unavailable`; anything else would end the part."""
    monkeypatch.setattr(log_client, "CALL_SECONDS_MAX", 0.5)
    own_client.give_way(lambda _: asyncio.Event().wait())
    limit(server, 0)
    refusals = await asyncio.gather(*(refusal_of(log, f"turn-{number}") for number in range(3)))
    assert ["made no room" in one for one in refusals] == [True] * 3


@dataclass(frozen=True, slots=True)
class FullNode:
    """A cluster with `server` that takes no write, users whose keys it has, and what writes to it."""

    server: RedisServer
    users: Sequence[str]
    snapshots: RedisSnapshots
    log: TurnLog


@pytest.fixture
async def full_node(tmp_path: Path) -> AsyncIterator[FullNode]:
    """All users have a snapshot. Another node is nearly full, and takes writes."""
    with own_redis_nodes(tmp_path) as nodes:
        async with (
            connected(RedisAddress(nodes.url)) as client,
            RedisOwners(client) as owners,
            RedisBackground() as background,
        ):
            snapshots = RedisSnapshots(client, background, bytes_max=1 << 30, clock=lambda: START)
            client.give_way(snapshots.delete_least_used)
            for user in USERS:
                await snapshots.write(user, SNAPSHOT)
            full = nodes.master_of(UserKeys(USERS[-1]).snapshot)
            nearly = next(server for server in nodes.servers if server is not full)
            with nearly.client() as looking:
                nearly.set("maxmemory", str(int(looking.info("memory")["used_memory"] / 0.95)))
            limit(full, 0)
            on_it = [user for user in USERS if nodes.master_of(UserKeys(user).snapshot) is full]
            yield FullNode(full, on_it, snapshots, RedisTurnLog(client, owners, clock=lambda: START))


async def test_on_a_cluster_only_the_node_that_refused_a_write_loses_snapshots(full_node: FullNode) -> None:
    """Those of the others would be lost in vain."""
    turn = a_turn("of-last", user=full_node.users[-1], status=TurnStatus.CLOSED, text=WORDS)
    await full_node.log.append(turn)
    gone = set(USERS) - set(await there(full_node.snapshots))
    assert gone
    assert gone <= set(full_node.users)


async def test_writes_to_a_full_node_without_snapshots_do_not_look_for_some_one_after_the_other(
    full_node: FullNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots_module, "NONE_SECONDS", 60.0)
    looks: list[str] = []
    call = LogClient.call

    async def counted(client: LogClient, *command: str | bytes | float) -> Reply:
        looks.extend(str(word) for word in command[:1] if word == "ZRANGE")
        return await call(client, *command)

    for user in full_node.users:
        await full_node.snapshots.erase(user)
    full_node.server.set("maxmemory", "1mb")  # less than it needs itself
    monkeypatch.setattr(LogClient, "call", counted)
    turns = [a_turn(f"of-{user}", user=user, status=TurnStatus.CLOSED) for user in full_node.users[:5]]
    refusals = await asyncio.gather(*map(full_node.log.append, turns), return_exceptions=True)
    assert [str(one) for one in refusals if "no memory left" not in str(one)] == []
    assert len(looks) == 2  # the users, and their end


@pytest.mark.parametrize(
    ("cause", "is_so"),
    [
        (exceptions.NoPermissionError(), True),
        (exceptions.MovedError("1 127.0.0.1:7000"), False),
        (exceptions.ClusterDownError("CLUSTERDOWN"), False),
        (exceptions.OutOfMemoryError(), False),
        (exceptions.ReadOnlyError(), False),
        (exceptions.ConnectionError(), False),
    ],
    ids=lambda value: type(value).__name__,
)
def test_only_what_a_server_will_never_do_counts_as_refused(cause: Exception, *, is_so: bool) -> None:
    error = Unavailable("turn_log", "Redis failed")
    error.__context__ = cause  # as it is when the one is raised for the other
    assert is_refused(error) is is_so


async def test_the_least_recently_used_go_first_and_the_sum_is_that_of_what_is_there(own_client: LogClient) -> None:
    clock, four = ManualClock(), ("ann", "bob", "carl", "dora")
    async with RedisBackground() as background:
        snapshots = RedisSnapshots(own_client, background, bytes_max=1_000, clock=clock)
        for user in four[:3]:
            clock.now += 1
            await snapshots.write(user, b"x" * 300)
        clock.now += USED_AGAIN_SECONDS + 1
        assert await snapshots.read("ann") is not None
        await background.written()
        for _ in range(2):  # one that is written again counts once
            await snapshots.write("dora", b"x" * 300)
        assert await there(snapshots, four) == ["ann", "carl", "dora"]
        await snapshots.erase("ann")
        await snapshots.erase("nobody")
        await background.written()  # that they were used
        assert await own_client.call("GET", log_keys.SNAPSHOTS[2]) == b"600"
        await snapshots.erase_all()
        assert await own_client.call("GET", log_keys.SNAPSHOTS[2]) == b"0"
