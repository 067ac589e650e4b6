"""Whoever dies between a commit and the marks in indexes of other hash tags leaves nobody unnoticed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest
from redis.asyncio import Redis
from redis_parts import MortalClient
from redis_server import redis_server
from summarised_sessions import due, talk
from turn_logs import START, Deployment, Process, a_turn, redis_deployment

from memory.adapters.redis.ledger import RedisUserLedger
from memory.adapters.redis.log_client import LogClient
from memory.adapters.redis.owners import RedisOwners
from memory.adapters.redis.whole_log import RedisTurnLog
from memory.errors import Unavailable
from memory.model import TurnStatus

CALLS_MAX = 16


@pytest.fixture
def deployment(tmp_path: Path) -> Deployment:
    return redis_deployment(tmp_path)


@pytest.fixture
async def process(deployment: Deployment) -> AsyncIterator[Process]:
    async with deployment.start() as one:
        yield one


@pytest.fixture
async def connected(process: Process) -> AsyncIterator[Redis]:
    async with Redis(port=redis_server().port) as client:
        yield client


async def test_a_write_that_was_cut_short_makes_its_user_stale_if_it_changed_the_revision(
    process: Process, deployment: Deployment, connected: Redis
) -> None:
    written = 0
    for calls in range(CALLS_MAX):
        user = f"user-{calls}"
        async with RedisOwners(LogClient(connected)) as owners:
            ledger = RedisUserLedger(MortalClient(connected, calls), owners, clock=deployment.clock)
            with suppress(Unavailable):
                async with ledger.write(user) as held:
                    held.touch(["m"])
        await process.log.recover()
        revision = await process.ledger.revision(user)
        assert revision.is_settled
        assert await process.profiles.stale(limit=9) == ([user] if revision.number else [])
        await process.profiles.put(user, {}, revision=revision.number, now=START)
        written += bool(revision.number)
    assert 0 < written < CALLS_MAX


async def test_users_of_a_dead_process_are_looked_at_again_whatever_became_of_its_marks(
    process: Process, deployment: Deployment, connected: Redis
) -> None:
    await talk(process, "t1")
    client = LogClient(connected)
    async with RedisOwners(client) as owners:
        log = RedisTurnLog(client, owners, clock=deployment.clock)
        await log.open(a_turn("t2"))
        await log.finish("t2", status=TurnStatus.FAILED, answer="", answered_at=START)
    for name in ("members", "marks"):
        await client.call("DEL", f"memproxy:{{due_summaries}}:{name}")
    assert await due(process) == []
    await process.log.recover()
    assert [one.session_id for one in await due(process)] == ["s1"]
