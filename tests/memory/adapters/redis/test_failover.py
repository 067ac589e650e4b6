"""Masters of a real cluster are killed: their replicas take over, clients find them, and what was recorded is there."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from redis_nodes import RedisNodes, replicated_redis_nodes, wait_until
from redis_server import RedisServer
from turn_logs import START, a_turn

from memory.adapters.redis import log_keys
from memory.adapters.redis.connecting import RedisAddress, connected
from memory.adapters.redis.owners import RedisOwners
from memory.adapters.redis.whole_log import RedisTurnLog
from memory.errors import Unavailable
from memory.model import TurnStatus
from memory.ports import TurnLog

USERS = [f"user-{number}" for number in range(8)]  # on all masters
PAUSE_SECONDS = 0.05
MORE_TURNS = 5  # of each user after each failover
SECONDS_MAX = 60.0
BEHIND_SECONDS_MAX = 1.0  # a replica behind its master


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[RedisNodes]:
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
async def test_no_recorded_turn_is_lost_and_recording_goes_on_when_masters_die(nodes: RedisNodes) -> None:
    """Also when the replica that took over dies, after its master has come back. What was acknowledged just before may
    be lost with its master: replicas follow, and nobody waits for them.
    """
    kills: list[float] = []
    key = log_keys.UserKeys(USERS[0]).queue
    async with connected(RedisAddress(nodes.url)) as client, RedisOwners(client) as owners:
        log = RedisTurnLog(client, owners, clock=lambda: START)
        recorder = Recorder(log)
        recording = asyncio.ensure_future(recorder.run())  # noqa: TID251  # the task is what gets cancelled
        try:
            await recorder.goes_on()
            killed = await asyncio.to_thread(killed_master_of, nodes, key, kills)
            await recorder.goes_on()
            await asyncio.to_thread(killed.start)
            await asyncio.to_thread(nodes.wait_ready)
            second = await asyncio.to_thread(killed_master_of, nodes, key, kills)
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
