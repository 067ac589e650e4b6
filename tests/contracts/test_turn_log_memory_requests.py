"""What a user asks of memory goes past what its session waits for; nothing else does. On every turn log."""

from __future__ import annotations

import pytest
from turn_logs import START, ids_of, lease_at, tell

from memory.model import Urgency
from memory.ports import LearnDue, Lease, TurnLog

ASKS = Urgency(0.9, is_explicit=True, asks_memory=True)
CORRECTS = Urgency(0.9, is_explicit=True)
PATIENT = LearnDue(batch_turns_max=10, idle_seconds=30.0, turns_at_once=10, tokens_at_once=1_000)
RETRY = START + 300


async def leased(log: TurnLog, now: float = START) -> Lease:
    lease = await lease_at(log, now, PATIENT)
    assert lease is not None
    return lease


async def put_off(log: TurnLog, *turns: str) -> None:
    """A window of these turns, that waits for its retry."""
    for turn in turns:
        await tell(log, turn)
    await log.make_due_now("ann")
    await log.retry_at(await leased(log), due_at=RETRY, reason="the model is down", outage_since=START)


async def test_a_request_goes_past_a_window_of_its_session_that_waits_and_takes_the_turns_before_it_along(
    log: TurnLog,
) -> None:
    await put_off(log, "t1", "t2")
    for turn in ("t3", "forget", "t5"):
        await tell(log, turn)
    await log.mark({"t3": Urgency(0.5), "forget": ASKS, "t5": Urgency(0.5)})
    lease = await leased(log)
    assert ids_of(lease) == ["t3", "forget"]
    assert [turn.id for turn in await log.context(lease, limit=9)] == ["t1", "t2"]
    await log.acknowledge(lease)
    assert await lease_at(log, RETRY - 1, PATIENT) is None  # what came after it waits as it should
    again = await leased(log, RETRY)
    assert (ids_of(again), again.outages) == (["t1", "t2"], 1)
    await log.acknowledge(again)
    assert ids_of(await leased(log, RETRY)) == ["t5"]


async def test_a_request_that_has_to_be_tried_again_goes_past_it_again(log: TurnLog) -> None:
    await put_off(log, "t1")
    await tell(log, "forget")
    await log.mark({"forget": ASKS})
    await log.retry_at(await leased(log), due_at=START + 5, reason="the store is down", outage_since=START)
    assert await lease_at(log, START + 4, PATIENT) is None
    assert ids_of(await leased(log, START + 5)) == ["forget"]


async def test_where_the_window_before_it_is_due_too_the_order_is_kept(log: TurnLog) -> None:
    await put_off(log, "t1")
    await tell(log, "forget")
    await log.mark({"forget": ASKS})
    first = await leased(log, RETRY)
    assert ids_of(first) == ["t1"]
    await log.acknowledge(first)
    assert ids_of(await leased(log, RETRY)) == ["forget"]


@pytest.mark.parametrize("urgency", [CORRECTS, Urgency(0.5), Urgency(0.5, ends_topic=True)])
async def test_nothing_else_goes_past_it(log: TurnLog, urgency: Urgency) -> None:
    await put_off(log, "t1")
    await tell(log, "t2")
    await log.mark({"t2": urgency})
    await log.make_due_now("ann")
    assert await lease_at(log, RETRY - 1, PATIENT) is None
    assert ids_of(await leased(log, RETRY)) == ["t1"]


async def test_while_somebody_works_for_the_user_a_request_waits(log: TurnLog) -> None:
    await tell(log, "t1")
    await log.make_due_now("ann")
    held = await leased(log)
    await tell(log, "forget")
    await log.mark({"forget": ASKS})
    assert await lease_at(log, START + 29, PATIENT) is None
    await log.acknowledge(held)
    assert ids_of(await leased(log, START + 29)) == ["forget"]


async def test_what_waits_behind_a_request_that_was_learnt_is_not_taken_for_one(log: TurnLog) -> None:
    await tell(log, "forget")
    await log.mark({"forget": ASKS})
    await log.acknowledge(await leased(log))
    await put_off(log, "t2")
    await tell(log, "t3")
    await log.mark({"t3": CORRECTS})
    assert await lease_at(log, RETRY - 1, PATIENT) is None
