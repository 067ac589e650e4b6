"""Summaries are due once a session is over, and gone with any turn that they stand on. On every adapter."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
from recorded import learn_all
from turn_logs import START, Deployment, Process, a_turn, leased, tell

from memory.model import DueSession, SentConversation, SentExchange, SessionSummary, TurnStatus
from memory.ports import Trimming

IDLE = 1_800.0
LATER = START + IDLE
VECTOR = np.array([0.6, 0.8], dtype=np.float32)


async def talk(process: Process, *turn_ids: str, user: str = "ann", session: str = "s1", project: str = "") -> None:
    """Turns that were said and learnt."""
    for turn_id in turn_ids:
        await tell(process.log, turn_id, user=user, session=session, project=project)
    await learn_all(process.log)


async def due(process: Process, *, now: float = LATER, limit: int = 10) -> list[DueSession]:
    return await process.summaries.due(now=now, idle_seconds=IDLE, limit=limit)


async def sessions_due(process: Process, *, now: float = LATER) -> list[tuple[str, str]]:
    return [(one.user_id, one.session_id) for one in await due(process, now=now)]


async def turns_due(process: Process) -> list[str]:
    """Those of the one session that is due."""
    (session,) = await due(process)
    return [turn.id for turn in await process.summaries.turns(session, limit=10)]


def summary_of(session: DueSession, *turn_ids: str) -> SessionSummary:
    of = session.user_id, session.session_id, session.version + 1
    made = SessionSummary(*of, "The boat", "We sailed.", START, START + 1, turn_ids, made_by="a test", made_at=LATER)
    return replace(made, series=session.series)


async def due_session(process: Process, user: str = "ann", session: str = "s1", *, now: float = LATER) -> DueSession:
    """That one of those that are due."""
    (found,) = [one for one in await due(process, now=now) if (one.user_id, one.session_id) == (user, session)]
    return found


async def summarised(process: Process, *turn_ids: str, user: str = "ann", session: str = "s1") -> SessionSummary:
    found = await due_session(process, user, session)
    made = summary_of(found, *turn_ids)
    assert await process.summaries.put(found, made, VECTOR)
    return made


async def gone_and_due(process: Process, version: int = 1, *, now: float = START) -> bool:
    """The summary is gone, notes with it are to be dropped, and the session is due again, at once since it is over."""
    is_gone = await process.summaries.of_session("ann", "s1") is None
    told = [(one.session_id, one.version) for one in await process.summaries.withdrawn("ann", limit=10)]
    return is_gone and told == [("s1", version)] and ("ann", "s1") in await sessions_due(process, now=now)


async def test_a_session_is_due_once_it_is_idle(deployment: Deployment, process: Process, other: Process) -> None:
    assert await due(process) == []
    await talk(process, "t1")
    assert await due(other, now=LATER - 1) == []
    assert await sessions_due(other) == [("ann", "s1")]
    made = await summarised(other, "t1")
    assert await due(process) == []
    assert await process.summaries.of_session("bob", "s1") is None
    async with deployment.start() as later:
        assert await later.summaries.of_session("ann", "s1") == made


async def test_an_ended_session_is_due_at_once_until_it_goes_on(process: Process) -> None:
    await talk(process, "t1")
    assert not await process.summaries.is_ended("ann", "s1")
    for user in ("ann", "bob"):  # who has none
        await process.summaries.end(user, "s1")
    assert await process.summaries.is_ended("ann", "s1")
    assert await sessions_due(process, now=START) == [("ann", "s1")]
    await talk(process, "t2")
    assert not await process.summaries.is_ended("ann", "s1")
    assert await due(process, now=START) == []


async def test_what_is_still_to_be_answered_or_learnt_holds_its_session_back(process: Process) -> None:
    await tell(process.log, "t1")
    assert await due(process) == []  # nobody has read it: it may ask to be forgotten
    await learn_all(process.log)
    await process.log.open(a_turn("t2"))
    assert await due(process) == []
    await process.log.finish("t2", status=TurnStatus.FAILED, answer="", answered_at=START)
    assert await sessions_due(process) == [("ann", "s1")]


async def test_the_longest_waiting_session_of_each_user_is_due_first(process: Process, deployment: Deployment) -> None:
    for number, (user, session) in enumerate((("ann", "s1"), ("ann", "s2"), ("bob", "s1"))):
        deployment.clock.now = START + number
        await talk(process, f"t{number}", user=user, session=session)
    assert await sessions_due(process, now=LATER + 9) == [("ann", "s1"), ("bob", "s1")]
    (first,) = await due(process, now=LATER + 9, limit=1)
    assert (first.session_id, first.tries) == ("s1", 0)
    await process.summaries.postpone(first, until=LATER + 60)
    assert await sessions_due(process, now=LATER + 9) == [("ann", "s2"), ("bob", "s1")]
    assert (await due_session(process, now=LATER + 60)).tries == 1
    await process.summaries.leave_out("ann", ["t0"])  # it changes
    assert (await due_session(process, now=LATER + 9)).tries == 0


async def test_its_turns_are_those_that_were_learnt_in_the_order_said(process: Process) -> None:
    await talk(process, "t1", "t2", "t3")
    await talk(process, "other", session="s2")
    await talk(process, "theirs", user="bob")
    await tell(process.log, "failed", status=TurnStatus.FAILED)
    session = await due_session(process)
    turns = await process.summaries.turns(session, limit=10)
    assert [(turn.id, turn.answer) for turn in turns] == [(f"t{n}", f"answer to t{n}") for n in (1, 2, 3)]
    assert turns[0].messages[0].content == "words of t1"
    assert await process.summaries.turns(session, limit=2) == turns[1:]


async def test_a_session_that_goes_on_keeps_its_summary_until_the_next_version(process: Process) -> None:
    summaries = process.summaries
    await talk(process, "t1")
    first = await summarised(process, "t1")
    await talk(process, "t2")
    assert await summaries.of_session("ann", "s1") == first
    second = await summarised(process, "t1", "t2")
    assert (first.version, second.version, first.id == second.id) == (1, 2, False)
    assert [one.summary for one in await summaries.of_user("ann", limit=10)] == [second]
    assert await summaries.withdrawn(limit=10) == []  # notes with the first may stay
    assert await summaries.get("ann", [first.id, second.id, "unknown"]) == [second]
    assert await summaries.get("bob", [second.id]) == await summaries.get("ann", []) == []
    await process.log.messages.delete_turns("ann", ["t1"])
    assert await gone_and_due(process, version=2)
    (withdrawn,) = await summaries.withdrawn("ann", limit=10)
    assert withdrawn.ids() == [first.id, second.id]  # all its versions
    assert await summaries.withdrawn("bob", limit=10) == []


async def test_a_summary_of_a_session_that_has_changed_meanwhile_is_refused(process: Process) -> None:
    await talk(process, "t1")
    before = await due_session(process)
    await talk(process, "t2")
    assert not await process.summaries.put(before, summary_of(before, "t1"), VECTOR)
    before = await due_session(process)
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
    await tell(process.log, "t2", answer="")
    await learn_all(process.log)
    made = await summarised(process, "t1", "t2")
    await process.log.complete("t2", answer="Booked.", answered_at=START + 2)
    assert await process.summaries.of_session("ann", "s1") == made
    assert await process.summaries.withdrawn(limit=10) == []


async def test_trimming_and_compressing_and_expiry_withdraw_it(process: Process) -> None:
    messages = process.log.messages
    await talk(process, "t1", "t2")
    changes = messages.compress(Trimming("ann", "s1", 0), characters_max=5), messages.trim(Trimming("ann", "s1", 2))
    for change in changes:
        await summarised(process, "t1", "t2")
        assert await change
        assert await gone_and_due(process)
        await process.summaries.settle(await process.summaries.withdrawn(limit=10))
    await summarised(process, "t2")
    await messages.expire(before=START + 9, limit=10)
    assert await process.summaries.of_session("ann", "s1") is None
    assert await due(process) == []  # nothing is left of the session


async def test_abandoning_a_branch_withdraws_it_and_so_does_resuming(process: Process) -> None:
    trees = process.log.trees

    async def send(turn_id: str, *keys: str) -> None:
        earlier = tuple(SentExchange(key, (), "") for key in keys[:-1])
        sent = SentConversation((keys[-1],), earlier, is_session_given=True)
        await trees.open(a_turn(turn_id), sent)
        await process.log.finish(turn_id, status=TurnStatus.CLOSED, answer="so", answered_at=START)
        await learn_all(process.log)

    await send("t1", "a")
    await send("t2", "a", "b")
    await summarised(process, "t1", "t2")
    await send("t3", "a", "c")
    assert await gone_and_due(process, now=LATER)
    assert await turns_due(process) == ["t1", "t3"]
    await process.summaries.settle(await process.summaries.withdrawn(limit=10))
    await summarised(process, "t1", "t3")
    await send("t4", "a", "b", "d")
    assert await gone_and_due(process, now=LATER)
    assert await turns_due(process) == ["t1", "t2", "t4"]


async def test_a_session_without_substance_is_looked_at_once(process: Process) -> None:
    await talk(process, "t1")
    assert await process.summaries.put(await due_session(process), None, None)
    assert await due(process) == []
    assert await process.summaries.is_ended("ann", "s1")
    await talk(process, "t2")
    await summarised(process, "t1", "t2")
    await talk(process, "t3")
    assert await process.summaries.put(await due_session(process), None, None)
    assert await process.summaries.of_session("ann", "s1") is None
    assert len(await process.summaries.withdrawn(limit=10)) == 1


async def test_a_user_gets_their_own_newest_first_with_vectors(process: Process) -> None:
    for number in range(3):
        await talk(process, f"t{number}", session=f"s{number}")
        session = await due_session(process, session=f"s{number}")
        made = replace(summary_of(session, f"t{number}"), last_at=START + (number * 7) % 3)
        await process.summaries.put(session, made, VECTOR if number else None)
    await talk(process, "theirs", user="bob")
    await summarised(process, "theirs", user="bob")
    first, second, third = await process.summaries.of_user("ann", limit=10)
    assert [one.summary.session_id for one in (first, second, third)] == ["s2", "s1", "s0"]
    assert [one.vector is None for one in (first, second, third)] == [False, False, True]
    assert first.vector is not None
    assert np.allclose(first.vector, VECTOR, atol=1e-3)
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


async def test_a_turn_that_is_left_out_withdraws_it_and_is_in_none_again(process: Process) -> None:
    await talk(process, "t1", "t2")
    await summarised(process, "t1", "t2")
    await process.summaries.leave_out("ann", ["t1", "unknown"])
    assert await gone_and_due(process)
    assert await turns_due(process) == ["t2"]
    await summarised(process, "t2")
    await process.summaries.leave_out("ann", ["t1"])  # again: nothing changes
    await process.summaries.leave_out("bob", ["t2"])  # not theirs
    assert await process.summaries.of_session("ann", "s1") is not None


async def test_everything_said_before_a_time_is_left_out_in_its_project(process: Process) -> None:
    summaries = process.summaries
    await talk(process, "t1", project="atlas")
    await talk(process, "t2", session="s2")
    await summarised(process, "t1")
    other = await summarised(process, "t2", session="s2")
    await summaries.leave_out_until("ann", project_id="atlas", until=START)  # said at START
    assert await summaries.of_session("ann", "s1") is None
    await summaries.leave_out_until("ann", project_id="", until=START - 1)
    await summaries.leave_out_until("ann", project_id="", session_id="s1", until=START)
    await summaries.leave_out_until("ann", project_id="", until=START, spare=["t2"])
    assert await summaries.of_session("ann", "s2") == other
    await summaries.leave_out_until("ann", project_id="", until=START)
    assert await summaries.of_user("ann", limit=10) == []


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


async def test_only_turns_that_were_learnt_are_part_of_one(process: Process) -> None:
    await talk(process, "t1")
    await tell(process.log, "t2")
    lease = await leased(process.log, START + 1)
    await process.log.move_to_dead_letters(lease, now=START, reason="a test")
    (before,) = await due(process)
    assert await turns_due(process) == ["t1"]
    made = await summarised(process, "t1")
    await process.log.replay([lease.window_id])
    await learn_all(process.log)
    assert not await process.summaries.put(before, summary_of(before, "t1"), VECTOR)
    assert await process.summaries.of_session("ann", "s1") == made  # until the next version
    assert await turns_due(process) == ["t1", "t2"]


async def test_what_the_user_said_is_listed_in_pages_without_what_is_in_no_summary(process: Process) -> None:
    await talk(process, "t1", "t2")
    await talk(process, "t3", session="s2", project="atlas")
    await talk(process, "theirs", user="bob")
    await tell(process.log, "failed", status=TurnStatus.FAILED)
    await tell(process.log, "waiting")
    await process.summaries.leave_out("ann", ["t1"])
    said = partial(process.summaries.said, "ann", project_id="", until=START, after=0, limit=9)
    first, *others = await said()
    assert (first.turn_id, first.messages) == ("t2", ("words of t2",))
    assert [one.turn_id for one in others] == ["t3", "waiting"]
    assert [one.turn_id for one in await said(project_id="atlas")] == ["t3"]
    assert await said(until=START - 1) == []
    assert await said(limit=1) == [first]
    assert await said(after=first.position) == others


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
