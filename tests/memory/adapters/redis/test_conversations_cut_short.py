"""Conversations on Redis: whoever dies while a turn is opened leaves it whole or not at all; and what a turn costs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from redis.asyncio import Redis
from redis_parts import MortalClient
from redis_server import redis_server
from tellers import Teller, sent
from turn_logs import START, Deployment, Process, a_turn, redis_deployment

from memory.adapters import tree_rules
from memory.adapters.redis.log_client import Command, LogClient, Reply
from memory.adapters.redis.owners import RedisOwners
from memory.adapters.redis.whole_log import RedisTurnLog
from memory.errors import Unavailable
from memory.model import SentConversation, TurnStatus

CALLS_MAX = 60
CALLS_OF_A_TURN_MAX = 20


class CountedClient(LogClient):
    """Counts round trips."""

    def __init__(self, client: Redis) -> None:
        super().__init__(client)
        self.count = 0

    async def calls(self, commands: Sequence[Command]) -> list[Reply]:
        self.count += bool(commands)
        return await super().calls(commands)


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


async def test_a_death_at_any_call_leaves_a_turn_with_all_that_it_fills_in_or_nothing(
    process: Process, deployment: Deployment, connected: Redis
) -> None:
    recorded, cut_short = 0, 0
    for calls in range(CALLS_MAX):
        tell = Teller(process, user=f"user-{calls}")
        _, session = await tell("a")
        turn = a_turn(f"late-{calls}", user=tell.user, session="new", text="d", at=START + 50)
        async with RedisOwners(LogClient(connected)) as owners:
            log = RedisTurnLog(MortalClient(connected, calls), owners, clock=deployment.clock)
            with suppress(Unavailable):
                await log.trees.open(turn, sent("abcd"))
        said = [one.messages[0].content for one in await tell.record()]
        assert said in (["a"], ["a", "b", "c", "d"])
        recorded, cut_short = recorded + (len(said) == 4), cut_short + (len(said) == 1)
        await process.log.recover()
        assert await process.log.trees.open(turn, sent("abcd")) == session
        await process.log.finish(turn.id, status=TurnStatus.CLOSED, answer="x", answered_at=START + 51)
        record = await tell.record()
        assert [one.messages[0].content for one in record] == ["a", "b", "c", "d"]
        assert (record[-1].status, record[-1].answer) in ((TurnStatus.CLOSED, "x"), (TurnStatus.UNKNOWN, ""))
        assert len(await tell.learn()) == 4
    assert recorded > 5
    assert cut_short > 5


async def test_a_shift_is_found_whenever_the_process_dies_that_abandons_a_learnt_turn(
    process: Process, deployment: Deployment, connected: Redis
) -> None:
    shifted = 0
    for calls in range(CALLS_MAX):
        tell = Teller(process, user=f"user-{calls}")
        await tell("a")
        old, _ = await tell("ab")
        await tell.learn()
        async with RedisOwners(LogClient(connected)) as owners:
            log = RedisTurnLog(MortalClient(connected, calls), owners, clock=deployment.clock)
            with suppress(Unavailable):
                turn = a_turn(f"new-{calls}", user=tell.user, session="new", text="c", at=START + 50)
                await log.trees.open(turn, sent("ac"))
        is_recorded = len(await tell.record()) == 3
        trees = process.log.trees
        assert await trees.next_shift() == (tell.user if is_recorded else None)
        shift = await trees.shift(tell.user)
        assert [one.turn_id for one in shift.abandoned] == ([old] if is_recorded else [])
        await trees.settle(tell.user, shift)
        shifted += is_recorded
    assert 5 < shifted < CALLS_MAX - 5


async def test_what_a_turn_costs_does_not_depend_on_the_length_of_its_conversation(
    process: Process, deployment: Deployment, connected: Redis
) -> None:
    client = CountedClient(connected)
    counts: list[int] = []
    async with RedisOwners(LogClient(connected)) as owners:
        log = RedisTurnLog(client, owners, clock=deployment.clock)
        tell = Teller(replace(process, log=log))
        path = ""
        for number in range(60):
            path += chr(ord("A") + number % 26)
            before = client.count
            turn = a_turn(f"t{number}", session="s", text=path[-1], at=START + number)
            await log.trees.open(turn, sent(path, answers="x" * number))
            counts.append(client.count - before)
            await log.finish(turn.id, status=TurnStatus.CLOSED, answer="x", answered_at=START + number)
        assert len({one.scope.session_id for one in await tell.record()}) == 1
    assert max(counts[2:]) <= CALLS_OF_A_TURN_MAX
    assert counts[2] == counts[-1]


async def test_the_oldest_digests_of_what_was_said_go(process: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree_rules, "DIGESTS_MAX", 3)
    monkeypatch.setattr(tree_rules, "PRUNED_EVERY", 1)
    trees, tell = process.log.trees, Teller(process)
    texts = [f"The {number}th thing that I said today." for number in range(6)]
    for number, text in enumerate(texts):
        turn = a_turn(f"t{number}", session=f"s{number}", text=text, at=START + number)
        await trees.open(turn, SentConversation((text,)))
    said = [replace(sent("ab").earlier[0], key="", said=turn.messages) for turn in await tell.record()]
    assert await trees.known("ann", said) == [False, False, False, True, True, True]
