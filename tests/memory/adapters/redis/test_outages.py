"""Which processes are alive while servers are away, and what is kept when masters of a cluster die."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

import pytest
from redis.asyncio import Redis
from redis_nodes import RedisNodes, own_redis_nodes, replicated_redis_nodes, wait_until
from redis_server import RedisServer, redis_server
from slow_relay import SlowRelay, running_relay
from turn_logs import START, a_turn

from memory.adapters.redis import log_keys
from memory.adapters.redis import owners as owners_module
from memory.adapters.redis.connecting import RedisAddress, connected
from memory.adapters.redis.log_client import LogClient
from memory.adapters.redis.owners import RedisOwners
from memory.adapters.redis.whole_log import RedisTurnLog
from memory.errors import Unavailable
from memory.model import TurnStatus
from memory.ports import TurnLog

pytestmark = pytest.mark.full("what the adapter of Redis alone has; the contracts run there, too")

IN_TIME = pytest.mark.soak("heartbeats of tenths of a second have to come in time")
USERS = [f"user-{number}" for number in range(8)]  # on all masters
PAUSE_SECONDS = 0.05
MORE_TURNS = 5  # of each user after each failover
SECONDS_MAX = 60.0
BEHIND_SECONDS_MAX = 1.0  # a replica behind its master
PROCESSES = 4  # of which one is looked at


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[RedisNodes]:
    with own_redis_nodes(tmp_path) as started:
        yield started


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in (
        ("ALIVE_SECONDS", 0.6),
        ("BEAT_SECONDS", 0.1),
        ("RETURN_SECONDS", 1.5),
        ("SLOW_SECONDS", 0.3),
    ):
        monkeypatch.setattr(owners_module, name, seconds)


@IN_TIME
async def test_nobody_is_dead_because_the_server_was_away(server: RedisServer) -> None:
    async with (
        connected(RedisAddress(server.url)) as client,
        connected(RedisAddress(server.url)) as another,
        RedisOwners(client) as one,
        RedisOwners(another) as two,
    ):
        await two.note("ann")
        server.kill()
        await asyncio.sleep(2.0)  # longer than a key lives
        await asyncio.to_thread(server.start)
        async with asyncio.timeout(20):
            while await client.call("EXISTS", log_keys.heartbeat(two.name)) == 0:
                assert await one.find_dead() == []
        await asyncio.sleep(1.0)
        assert await one.find_dead() == []
        assert await one.find_living() == [two.name]


@IN_TIME
async def test_nobody_is_dead_because_a_look_took_longer_than_a_heartbeat_lives(server: RedisServer) -> None:
    """It began before anybody knew that the server is slow, and the other's heartbeat is still on its way."""
    with running_relay(server.port) as to_one, running_relay(server.port) as to_two:
        async with (
            connected(RedisAddress(f"redis://127.0.0.1:{to_one.port}")) as client,
            connected(RedisAddress(f"redis://127.0.0.1:{to_two.port}")) as another,
            RedisOwners(client) as one,
            RedisOwners(another) as two,
        ):
            assert await one.find_living() == [two.name]
            for relay in (to_one, to_two):
                relay.stall()
            async with asyncio.TaskGroup() as looks:
                finding = looks.create_task(one.find_dead())
                judging = looks.create_task(one.is_dead(two.name))
                await asyncio.sleep(1.2)  # twice as long as a key lives
                to_one.resume()
            assert (finding.result(), judging.result()) == ([], False)
            to_two.resume()


@IN_TIME
async def test_nobody_is_dead_because_a_node_of_a_cluster_was_away(nodes: RedisNodes) -> None:
    """Its own heartbeats may be on another node."""
    async with AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(connected(RedisAddress(nodes.url))) for _ in range(PROCESSES)]
        one, *others = [await stack.enter_async_context(RedisOwners(client)) for client in clients]
        own = nodes.master_of(log_keys.heartbeat(one.name))
        away = [nodes.master_of(log_keys.heartbeat(other.name)) for other in others]
        server = next((node for node in away if node is not own), own)
        server.kill()
        await asyncio.sleep(2.0)  # longer than a key lives
        await asyncio.to_thread(server.start)
        ends_at = asyncio.get_running_loop().time() + 3.0
        while asyncio.get_running_loop().time() < ends_at:
            with suppress(Unavailable):  # nobody answers
                assert await one.find_dead() == []
                assert not any([await one.is_dead(other.name) for other in others])
            await asyncio.sleep(0.02)
        assert await one.find_living() == sorted(other.name for other in others)


@IN_TIME
async def test_whoever_ends_without_a_word_is_found_dead_before_long() -> None:
    redis_server().empty()
    async with Redis(port=redis_server().port) as connection, RedisOwners(LogClient(connection)) as one:
        dying = RedisOwners(LogClient(connection))
        await dying.__aenter__()
        assert await one.find_dead() == []
        assert dying._beat_task is not None
        dying._beat_task.cancel()
        async with asyncio.timeout(5):
            while await one.find_dead() != [dying.name]:
                await asyncio.sleep(0.02)


@asynccontextmanager
async def behind_a_relay(server: RedisServer) -> AsyncIterator[tuple[SlowRelay, RedisOwners, LogClient]]:
    """An owner who reaches the server through the relay, and a client who does without."""
    with running_relay(server.port) as relay:
        async with (
            connected(RedisAddress(f"redis://127.0.0.1:{relay.port}")) as another,
            connected(RedisAddress(server.url)) as client,
            RedisOwners(another) as living,
        ):
            yield relay, living, client


@IN_TIME
async def test_whoever_opens_right_after_an_outage_takes_no_living_process_for_dead(
    server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one's heartbeat has expired, and the next is still on its way."""
    monkeypatch.setattr(owners_module, "RETURN_SECONDS", 60.0)
    async with behind_a_relay(server) as (relay, living, client):
        relay.stall()
        server.kill()
        await asyncio.sleep(1.2)  # twice as long as a key lives
        await asyncio.to_thread(server.start)
        async with RedisOwners(client) as opened:
            assert await opened.find_dead() == []
            assert not await opened.is_dead(living.name)
            relay.resume()
            async with asyncio.timeout(20):
                while await opened.find_living() != [living.name]:
                    await asyncio.sleep(0.02)


@IN_TIME
async def test_whoever_was_dead_before_another_opened_is_found_a_little_later(server: RedisServer) -> None:
    async with connected(RedisAddress(server.url)) as client:
        dead = RedisOwners(client)
        await dead.__aenter__()
        assert dead._beat_task is not None
        dead._beat_task.cancel()
        await asyncio.sleep(1.2)  # twice as long as a key lives
        async with RedisOwners(client) as opened, asyncio.timeout(20):
            while not await opened.is_dead(dead.name):
                await asyncio.sleep(0.02)
            assert await opened.find_dead() == [dead.name]


async def test_whoever_ended_in_order_is_dead_at_once_until_it_is_forgotten(
    server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also for those that do not yet trust what they miss."""
    monkeypatch.setattr(owners_module, "RETURN_SECONDS", 60.0)
    async with connected(RedisAddress(server.url)) as client:
        async with RedisOwners(client) as ended:
            await ended.note("ann")
        async with RedisOwners(client) as silent:
            await client.call("DEL", log_keys.heartbeat(silent.name))
            async with RedisOwners(client) as opened:
                assert await opened.find_dead() == [ended.name]
                assert await opened.is_dead(ended.name)
                await opened.forget(ended.name)
                assert await opened.find_dead() == []
        assert await client.call("SMEMBERS", log_keys.LEFT_OWNERS) == {silent.name.encode(), opened.name.encode()}


@pytest.fixture
def replicated(tmp_path: Path) -> Iterator[RedisNodes]:
    with replicated_redis_nodes(tmp_path) as started:
        yield started


class Recorder:
    """Appends turns of all users at once; one that was not acknowledged is appended again, as a filter does."""

    def __init__(self, log: TurnLog) -> None:
        self.acknowledged: dict[str, list[str]] = {user: [] for user in USERS}
        self.at: dict[str, float] = {}  # when they were, on the monotonic clock
        self.refused = 0
        self._log = log

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for user in USERS:
                group.create_task(self._append_for(user))

    async def _append_for(self, user: str) -> None:
        while True:
            turn_id = f"{user}-turn-{len(self.acknowledged[user])}"
            try:
                await self._log.append(a_turn(turn_id, user=user, status=TurnStatus.CLOSED))
            except Unavailable:
                self.refused += 1
            else:
                self.acknowledged[user].append(turn_id)
                self.at[turn_id] = time.monotonic()
            await asyncio.sleep(PAUSE_SECONDS)

    async def goes_on(self) -> None:
        """For every user, so on every master."""
        before = {user: len(turns) for user, turns in self.acknowledged.items()}
        async with asyncio.timeout(SECONDS_MAX):
            while any(len(turns) < before[user] + MORE_TURNS for user, turns in self.acknowledged.items()):
                await asyncio.sleep(PAUSE_SECONDS)


def killed_master_of(nodes: RedisNodes, key: str, kills: list[float]) -> RedisServer:
    """Returns once its replica has taken over, and all others know. Notes when it was killed."""
    killed = nodes.master_of(key)
    kills.append(time.monotonic())
    killed.kill()
    others = [server for server in nodes.servers if server.is_running]
    wait_until(lambda: all(nodes.master_of(key, asked=other) is not killed for other in others), "a replica takes over")
    return killed


@pytest.mark.soak("how far a replica is behind its master is a matter of how busy the machine is")
async def test_no_recorded_turn_is_lost_and_recording_goes_on_when_masters_die(replicated: RedisNodes) -> None:
    """Also when the replica that took over dies, after its master has come back. What was acknowledged just before may
    be lost with its master: replicas follow, and nobody waits for them.
    """
    kills: list[float] = []
    key = log_keys.UserKeys(USERS[0]).queue
    async with connected(RedisAddress(replicated.url)) as client, RedisOwners(client) as owners:
        log = RedisTurnLog(client, owners, clock=lambda: START)
        recorder = Recorder(log)
        recording = asyncio.ensure_future(recorder.run())  # noqa: TID251  # the task is what gets cancelled
        try:
            await recorder.goes_on()
            killed = await asyncio.to_thread(killed_master_of, replicated, key, kills)
            await recorder.goes_on()
            await asyncio.to_thread(killed.start)
            await asyncio.to_thread(replicated.wait_ready)
            second = await asyncio.to_thread(killed_master_of, replicated, key, kills)
            assert second is not killed
            await recorder.goes_on()
        finally:
            recording.cancel()
            with suppress(asyncio.CancelledError):
                await recording
        for user, acknowledged in recorder.acknowledged.items():
            recorded = [turn.id async for turn in log.turns(user)]
            assert [one for one in acknowledged if one in recorded] == recorded[
                : len(set(recorded) & set(acknowledged))
            ]
            lost = [recorder.at[one] for one in acknowledged if one not in recorded]
            assert all(any(kill - BEHIND_SECONDS_MAX < at < kill + PAUSE_SECONDS for kill in kills) for at in lost)
            assert len(set(recorded) - set(acknowledged)) <= 1  # the last one's answer may have come too late
            assert len(recorded) == len(set(recorded))
