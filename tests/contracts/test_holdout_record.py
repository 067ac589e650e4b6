"""Recorded turns with the arms in their receipts: all users', in the order of opening. On every adapter."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from redis_parts import REDIS_KINDS, shared_client
from turn_logs import DEPLOYMENTS, START, Process, a_turn, adapters

from memory.adapters.redis.holdout_record import RedisHoldoutRecord
from memory.adapters.sqlite.database import SqliteDatabase
from memory.adapters.sqlite.holdout_record import SqliteHoldoutRecord
from memory.model import RecallStatus, Receipt, TurnStatus
from memory.model.arms import Arm, ComparedTurn
from memory.ports.holdouts import HoldoutRecord

Opener = Callable[[], AbstractAsyncContextManager[tuple[Process, HoldoutRecord]]]


@pytest.fixture(params=adapters())
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Opener:
    kind = request.param
    deployment = DEPLOYMENTS[kind](tmp_path)
    (tmp_path / "redis-begun").touch()  # the deployment has emptied the server

    @asynccontextmanager
    async def both() -> AsyncIterator[tuple[Process, HoldoutRecord]]:
        async with deployment.start() as process:
            if kind in REDIS_KINDS:
                async with shared_client(tmp_path, is_cluster=REDIS_KINDS[kind]) as client:
                    yield process, RedisHoldoutRecord(client)
            else:
                async with SqliteDatabase(tmp_path / "turns.sqlite") as database:
                    yield process, SqliteHoldoutRecord(database)

    return both


async def asked(process: Process, turn_id: str, *, user: str, arm: str = "", at: float = START) -> None:
    """A turn, and its receipt if it has an arm."""
    if arm:
        signals = {"arm": arm, "note_tokens": 40}
        process.receipts.keep(Receipt(f"r-{turn_id}", user, at, RecallStatus.USED, "found", signals))
        while await process.receipts.get(user, f"r-{turn_id}") is None:
            await asyncio.sleep(0.01)
    turn = replace(a_turn(turn_id, user=user, status=TurnStatus.CLOSED, at=at), answer="in Ulm")
    await process.log.append(replace(turn, receipt_id=f"r-{turn_id}" if arm else ""))


async def found(record: HoldoutRecord, *, since: float = 0.0) -> list[ComparedTurn]:
    return [turn async for turn in record.turns(since=since)]


async def test_turns_with_receipts_come_in_the_order_of_opening_whosever_they_are(opened: Opener) -> None:
    async with opened() as (process, record):
        await asked(process, "t1", user="bob", arm="held_out", at=START + 9)
        await asked(process, "t2", user="ann", arm="noted", at=START)
        await asked(process, "t3", user="ann")
        await asked(process, "t4", user="bob", arm="held_out", at=START + 5)
        turns = await found(record)
        assert [(turn.at - START, turn.arm) for turn in turns] == [
            (9, Arm("held_out")),
            (0, Arm("noted")),
            (5, Arm("held_out")),
        ]
        assert turns[0].session == turns[2].session != turns[1].session
        assert {turn.note_tokens for turn in turns} == {40}
        assert all(turn.answer_tokens for turn in turns)
        assert [turn.at - START for turn in await found(record, since=START + 6)] == [9]


async def test_what_learning_saw_is_in_it_and_an_erased_receipt_is_not(opened: Opener) -> None:
    async with opened() as (process, record):
        await asked(process, "t1", user="ann", arm="noted")
        await process.receipts.amend("ann", "r-t1", {"corrections": 2, "repeated_facts": 1})
        (turn,) = await found(record)
        assert (turn.corrections, turn.repeated_facts) == (2, 1)
        await process.receipts.erase("ann")
        assert await found(record) == []
