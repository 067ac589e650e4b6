"""Summaries of sessions: what is left out of them, and what is made after one was withdrawn. On every adapter."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from summarised_sessions import (
    IDLE,
    LATER,
    VECTOR,
    due,
    gone_and_due,
    learn_all,
    sessions_due,
    summarised,
    summary_of,
    talk,
)
from turn_logs import START, Deployment, Process, lease_at, tell

from memory.model import TurnStatus


@pytest.fixture
async def process(deployment: Deployment) -> AsyncIterator[Process]:
    async with deployment.start() as one:
        yield one


async def test_a_turn_that_is_left_out_withdraws_it_and_is_in_none_again(process: Process) -> None:
    await talk(process, "t1", "t2")
    await summarised(process, "t1", "t2")
    await process.summaries.leave_out("ann", ["t1", "unknown"])
    assert await gone_and_due(process)
    (session,) = await due(process)
    assert [turn.id for turn in await process.summaries.turns(session, limit=10)] == ["t2"]
    await summarised(process, "t2")
    await process.summaries.leave_out("ann", ["t1"])  # again: nothing changes
    await process.summaries.leave_out("bob", ["t2"])  # not theirs
    assert await process.summaries.of_session("ann", "s1") is not None


async def test_everything_said_before_a_time_is_left_out_in_its_project(process: Process) -> None:
    await talk(process, "t1", project="atlas")
    await talk(process, "t2", session="s2")
    await summarised(process, "t1")
    other = await summarised(process, "t2", session="s2")
    await process.summaries.leave_out_until("ann", project_id="atlas", until=START)  # said at START
    assert await process.summaries.of_session("ann", "s1") is None
    assert await process.summaries.of_session("ann", "s2") == other
    await process.summaries.leave_out_until("ann", project_id="", until=START - 1)
    assert await process.summaries.of_session("ann", "s2") == other
    await process.summaries.leave_out_until("ann", project_id="", until=START, spare=["t2"])
    assert await process.summaries.of_session("ann", "s2") == other
    await process.summaries.leave_out_until("ann", project_id="", until=START)
    assert await process.summaries.of_user("ann", limit=10) == []


async def test_ids_are_not_used_again_after_a_withdrawal(process: Process) -> None:
    await talk(process, "t1", "t2")
    ids = {(await summarised(process, "t1", "t2")).id}
    for number in range(3):
        await process.log.messages.delete_message("ann", f"turn:t{number % 2 + 1}:{'answer' if number < 2 else '0'}")
        if number:
            await process.summaries.settle(await process.summaries.withdrawn(limit=10))
        made = await summarised(process, "t1", "t2")
        assert made.version == 1
        ids.add(made.id)
    assert len(ids) == 4


async def test_withdrawn_summaries_of_one_session_are_settled_one_by_one(process: Process) -> None:
    await talk(process, "t1", "t2")
    first = await summarised(process, "t1", "t2")
    await process.summaries.leave_out("ann", ["t1"])
    early = await process.summaries.withdrawn(limit=10)
    second = await summarised(process, "t2")
    await process.summaries.leave_out("ann", ["t2"])
    assert [one.ids() for one in early] == [[first.id]]
    await process.summaries.settle(early)
    (late,) = await process.summaries.withdrawn(limit=10)
    assert late.ids() == [second.id]


async def test_current_summaries_are_found_by_id(process: Process) -> None:
    await talk(process, "t1")
    first = await summarised(process, "t1")
    await talk(process, "t2")
    second = await summarised(process, "t1", "t2")
    assert await process.summaries.get("ann", [first.id, second.id, "unknown"]) == [second]
    assert await process.summaries.get("bob", [second.id]) == []
    assert await process.summaries.get("ann", []) == []


async def test_only_turns_that_were_learnt_are_part_of_one(process: Process) -> None:
    await talk(process, "t1")
    await tell(process.log, "t2")
    lease = await lease_at(process.log, START + 1)
    assert lease is not None
    await process.log.move_to_dead_letters(lease, now=START, reason="a test")
    (session,) = await due(process)
    assert [turn.id for turn in await process.summaries.turns(session, limit=10)] == ["t1"]
    made = await summarised(process, "t1")
    await process.log.replay([lease.window_id])
    await learn_all(process)
    assert await process.summaries.of_session("ann", "s1") == made  # until the next version
    (session,) = await due(process)
    assert [turn.id for turn in await process.summaries.turns(session, limit=10)] == ["t1", "t2"]


async def test_a_turn_that_is_learnt_while_the_session_is_summarised_is_part_of_the_next(process: Process) -> None:
    await talk(process, "t1")
    await tell(process.log, "t2")
    lease = await lease_at(process.log, START + 1)
    assert lease is not None
    await process.log.move_to_dead_letters(lease, now=START, reason="a test")
    (session,) = await due(process)
    await process.log.replay([lease.window_id])
    await learn_all(process)
    assert not await process.summaries.put(session, summary_of(session, "t1"), VECTOR)


async def test_what_the_user_said_is_listed_in_pages_without_what_is_in_no_summary(process: Process) -> None:
    await talk(process, "t1", "t2")
    await talk(process, "t3", session="s2", project="atlas")
    await talk(process, "theirs", user="bob")
    await tell(process.log, "failed", status=TurnStatus.FAILED)
    await tell(process.log, "waiting")
    await process.summaries.leave_out("ann", ["t1"])

    async def said(project: str = "", until: float = START, after: int = 0, limit: int = 9) -> list[str]:
        found = await process.summaries.said("ann", project_id=project, until=until, after=after, limit=limit)
        return [one.turn_id for one in found]

    assert await said() == ["t2", "t3", "waiting"]
    assert await said("atlas") == ["t3"]
    assert await said(until=START - 1) == []
    (first,) = await process.summaries.said("ann", project_id="", until=START, after=0, limit=1)
    assert (first.turn_id, first.messages) == ("t2", ("words of t2",))
    assert await said(after=first.position) == ["t3", "waiting"]


async def test_expiry_in_batches_makes_one_new_summary(process: Process, deployment: Deployment) -> None:
    for number in range(4):
        deployment.clock.now = START + number
        await talk(process, f"t{number}")
    (session,) = await due(process, now=LATER + 9)
    assert await process.summaries.put(session, summary_of(session, "t0", "t1", "t2", "t3"), VECTOR)
    for number in range(1, 4):
        deployment.clock.now = START + 1e6 + 600 * number
        assert await process.log.messages.expire(before=START + number, limit=1) == 1
        assert await process.summaries.of_session("ann", "s1") is None
        assert await due(process, now=deployment.clock.now) == []
    assert await sessions_due(process, now=deployment.clock.now + IDLE) == [("ann", "s1")]


async def test_a_session_that_changes_is_due_again_though_it_was_tried(process: Process) -> None:
    await talk(process, "t1", "t2")
    (session,) = await due(process)
    await process.summaries.postpone(session, until=LATER + 60)
    assert await due(process) == []
    await process.summaries.leave_out("ann", ["t1"])
    (session,) = await due(process)
    assert session.tries == 0
