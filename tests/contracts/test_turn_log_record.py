"""The turn log as the record of what was said: the port's promises, on every adapter."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from turn_logs import START, Deployment, a_turn, ids_of, lease_at, leased, tell, windows

from memory.adapters.sql.recording_times import OPEN_SECONDS_MAX
from memory.errors import BadInput
from memory.model import Message, Scope, Turn, TurnStatus
from memory.ports import LearnDue, TurnLog


async def recorded(log: TurnLog, user: str = "ann", session: str = "") -> list[Turn]:
    return [turn async for turn in log.turns(user, session_id=session)]


async def test_a_turn_comes_back_as_it_was_told(log: TurnLog) -> None:
    turn = Turn(
        id="t1",
        scope=Scope("ann", project_id="p", session_id="s", agent_id="a"),
        at=START + 0.123456,
        messages=(Message("user", "Grüße, 你好 \ud83d \x00 'quoted\""), Message("user", "look", is_tool_traffic=True)),
        model="m\udce4",
        trace_id="00-abc",
        utc_offset=-28_800,
    )
    await log.open(turn)
    assert await recorded(log) == [turn]
    await log.finish("t1", status=TurnStatus.CLOSED, answer="ok \udfff", answered_at=START + 2.5, receipt_id="r1")
    finished = replace(turn, receipt_id="r1", status=TurnStatus.CLOSED, answer="ok \udfff", answered_at=START + 2.5)
    assert await recorded(log) == [finished]
    lease = await leased(log, START)
    assert lease.turns == (finished,)
    await log.acknowledge(lease)
    assert await recorded(log) == [finished]  # what was learnt stays
    assert await lease_at(log, START + 1e6) is None
    old = replace(a_turn("old", at=START - 1e7, status=TurnStatus.CLOSED), answer="noted", answered_at=START - 1e7)
    await log.append(old)  # history, with its own date
    assert (await lease_at(log, START)).turns == (old,)  # type: ignore[union-attr]


@pytest.mark.parametrize("status", [TurnStatus.FAILED, TurnStatus.ABORTED])
async def test_failed_and_aborted_turns_teach_nothing_and_get_no_answer(log: TurnLog, status: TurnStatus) -> None:
    await tell(log, "broken", status=status, answer="")
    await log.complete("broken", answer="other", answered_at=START)
    assert [(turn.status, turn.answer) for turn in await recorded(log)] == [(status, "")]
    assert await lease_at(log, START + 99) is None
    assert (await log.backlog("ann", opened_before=START + 99)).pending == 0


async def test_only_the_first_end_of_a_turn_counts(log: TurnLog) -> None:
    await log.finish("t1", status=TurnStatus.ABORTED, answer="", answered_at=START)  # before its open: never heard of
    await tell(log, "t1")
    await log.finish("t1", status=TurnStatus.FAILED, answer="other", answered_at=START)
    await log.open(a_turn("t1", text="again"))
    await log.append(a_turn("t1", text="again", status=TurnStatus.CLOSED))
    (turn,) = await recorded(log)
    assert (turn.status, turn.answer, turn.messages[0].content) == (TurnStatus.CLOSED, "answer to t1", "words of t1")
    assert ids_of(await lease_at(log, START)) == ["t1"]


async def test_an_end_told_right_after_the_beginning_is_never_lost(log: TurnLog) -> None:
    """The calls are made in order, but nobody waits for the first before making the second."""
    for number in range(20):
        turn_id = f"t{number}"
        finished = log.finish(turn_id, status=TurnStatus.CLOSED, answer="", answered_at=START)
        await asyncio.gather(log.open(a_turn(turn_id)), finished)
    assert {turn.status for turn in await recorded(log)} == {TurnStatus.CLOSED}


async def test_open_and_append_refuse_each_others_turns(log: TurnLog) -> None:
    for call in (
        log.open(a_turn("t1", status=TurnStatus.CLOSED)),
        log.append(a_turn("t1")),
        log.finish("t1", status=TurnStatus.OPENED, answer="", answered_at=START),
    ):
        with pytest.raises(BadInput):
            await call


async def test_the_record_is_one_users_and_in_the_order_of_opening(log: TurnLog) -> None:
    for number in range(120):  # more than a page
        await log.append(a_turn(f"t{number}", session=f"s{number % 2}", at=START - number, status=TurnStatus.CLOSED))
    assert [turn.id for turn in await recorded(log)] == [f"t{number}" for number in range(120)]
    assert [turn.id for turn in await recorded(log, session="s1")] == [f"t{number}" for number in range(1, 120, 2)]
    for user in ("a", "A", "a%", "ä", "a\u0308", "' OR 1=1 --"):
        await tell(log, f"of {user}", user=user)
        assert [turn.id for turn in await recorded(log, user)] == [f"of {user}"]
        assert (await log.backlog(user, opened_before=START + 1)).pending == 1


async def test_what_is_too_large_is_cut_and_what_came_last_is_kept(log: TurnLog) -> None:
    long = "é" * 700_000  # 1.4 MB
    last = Message("user", "my locker is 17")
    await log.open(replace(a_turn("t1"), messages=(Message("user", "oldest"), Message("user", long), last)))
    await log.finish("t1", status=TurnStatus.CLOSED, answer=long, answered_at=START)
    (turn,) = await recorded(log)
    assert turn.messages[1:] == (last,)
    assert sum(len(message.content.encode()) for message in turn.messages) <= 1 << 20
    assert 400_000 < len(turn.messages[0].content) < 700_000
    assert long.startswith(turn.messages[0].content)
    assert long.startswith(turn.answer)
    assert len(turn.answer.encode()) <= 1 << 20


async def test_turns_of_a_process_that_died_become_unknown_and_are_learnt(deployment: Deployment, log: TurnLog) -> None:
    async with deployment.start() as mortal:
        await mortal.log.open(a_turn("t1"))
        await tell(mortal.log, "t2")
        assert await log.recover() == 0  # it lives
        assert ids_of(await lease_at(log, START)) == ["t2"]
    await log.open(a_turn("t3", user="bob"))
    assert [await log.recover() for _ in range(2)] == [1, 0]
    assert [turn.status for turn in await recorded(log)] == [TurnStatus.UNKNOWN, TurnStatus.CLOSED]
    assert ids_of(await lease_at(log, START + 99)) == ["t2"]  # first in its session to become a window
    assert (await recorded(log, "bob"))[0].status is TurnStatus.OPENED  # our own


@pytest.mark.parametrize("is_killed", [True, False])
async def test_what_nobody_observes_becomes_unknown(deployment: Deployment, log: TurnLog, *, is_killed: bool) -> None:
    """Their observer died; or there was none, and an hour has gone."""
    await log.times.beat()
    async with deployment.start() as mortal:
        await mortal.log.times.beat()
        await log.open(a_turn("t1"))
        if not is_killed:
            await mortal.log.times.end()
    deployment.clock.now += 5
    await log.times.beat()
    assert (await recorded(log))[0].status is (TurnStatus.UNKNOWN if is_killed else TurnStatus.OPENED)
    deployment.clock.now += OPEN_SECONDS_MAX
    await log.times.beat()
    assert (await recorded(log))[0].status is TurnStatus.UNKNOWN
    await end(log, "t1")
    assert [(turn.status, turn.answer) for turn in await recorded(log)] == [(TurnStatus.CLOSED, "answer to t1")]


@asynccontextmanager
async def taken_for_dead(deployment: Deployment, *turn_ids: str) -> AsyncIterator[TurnLog]:
    """Each of these turns is unknown, in a session of its own: its process stood still, and the others took it for
    dead. Here, another one goes on in its name.
    """
    async with deployment.start() as survivor:
        async with deployment.start() as still:
            for turn_id in turn_ids:
                await still.log.open(a_turn(turn_id, session=turn_id))
        assert await survivor.log.recover() == len(turn_ids)
        yield survivor.log


async def end(log: TurnLog, turn_id: str, *, answer: str = "", status: TurnStatus = TurnStatus.CLOSED) -> None:
    answer = answer or f"answer to {turn_id}"
    await log.finish(turn_id, status=status, answer=answer, answered_at=START + 2, receipt_id="r1")


async def test_a_turn_whose_process_only_stood_still_gets_its_answer_after_all(deployment: Deployment) -> None:
    async with taken_for_dead(deployment, "learnt", "in work", "late", "aborted", "withdrawn", "loop") as log:
        await log.withdraw("ann", opened_before=START + 99, only=("withdrawn",))
        learnt = await leased(log, START + 99)
        await log.acknowledge(learnt)
        in_work = await leased(log, START + 99)
        assert (ids_of(learnt), ids_of(in_work)) == (["learnt"], ["in work"])
        await end(log, "aborted", status=TurnStatus.ABORTED)
        await log.complete("loop", answer="answer to loop", answered_at=START + 3)
        await log.finish("loop", status=TurnStatus.CLOSED, answer="", answered_at=START + 2, receipt_id="r1")
        for turn_id in ("learnt", "in work", "late", "withdrawn"):
            await end(log, turn_id)
        await end(log, "late", answer="once more")
        found = {turn.id: (turn.status, turn.answer, turn.receipt_id) for turn in await recorded(log)}
        assert found.pop("loop") == (TurnStatus.CLOSED, "answer to loop", "")
        closed = {one: (TurnStatus.CLOSED, f"answer to {one}", "r1") for one in found if one != "aborted"}
        assert found == closed | {"aborted": (TurnStatus.UNKNOWN, "", "")}
        assert [turn.answered_at for turn in await recorded(log)][-1] == START + 3
        await log.acknowledge(in_work)
        assert await windows(log, START + 99) == [["late"], ["aborted"], ["loop"]]


async def test_an_answer_after_all_is_nothing_of_a_turn_that_was_erased(deployment: Deployment) -> None:
    async with taken_for_dead(deployment, "t1") as log, deployment.start() as other:
        async with other.ledger.write("ann") as held:
            await held.advance_erase_epoch()
        await end(log, "t1")
        assert deployment.places_with("ann") == deployment.places_with("answer to t1") == []


async def test_the_final_answer_of_a_tool_loop_goes_to_the_turn_that_has_none(log: TurnLog) -> None:
    await tell(log, "t1", answer="")
    await log.complete("t1", answer="It rains ☔", answered_at=START + 3)
    (turn,) = await recorded(log)
    assert (turn.answer, turn.answered_at, turn.status) == ("It rains ☔", START + 3, TurnStatus.CLOSED)
    lease = await leased(log, START + 4)
    assert [one.answer for one in lease.turns] == ["It rains ☔"]
    await log.acknowledge(lease)
    await tell(log, "t2", answer="")
    lease = await leased(log, START + 4)
    await log.complete("t2", answer="late", answered_at=START + 5)  # while it is being learnt
    await log.acknowledge(lease)
    assert [turn.answer for turn in await recorded(log)] == ["It rains ☔", "late"]


async def test_an_answer_that_comes_late_is_counted_with_its_session(deployment: Deployment) -> None:
    """A session is due at so many tokens: what comes in is taken out again, so that the count stays right."""
    due = LearnDue(idle_seconds=1e9, turns_at_once=1_000, tokens_at_once=1_000)
    async with taken_for_dead(deployment, "t1") as log:
        assert await windows(log, START, due) == []
        await end(log, "t1", answer="x" * 4_100)
        assert await windows(log, START, due) == [["t1"]]
        await tell(log, "t2", answer="")
        assert await windows(log, START, due) == []
        await log.complete("t2", answer="x" * 4_100, answered_at=START)
        assert await windows(log, START, due) == [["t2"]]
        await tell(log, "t3")
        assert await windows(log, START, due) == []
