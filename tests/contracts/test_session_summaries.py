"""Summaries of sessions: due once a session is over, gone with any turn that they stand on. On every adapter."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import numpy as np
import pytest
from summarised_sessions import (
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
from turn_logs import START, Deployment, Process, a_turn, ids_of, lease_at, tell

from memory.model import SentConversation, SentExchange, TurnStatus
from memory.ports import Trimming


@pytest.fixture
async def process(deployment: Deployment) -> AsyncIterator[Process]:
    async with deployment.start() as one:
        yield one


async def test_a_session_is_due_once_it_is_idle_and_no_longer_when_it_has_a_summary(deployment: Deployment) -> None:
    async with deployment.start() as one, deployment.start() as two:
        assert await due(one) == []
        await talk(one, "t1")
        assert await due(two, now=LATER - 1) == []
        assert await sessions_due(two) == [("ann", "s1")]
        made = await summarised(two, "t1")
        assert await due(one) == []
        assert await one.summaries.of_session("ann", "s1") == made
        assert await one.summaries.of_session("bob", "s1") is None
    async with deployment.start() as later:
        assert await later.summaries.of_session("ann", "s1") == made


async def test_an_ended_session_is_due_at_once_until_it_goes_on(process: Process) -> None:
    await talk(process, "t1")
    assert not await process.summaries.is_ended("ann", "s1")
    await process.summaries.end("ann", "s1")
    await process.summaries.end("bob", "s1")  # none of that user
    assert await process.summaries.is_ended("ann", "s1")
    assert await sessions_due(process, now=START) == [("ann", "s1")]
    await talk(process, "t2")
    assert not await process.summaries.is_ended("ann", "s1")
    assert await sessions_due(process, now=START) == []


async def test_imported_history_is_due_like_a_live_session(process: Process) -> None:
    await process.log.append(a_turn("t1", status=TurnStatus.CLOSED, at=START - 1e7))
    await process.log.append(a_turn("t1", status=TurnStatus.CLOSED, at=START - 1e7))  # known: ignored
    await learn_all(process)
    assert await sessions_due(process) == [("ann", "s1")]


async def test_what_is_still_to_be_answered_or_learnt_holds_its_session_back(process: Process) -> None:
    await tell(process.log, "t1")
    assert await due(process) == []  # nobody has read it: it may ask to be forgotten
    await learn_all(process)
    await process.log.open(a_turn("t2"))
    assert await due(process) == []
    await process.log.finish("t2", status=TurnStatus.FAILED, answer="", answered_at=START)
    assert await sessions_due(process) == [("ann", "s1")]


async def test_a_dead_letter_does_not_hold_its_session_back_for_ever(process: Process) -> None:
    await tell(process.log, "t1")
    lease = await lease_at(process.log, START + 1)
    assert lease is not None
    await process.log.move_to_dead_letters(lease, now=START, reason="a test")
    assert await sessions_due(process) == [("ann", "s1")]


async def test_one_session_of_each_user_the_longest_waiting_first(process: Process, deployment: Deployment) -> None:
    for number, (user, session) in enumerate((("ann", "s1"), ("ann", "s2"), ("bob", "s1"))):
        deployment.clock.now = START + number
        await talk(process, f"t{number}", user=user, session=session)
    assert await sessions_due(process, now=LATER + 9) == [("ann", "s1"), ("bob", "s1")]
    assert len(await due(process, now=LATER + 9, limit=1)) == 1


async def test_a_postponed_session_lets_the_others_through(process: Process, deployment: Deployment) -> None:
    await talk(process, "t1")
    deployment.clock.now = START + 1
    await talk(process, "t2", session="s2")
    (first,) = await due(process, now=LATER + 1)
    assert (first.session_id, first.tries) == ("s1", 0)
    await process.summaries.postpone(first, until=LATER + 60)
    assert await sessions_due(process, now=LATER + 1) == [("ann", "s2")]
    (again,) = await due(process, now=LATER + 60)
    assert (again.session_id, again.tries) == ("s1", 1)


async def test_its_turns_are_those_that_were_learnt_in_the_order_said(process: Process) -> None:
    await talk(process, "t1", "t2", "t3")
    await talk(process, "other", session="s2")
    await talk(process, "theirs", user="bob")
    await tell(process.log, "failed", status=TurnStatus.FAILED)
    await process.log.withdraw("ann", opened_before=START + 9, only=["t9"])
    (session,) = [one for one in await due(process) if (one.user_id, one.session_id) == ("ann", "s1")]
    assert [turn.id for turn in await process.summaries.turns(session, limit=10)] == ["t1", "t2", "t3"]
    assert [turn.id for turn in await process.summaries.turns(session, limit=2)] == ["t2", "t3"]
    (turn, *_) = await process.summaries.turns(session, limit=10)
    assert (turn.messages[0].content, turn.answer) == ("words of t1", "answer to t1")


async def test_a_session_that_goes_on_keeps_its_summary_until_the_next_version(process: Process) -> None:
    await talk(process, "t1")
    first = await summarised(process, "t1")
    await talk(process, "t2")
    assert await process.summaries.of_session("ann", "s1") == first
    second = await summarised(process, "t1", "t2")
    assert (first.version, second.version) == (1, 2)
    assert first.id != second.id
    assert [one.summary for one in await process.summaries.of_user("ann", limit=10)] == [second]
    assert await process.summaries.withdrawn(limit=10) == []  # notes with the first may stay


async def test_a_summary_of_a_session_that_has_changed_meanwhile_is_refused(process: Process) -> None:
    await talk(process, "t1")
    (before,) = await due(process)
    await talk(process, "t2")
    assert not await process.summaries.put(before, summary_of(before, "t1"), VECTOR)
    (before,) = await due(process)
    await process.log.messages.delete_turns("ann", ["t1"])
    assert not await process.summaries.put(before, summary_of(before, "t1", "t2"), VECTOR)
    assert await process.summaries.of_session("ann", "s1") is None
    assert await sessions_due(process) == [("ann", "s1")]


async def test_deleting_a_turn_or_a_message_withdraws_it(process: Process) -> None:
    await talk(process, "t1", "t2")
    made = await summarised(process, "t1", "t2")
    await process.log.messages.delete_message("ann", "turn:t2:answer")
    assert await gone_and_due(process)
    (withdrawn,) = await process.summaries.withdrawn(limit=10)
    assert withdrawn.ids() == [made.id]
    await process.summaries.settle([withdrawn])
    assert await process.summaries.withdrawn(limit=10) == []
    await summarised(process, "t1", "t2")
    await process.log.messages.delete_turns("ann", ["t1"])
    assert await gone_and_due(process)


async def test_the_answer_of_a_tool_loop_that_comes_later_leaves_it(process: Process) -> None:
    await talk(process, "t1")
    await process.log.open(a_turn("t2"))
    await process.log.finish("t2", status=TurnStatus.CLOSED, answer="", answered_at=START + 1)
    await learn_all(process)
    made = await summarised(process, "t1", "t2")
    await process.log.complete("t2", answer="Booked.", answered_at=START + 2)
    assert await process.summaries.of_session("ann", "s1") == made
    assert await process.summaries.withdrawn(limit=10) == []


async def test_all_versions_of_a_withdrawn_summary_are_named(process: Process) -> None:
    await talk(process, "t1")
    first = await summarised(process, "t1")
    await talk(process, "t2")
    second = await summarised(process, "t1", "t2")
    await process.log.messages.delete_turns("ann", ["t1"])
    assert await gone_and_due(process, version=2)
    (withdrawn,) = await process.summaries.withdrawn("ann", limit=10)
    assert withdrawn.ids() == [first.id, second.id]
    assert await process.summaries.withdrawn("bob", limit=10) == []


async def test_trimming_and_compressing_and_expiry_withdraw_it(process: Process) -> None:
    await talk(process, "t1", "t2")
    await summarised(process, "t1", "t2")
    assert await process.log.messages.compress(Trimming("ann", "s1", 0), characters_max=5)
    assert await gone_and_due(process)
    await process.summaries.settle(await process.summaries.withdrawn(limit=10))
    await summarised(process, "t1", "t2")
    await process.log.messages.trim(Trimming("ann", "s1", 2))
    assert await gone_and_due(process)
    await process.summaries.settle(await process.summaries.withdrawn(limit=10))
    await summarised(process, "t2")
    await process.log.messages.expire(before=START + 9, limit=10)
    assert await process.summaries.of_session("ann", "s1") is None
    assert await due(process) == []  # nothing is left of the session


async def test_abandoning_a_branch_withdraws_it_and_so_does_resuming(process: Process) -> None:
    trees = process.log.trees

    async def send(turn_id: str, *keys: str) -> None:
        earlier = tuple(SentExchange(key, (), "") for key in keys[:-1])
        sent = SentConversation((keys[-1],), earlier, is_session_given=True)
        await trees.open(a_turn(turn_id), sent)
        await process.log.finish(turn_id, status=TurnStatus.CLOSED, answer="so", answered_at=START)
        await learn_all(process)

    await send("t1", "a")
    await send("t2", "a", "b")
    await summarised(process, "t1", "t2")
    await send("t3", "a", "c")
    assert await gone_and_due(process, now=LATER)
    (session,) = await due(process)
    assert [turn.id for turn in await process.summaries.turns(session, limit=10)] == ["t1", "t3"]
    await process.summaries.settle(await process.summaries.withdrawn(limit=10))
    await summarised(process, "t1", "t3")
    await send("t4", "a", "b", "d")
    assert await gone_and_due(process, now=LATER)
    (session,) = await due(process)
    assert [turn.id for turn in await process.summaries.turns(session, limit=10)] == ["t1", "t2", "t4"]


async def test_a_session_without_substance_is_looked_at_once(process: Process) -> None:
    await talk(process, "t1")
    (session,) = await due(process)
    assert await process.summaries.put(session, None, None)
    assert await due(process) == []
    assert await process.summaries.is_ended("ann", "s1")
    await talk(process, "t2")
    await summarised(process, "t1", "t2")
    await talk(process, "t3")
    (session,) = await due(process)
    assert await process.summaries.put(session, None, None)
    assert await process.summaries.of_session("ann", "s1") is None
    assert len(await process.summaries.withdrawn(limit=10)) == 1


async def test_a_user_gets_their_own_newest_first_with_vectors(process: Process) -> None:
    for number in range(3):
        await talk(process, f"t{number}", session=f"s{number}")
        (session,) = await due(process)
        made = replace(summary_of(session, f"t{number}"), last_at=START + (number * 7) % 3)
        await process.summaries.put(session, made, VECTOR if number else None)
    await talk(process, "theirs", user="bob")
    await summarised(process, "theirs", user="bob")
    found = await process.summaries.of_user("ann", limit=10)
    assert [one.summary.session_id for one in found] == ["s2", "s1", "s0"]
    assert [one.vector is None for one in found] == [False, False, True]
    assert found[0].vector is not None
    assert np.allclose(found[0].vector, VECTOR, atol=1e-3)
    assert len(await process.summaries.of_user("ann", limit=2)) == 2


async def test_erasing_leaves_nothing_of_that_user(process: Process) -> None:
    await talk(process, "t1")
    await talk(process, "t2", session="s2")
    await talk(process, "theirs", user="bob")
    await summarised(process, "t1")
    theirs = await summarised(process, "theirs", user="bob")
    await process.summaries.leave_out("ann", ["t2"])
    await process.summaries.erase("ann")
    assert await process.summaries.of_user("ann", limit=10) == []
    assert await process.summaries.withdrawn(limit=10) == []
    assert await due(process) == []
    assert await process.summaries.of_session("bob", "s1") == theirs


async def test_deleting_all_turns_of_a_session_leaves_nothing_due(process: Process) -> None:
    await talk(process, "t1", "t2")
    await summarised(process, "t1", "t2")
    await process.log.messages.erase("ann", before=START + 9)
    assert await process.summaries.of_session("ann", "s1") is None
    assert await due(process) == []
    assert ids_of(await lease_at(process.log, START + 9)) == []
