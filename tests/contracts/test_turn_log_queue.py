"""The turn log as a queue of work: leases, retries, dead letters, and what people do to it. On every adapter."""

from __future__ import annotations

import asyncio

import pytest
from turn_logs import START, Deployment, Process, a_turn, ids_of, lease_at, leased, tell, windows

from memory.adapters.sql.turns_queue import window_id_of
from memory.errors import Conflict
from memory.model import TurnStatus
from memory.ports import Backlog, LearnDue, Lease, QueueDepth, TurnLog

LATER = START + 31.0  # every lease taken at the start has ended


async def test_a_window_holds_the_finished_turns_of_one_session_in_the_order_of_opening(log: TurnLog) -> None:
    for turn_id in ("t1", "t2", "t3"):
        await log.open(a_turn(turn_id))
    await tell(log, "other", session="s2")
    for turn_id in ("t3", "t1"):  # t2 still streams, and holds nobody up
        await log.finish(turn_id, status=TurnStatus.CLOSED, answer="", answered_at=START)
    first = await leased(log)
    assert (ids_of(first), first.window_id) == (["t1", "t3"], window_id_of("ann", "s1", ["t1", "t3"]))
    assert (first.user_id, first.session_id, first.attempt, first.plan) == ("ann", "s1", 1, None)
    await log.acknowledge(first)
    assert ids_of(await leased(log)) == ["other"]


async def test_an_ended_lease_is_taken_over_with_its_turns_and_its_plan(log: TurnLog) -> None:
    await tell(log, "t1")
    first = await leased(log)
    await log.save_plan(first, b"the plan \x00\xff")
    await tell(log, "t2")  # comes too late for this window
    second = await leased(log, LATER)
    assert (second.window_id, ids_of(second), second.attempt) == (first.window_id, ["t1"], 2)
    assert second.plan == b"the plan \x00\xff"
    for call in (
        log.extend(first, until=LATER + 60),
        log.save_plan(first, b"another"),
        log.acknowledge(first),
        log.retry_at(first, due_at=LATER, reason="late"),
        log.move_to_dead_letters(first, now=LATER, reason="late"),
    ):
        with pytest.raises(Conflict):
            await call
    await log.acknowledge(second)
    assert ids_of(await leased(log, LATER)) == ["t2"]


async def test_an_ended_lease_cannot_be_extended_into_a_second_one_for_the_user(log: TurnLog) -> None:
    await tell(log, "t1", session="s1")
    await tell(log, "t2", session="s2")
    first = await leased(log)
    await log.retry_at(first, due_at=START + 5, reason="later")
    second = await leased(log)  # t2, until START + 30
    assert ids_of(second) == ["t2"]
    third = await leased(log, LATER)  # t1 again: it is the older one
    assert ids_of(third) == ["t1"]
    with pytest.raises(Conflict):
        await log.extend(second, until=LATER + 60)
    await log.extend(third, until=LATER + 60)
    assert await lease_at(log, LATER + 59) is None
    assert ids_of(await leased(log, LATER + 60)) == ["t1"]


async def test_a_retry_waits_for_its_time_and_holds_up_its_session_only(log: TurnLog) -> None:
    await tell(log, "t1")
    lease = await leased(log)
    await log.save_plan(lease, b"plan")
    await log.retry_at(lease, due_at=START + 100, reason="model is down")
    await tell(log, "t2")
    await tell(log, "t3", session="s2")
    await log.make_due_now("ann")  # retries keep their time
    assert await windows(log, START + 99) == [["t3"]]
    again = await leased(log, START + 100)
    assert (ids_of(again), again.attempt, again.plan) == (["t1"], 2, b"plan")
    await log.acknowledge(again)
    assert ids_of(await leased(log, START + 100)) == ["t2"]


async def test_attempts_that_met_an_outage_are_counted_apart_until_one_does_not_meet_it(log: TurnLog) -> None:
    await tell(log, "t1")
    await log.retry_at(await leased(log), due_at=START, reason="junk")
    for number in range(3):
        lease = await leased(log)
        assert (lease.attempt, lease.outages, lease.outage_since) == (2, number, START - 9 if number else None)
        await log.retry_at(lease, due_at=START, reason="away", outage_since=START - 9)
    await log.retry_at(await leased(log), due_at=START, reason="junk")
    lease = await leased(log)
    assert (lease.attempt, lease.outages, lease.outage_since) == (3, 0, None)
    await log.retry_at(lease, due_at=START, reason="away", outage_since=START)
    await log.move_to_dead_letters(await leased(log), now=START, reason="away for too long")
    (letter,) = await log.dead_letters(limit=5)
    assert letter.attempts == 4  # all of them, and a replay begins anew
    await log.replay([letter.window_id])
    lease = await leased(log)
    assert (lease.attempt, lease.outages, lease.outage_since) == (1, 0, None)


async def test_dead_letters_keep_turns_and_plan_and_hold_up_nobody(log: TurnLog) -> None:
    await tell(log, "t1")
    lease = await leased(log)
    await log.save_plan(lease, b"plan")
    await log.move_to_dead_letters(lease, now=START + 7, reason="x" * 10_000)
    await tell(log, "t2")
    assert ids_of(await leased(log)) == ["t2"]
    (letter,) = await log.dead_letters(limit=10)
    assert (letter.window_id, letter.user_id, letter.session_id) == (lease.window_id, "ann", "s1")
    assert (letter.turn_ids, letter.buried_at, letter.attempts) == (("t1",), START + 7, 1)
    assert 0 < len(letter.reason) <= 1_000
    assert await log.replay([lease.window_id, "no such window"]) == 1
    assert await log.dead_letters(limit=10) == []
    again = await leased(log, LATER)
    assert (again.window_id, again.attempt, again.plan) == (lease.window_id, 1, b"plan")


async def test_replay_without_names_means_all_and_drop_without_names_means_none(log: TurnLog) -> None:
    for number in range(3):
        await tell(log, f"t{number}", user=f"u{number}")
        await log.move_to_dead_letters(await leased(log), now=START + number, reason="no")
    letters = await log.dead_letters(limit=2)
    assert [letter.turn_ids for letter in letters] == [("t0",), ("t1",)]
    assert [await log.drop(names) for names in ([], [letters[0].window_id])] == [0, 1]
    assert await log.replay([]) == 2
    assert sorted(await windows(log)) == [["t1"], ["t2"]]
    assert [turn.id async for turn in log.turns("u0")] == ["t0"]  # given up, yet on record


async def test_debounce_waits_for_quiet_or_for_enough_turns(deployment: Deployment, log: TurnLog) -> None:
    due = LearnDue(idle_seconds=60, turns_at_once=3)
    await tell(log, "t1")
    deployment.clock.now = START + 50
    await tell(log, "t2")
    assert await windows(log, START + 109, due) == []  # the second turn began the wait anew
    assert await windows(log, START + 110, due) == [["t1", "t2"]]
    for number in range(3, 6):
        await tell(log, f"t{number}")
    assert await windows(log, START + 50, due) == [["t3", "t4", "t5"]]


async def test_hurry_makes_finished_turns_due_now(log: TurnLog) -> None:
    due = LearnDue(idle_seconds=3600, turns_at_once=99)
    await tell(log, "t1", session="s1")
    await tell(log, "t2", session="s2")
    await tell(log, "t3", user="bob")
    await log.make_due_now("ann", session_id="s2")
    assert await windows(log, START, due) == [["t2"]]
    await log.make_due_now("ann")
    assert await windows(log, START, due) == [["t1"]]  # bob was not hurried


async def test_the_backlog_counts_what_is_not_learnt_and_why(deployment: Deployment, log: TurnLog) -> None:
    await tell(log, "dead", session="s1")
    await log.move_to_dead_letters(await leased(log), now=START, reason="no")
    await tell(log, "retry", session="s2")
    await log.retry_at(await leased(log), due_at=START + 10, reason="later")
    await tell(log, "ready", session="s3")
    await log.open(a_turn("open", session="s4"))
    await tell(log, "failed", session="s4", status=TurnStatus.FAILED)
    deployment.clock.now = START + 1
    await tell(log, "after", session="s4")
    assert await log.backlog("ann", opened_before=START + 1) == Backlog(pending=3, waiting=1, failed=1)
    assert await log.backlog("ann", opened_before=START + 2) == Backlog(pending=4, waiting=1, failed=1)
    assert await log.backlog("ann", session_id="s2", opened_before=START + 2) == Backlog(1, 1, 0)
    assert await log.backlog("bob", opened_before=START + 2) == Backlog(0, 0, 0)
    await log.append(a_turn("of old", user="eve", at=START - 1e6, status=TurnStatus.CLOSED))
    assert await log.backlog("eve", opened_before=START + 1) == Backlog(0, 0, 0)  # by when a turn reached us
    deployment.clock.now = START + 10  # the retry is due: it is work, it does not wait
    assert await log.backlog("ann", session_id="s2", opened_before=START + 2) == Backlog(1, 0, 0)


async def test_withdrawn_turns_are_never_learnt(deployment: Deployment, log: TurnLog) -> None:
    await tell(log, "ready", session="s1")
    await log.open(a_turn("open", session="s2"))
    await tell(log, "dead", session="s3", project="p")
    await tell(log, "foreign", user="bob")
    deployment.clock.now = START + 5
    await tell(log, "after", session="s1")
    assert await log.withdraw("ann", opened_before=START + 5) == 3
    await log.finish("open", status=TurnStatus.CLOSED, answer="yes", answered_at=START)
    assert sorted(await windows(log, START + 5)) == [["after"], ["foreign"]]
    assert {turn.id: turn.answer async for turn in log.turns("ann")}["open"] == "yes"  # the record is complete
    assert await log.depth(now=START + 5) == QueueDepth(0, 0, 0, 0, 0, 0.0)


async def test_withdrawing_a_project_renews_the_windows_that_held_its_turns(log: TurnLog) -> None:
    for turn_id, project in (("t1", ""), ("t2", "p"), ("t3", "")):
        await tell(log, turn_id, project=project)
    lease = await leased(log)
    await log.save_plan(lease, b"names what was deleted")
    assert await log.withdraw("ann", project_id="p", opened_before=START + 1) == 1
    with pytest.raises(Conflict):
        await log.extend(lease, until=LATER)
    renewed = await leased(log)
    assert (ids_of(renewed), renewed.plan, renewed.attempt) == (["t1", "t3"], None, 1)
    assert renewed.window_id != lease.window_id


async def test_withdrawing_from_dead_letters_leaves_the_rest_dead(log: TurnLog) -> None:
    await tell(log, "t1", project="p")
    await tell(log, "t2")
    await log.move_to_dead_letters(await leased(log), now=START, reason="no")
    for project, left in (("p", [("t2",)]), ("", [])):
        assert await log.withdraw("ann", project_id=project, opened_before=START + 1) == 1
        assert [letter.turn_ids for letter in await log.dead_letters(limit=9)] == left


async def test_only_the_turns_that_are_named_are_withdrawn_and_none_that_is_to_be_spared(log: TurnLog) -> None:
    for turn_id in ("t1", "t2", "t3"):
        await tell(log, turn_id)
    assert await log.withdraw("bob", opened_before=LATER, only=["t2"]) == 0
    assert await log.withdraw("ann", opened_before=LATER, only=["t2"]) == 1
    assert await log.withdraw("ann", opened_before=LATER, spare=["t3"]) == 1
    assert ids_of(await leased(log)) == ["t3"]


async def test_depth_names_every_state(deployment: Deployment, log: TurnLog) -> None:
    await log.open(a_turn("open"))
    for number, user in enumerate(["dead", "retry", "leased", "ready", "ready"]):
        deployment.clock.now = START + number
        await tell(log, f"t{number}", user=user)
        if user == "dead":
            await log.move_to_dead_letters(await leased(log, START), now=START, reason="no")
        elif user == "retry":
            await log.retry_at(await leased(log, START), due_at=START + 99, reason="later")
        elif user == "leased":
            await leased(log, START + 2)
    depth = QueueDepth(opened=1, due=2, leased=1, retrying=1, dead=1, oldest_seconds=10.0)
    assert await log.depth(now=START + 11) == depth


async def test_two_processes_never_hold_the_same_window(process: Process, other: Process) -> None:
    for number in range(20):
        await tell(process.log, f"t{number}", user=f"u{number % 10}")
    leases = await asyncio.gather(*(lease_at((process, other)[n % 2].log, START) for n in range(15)))
    assert sorted(lease.user_id for lease in leases if lease is not None) == [f"u{number}" for number in range(10)]


async def test_a_lease_whose_caller_was_cancelled_is_given_back(log: TurnLog) -> None:
    """Whatever the moment of the cancellation, the window is free again at once and counts no attempt."""
    await tell(log, "t1")
    attempts = 0
    for moment in range(20):
        asking = asyncio.ensure_future(lease_at(log, START))  # noqa: TID251  # the task is what gets cancelled
        await asyncio.sleep(moment * 0.0001)
        asking.cancel()
        (answer,) = await asyncio.gather(asking, return_exceptions=True)
        if isinstance(answer, Lease):  # it was faster than we
            attempts += 1
            await log.retry_at(answer, due_at=START, reason="not needed")
        await log.make_due_now("ann")  # whatever was written before this has been written now
        again = await leased(log)
        attempts += 1
        assert again.attempt == attempts
        await log.retry_at(again, due_at=START, reason="not needed")


async def test_leases_of_a_dead_process_end_with_it(deployment: Deployment, log: TurnLog) -> None:
    async with deployment.start() as mortal:
        await tell(mortal.log, "t1")
        await mortal.log.save_plan(await leased(mortal.log), b"plan")
    assert await log.recover() == 0  # no turn was open
    lease = await leased(log)
    assert (ids_of(lease), lease.attempt, lease.plan) == (["t1"], 2, b"plan")
