"""When what was said is due to be learnt, what goes past what waits, and what is given up. On every adapter."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from turn_logs import START, Deployment, Process, a_turn, ids_of, lease_at, leased, tell, windows

from memory.errors import Conflict
from memory.model import Message, TurnStatus, Urgency
from memory.ports import LearnDue, QueueDepth, TurnLog

PATIENT = LearnDue(batch_turns_max=10, idle_seconds=30.0, turns_at_once=10)
EXPLICIT = Urgency(0.9, is_explicit=True)
ASKS = Urgency(0.9, is_explicit=True, asks_memory=True)
RETRY = START + 300


async def say(log: TurnLog, turn_id: str, urgency: Urgency, *, session: str = "s1", project: str = "") -> None:
    """A whole turn that somebody has looked at."""
    await tell(log, turn_id, session=session, project=project)
    await log.mark({turn_id: urgency})


async def unexamined(log: TurnLog, limit: int = 100) -> list[str]:
    return [fresh.turn.id for fresh in await log.unexamined(limit=limit)]


async def test_a_burst_of_one_session_is_one_window_for_every_n_turns_and_one_for_the_rest(log: TurnLog) -> None:
    for number in range(53):
        await tell(log, f"t{number:02}")
    assert [len(window) for window in await windows(log, START, PATIENT)] == [10] * 5
    assert await windows(log, START + 29.9, PATIENT) == []
    assert await windows(log, START + 30, PATIENT) == [["t50", "t51", "t52"]]


async def test_a_session_with_so_many_tokens_is_due(log: TurnLog) -> None:
    due = replace(PATIENT, tokens_at_once=1_000)
    await log.append(a_turn("t1", status=TurnStatus.CLOSED, text="word " * 400))
    assert await windows(log, START, due) == []
    await log.append(replace(a_turn("t2", status=TurnStatus.CLOSED), answer="word " * 500))  # answers cost, too
    assert await windows(log, START, PATIENT) == []
    assert await windows(log, START, due) == [["t1", "t2"]]
    await tell(log, "t3")  # what was learnt counts no more
    assert await windows(log, START, due) == []
    await log.append(a_turn("t4", project="p", status=TurnStatus.CLOSED, text="word " * 700))
    await log.withdraw("ann", project_id="p", opened_before=START + 1)  # nor does what was withdrawn
    await log.append(a_turn("t5", status=TurnStatus.CLOSED, text="word " * 400))
    assert await windows(log, START, due) == []


async def test_every_finished_turn_that_waits_is_shown_with_those_before_it_until_it_is_marked(log: TurnLog) -> None:
    await tell(log, "learnt")
    assert await windows(log, START) == [["learnt"]]
    await log.open(a_turn("open"))
    await tell(log, "failed", status=TurnStatus.FAILED)
    for number in range(3):
        await tell(log, f"t{number}")
        await tell(log, f"other{number}", session="s2")
    shown = ["t0", "other0", "t1", "other1", "t2", "other2"]
    assert await unexamined(log) == shown
    assert await unexamined(log, limit=2) == shown[:2]
    await log.mark({"t0": Urgency(0.1), "t1": Urgency(0.1), "no such turn": EXPLICIT})
    (fresh,) = [fresh for fresh in await log.unexamined(limit=100) if fresh.turn.scope.session_id == "s1"]
    assert (fresh.turn.id, [turn.id for turn in fresh.earlier]) == ("t2", ["t0", "t1"])
    assert fresh.earlier[0].messages == (Message("user", "words of t0"),)
    await leased(log)
    assert await unexamined(log) == ["other0", "other1", "other2"]


async def test_a_look_reads_no_more_than_it_can_hold(log: TurnLog) -> None:
    for number in range(12):
        await log.append(a_turn(f"t{number}", status=TurnStatus.CLOSED, text="x" * 1_000_000))
    found = await log.unexamined(limit=100)
    assert 1 <= len(found) <= 8
    assert all(not fresh.earlier for fresh in found)  # nor what was pasted earlier


@pytest.mark.parametrize(("urgency", "window"), [(EXPLICIT, 3), (Urgency(0.5, ends_topic=True), 2)])
async def test_an_explicit_turn_or_another_topic_is_due_at_once(log: TurnLog, urgency: Urgency, window: int) -> None:
    turns = ["t1", "t2", "marked", "t4"]
    for turn_id in turns:
        await tell(log, turn_id)
    await log.mark({"t1": Urgency(0.1), "t2": Urgency(0.1), "marked": urgency, "t4": Urgency(0.1)})
    assert await windows(log, START, PATIENT) == [turns[:window]]
    assert await windows(log, START + 30, PATIENT) == [turns[window:]]


async def test_what_made_a_turn_urgent_outlives_the_turns_that_come_after_it(log: TurnLog) -> None:
    await say(log, "remember", EXPLICIT)
    await say(log, "t2", Urgency(0.0))
    await log.mark({"remember": Urgency(0.0)})  # somebody else looked at it, too: the first look counts
    lease = await leased(log, START, PATIENT)
    assert ids_of(lease) == ["remember"]
    await log.mark({"remember": EXPLICIT})  # after the lease: makes nothing else urgent
    await log.acknowledge(lease)
    assert await windows(log, START, PATIENT) == []


async def test_a_retry_moves_no_watermark_and_is_not_made_urgent(log: TurnLog) -> None:
    await say(log, "remember", EXPLICIT)
    await log.retry_at(await leased(log, START, PATIENT), due_at=START + 50, reason="model is down")
    await say(log, "remember too", EXPLICIT)
    assert await windows(log, START + 49, PATIENT) == []
    assert await windows(log, START + 50, PATIENT) == [["remember"], ["remember too"]]


async def test_what_is_urgent_goes_before_everybody_elses_work(log: TurnLog) -> None:
    await tell(log, "old", user="bob")
    await say(log, "remember", EXPLICIT)
    assert await windows(log, START + 99, PATIENT) == [["remember"], ["old"]]


async def test_the_context_is_what_was_said_right_before_the_window(log: TurnLog) -> None:
    for number in range(4):
        await tell(log, f"before{number}")
        await tell(log, f"other{number}", session="s2")
    await tell(log, "failed", status=TurnStatus.FAILED)
    await tell(log, "withdrawn", project="p")
    await log.withdraw("ann", project_id="p", opened_before=START + 1)
    await tell(log, "foreign", user="bob")
    assert len(await windows(log, START)) == 3
    await tell(log, "now")
    lease = await leased(log)
    await tell(log, "after")
    assert [turn.id for turn in await log.context(lease, limit=3)] == ["before1", "before2", "before3"]
    assert [turn.answer for turn in await log.context(lease, limit=1)] == ["answer to before3"]


async def test_breaks_are_what_failed_or_was_aborted_before_the_end_of_the_window(log: TurnLog) -> None:
    await tell(log, "failed", status=TurnStatus.FAILED)
    await tell(log, "first")
    await tell(log, "aborted", status=TurnStatus.ABORTED)
    await tell(log, "elsewhere", session="s2", status=TurnStatus.FAILED)
    await tell(log, "withdrawn", project="p", status=TurnStatus.FAILED)
    await tell(log, "last")
    lease = await leased(log, START, LearnDue(batch_turns_max=10))
    assert ids_of(lease) == ["first", "last"]
    await tell(log, "later", status=TurnStatus.FAILED)
    found = [turn.id for turn in await log.failed_turns(lease, limit=9)]
    assert [turn_id for turn_id in found if turn_id != "withdrawn"] == ["failed", "aborted"]
    assert [turn.id for turn in await log.failed_turns(lease, limit=1)] == found[-1:]


async def test_orders_are_found_by_what_was_opened_before_them_and_is_learnt_after(log: TurnLog) -> None:
    await tell(log, "early")
    late = await leased(log)
    for name, user, session in (("order", "ann", "s2"), ("plain", "ann", "s2"), ("foreign", "bob", "s1")):
        await tell(log, name, user=user, session=session)
    await log.retry_at(late, due_at=START + 50, reason="not yet")
    while (lease := await lease_at(log, START)) is not None:
        await log.mark_forget_requests(lease, {turn.id: b"read" for turn in lease.turns if turn.id != "plain"})
        assert await log.forget_requests_for(lease, limit=9) == [], "its own are none"
        await log.acknowledge(lease)
        with pytest.raises(Conflict):
            await log.mark_forget_requests(lease, {"plain": b""})
    again = await leased(log, START + 60)
    (found,) = await log.forget_requests_for(again, limit=9)
    assert (found.turn.id, found.claims, found.is_since) == ("order", b"read", True)
    assert await log.forget_requests_for(again, limit=0) == []
    await log.acknowledge(again)
    await tell(log, "after")
    after = await leased(log)
    assert await log.forget_requests_for(after, limit=9) == []
    await log.acknowledge(after)
    await tell(log, "of their conversation", session="s2")
    (found,) = await log.forget_requests_for(await leased(log), limit=9)
    assert (found.turn.id, found.is_since) == ("order", False)


async def test_too_long_a_queue_sheds_the_windows_that_promise_least(deployment: Deployment, log: TurnLog) -> None:
    """Each is worth as much as its best turn."""
    deployment.clock.now = START - 10
    await say(log, "older question", Urgency(0.1), session="older question")
    deployment.clock.now = START
    worths = {"fact": 0.8, "so": 0.0, "question": 0.1, "thanks": 0.0}
    for turn_id, worth in worths.items():
        await say(log, turn_id, Urgency(worth), session="fact" if turn_id == "so" else turn_id)
    assert await log.shed(now=START, keep=5, window_turns=10) == 0
    assert await log.shed(now=START, keep=3, window_turns=10) == 2
    letters = await log.dead_letters(limit=9)
    assert {letter.turn_ids for letter in letters} == {("thanks",), ("older question",)}
    assert {letter.attempts for letter in letters} == {0}
    assert all(letter.reason.startswith("shed") for letter in letters)
    assert sorted(await windows(log, START + 99, PATIENT)) == [["fact", "so"], ["question"]]
    assert (await log.backlog("ann", opened_before=START + 1)).failed == 2
    assert await log.depth(now=START) == QueueDepth(0, 0, 0, 0, 0, 0.0, shed=2)


async def test_what_is_explicit_unseen_held_or_planned_is_never_shed(log: TurnLog) -> None:
    await say(log, "held", Urgency(0.0), session="s0")
    held = await leased(log)
    await tell(log, "planned", user="bob")
    await log.mark({"planned": Urgency(0.0)})
    planned = await leased(log)
    await log.save_plan(planned, b"plan")
    await log.retry_at(planned, due_at=START + 10, reason="later")
    await tell(log, "unseen", user="joe")
    await say(log, "explicit", Urgency(0.0, is_explicit=True))
    await say(log, "with it", Urgency(0.0))
    await log.mark({"explicit": Urgency(0.0)})  # somebody looked at it, too: the first look counts
    assert await log.shed(now=START, keep=0, window_turns=10) == 0
    assert await log.dead_letters(limit=9) == []
    await log.acknowledge(held)
    assert sorted(await windows(log, START + 99, PATIENT)) == [["explicit"], ["planned"], ["unseen"], ["with it"]]


async def test_what_was_shed_stays_on_record_and_comes_back_for_good_or_is_dropped(log: TurnLog) -> None:
    for turn_id in ("t1", "t2"):
        await say(log, turn_id, Urgency(0.0), session=turn_id)
    assert await log.shed(now=START, keep=0, window_turns=10) == 2
    assert [turn.id async for turn in log.turns("ann")] == ["t1", "t2"]
    first, second = await log.dead_letters(limit=9)
    assert await log.drop([second.window_id]) == 1
    assert await log.replay([]) == 1
    assert await log.shed(now=START, keep=0, window_turns=10) == 0
    assert [list(first.turn_ids)] == await windows(log, START, PATIENT)


async def test_shed_turns_of_a_deleted_scope_do_not_come_back(log: TurnLog) -> None:
    for turn_id, project in (("t1", "p"), ("t2", "")):
        await say(log, turn_id, Urgency(0.0), project=project)
    await log.shed(now=START, keep=0, window_turns=10)
    assert await log.withdraw("ann", project_id="p", opened_before=START + 1) == 1
    await log.replay([])
    assert await windows(log, START, PATIENT) == [["t2"]]


async def test_two_processes_that_look_and_shed_at_once_do_it_once(process: Process, other: Process) -> None:
    logs = process.log, other.log
    for number in range(20):
        await tell(logs[0], f"t{number}", user=f"u{number}")
    looks = await asyncio.gather(*(log.unexamined(limit=20) for log in logs))
    marks = [{fresh.turn.id: Urgency(0.2) for fresh in look} for look in looks]
    await asyncio.gather(*(log.mark(mark) for log, mark in zip(logs, marks, strict=True)))
    shed = await asyncio.gather(*(logs[n % 2].shed(now=START, keep=8, window_turns=10) for n in range(4)))
    assert sum(shed) == len(await logs[0].dead_letters(limit=99)) == 12
    assert len(await windows(logs[1], START + 99, PATIENT)) == 8


# What a user asks of memory goes past what its session waits for; nothing else does


async def put_off(log: TurnLog, *turns: str) -> None:
    """A window of these turns, that waits for its retry."""
    for turn in turns:
        await tell(log, turn)
    await log.make_due_now("ann")
    await log.retry_at(await leased(log, due=PATIENT), due_at=RETRY, reason="the model is down", outage_since=START)


async def test_a_request_goes_past_a_window_that_waits_and_takes_the_turns_before_it_along(log: TurnLog) -> None:
    await put_off(log, "t1", "t2")
    for turn in ("t3", "forget", "t5"):
        await tell(log, turn)
    await log.mark({"t3": Urgency(0.5), "forget": ASKS, "t5": Urgency(0.5)})
    lease = await leased(log, due=PATIENT)
    assert ids_of(lease) == ["t3", "forget"]
    assert [turn.id for turn in await log.context(lease, limit=9)] == ["t1", "t2"]
    await log.acknowledge(lease)
    assert await lease_at(log, RETRY - 1, PATIENT) is None  # what came after it waits as it should
    again = await leased(log, RETRY, PATIENT)
    assert (ids_of(again), again.outages) == (["t1", "t2"], 1)
    await log.acknowledge(again)
    assert ids_of(await leased(log, RETRY, PATIENT)) == ["t5"]


async def test_where_the_window_before_it_is_due_too_the_order_is_kept(log: TurnLog) -> None:
    await put_off(log, "t1")
    await say(log, "forget", ASKS)
    assert await windows(log, RETRY, PATIENT) == [["t1"], ["forget"]]


@pytest.mark.parametrize("urgency", [EXPLICIT, Urgency(0.5), Urgency(0.5, ends_topic=True)])
async def test_nothing_else_goes_past_it(log: TurnLog, urgency: Urgency) -> None:
    await put_off(log, "t1")
    await say(log, "t2", urgency)
    await log.make_due_now("ann")
    assert await lease_at(log, RETRY - 1, PATIENT) is None
    assert ids_of(await leased(log, RETRY, PATIENT)) == ["t1"]


async def test_while_somebody_works_for_the_user_a_request_waits(log: TurnLog) -> None:
    await tell(log, "t1")
    await log.make_due_now("ann")
    held = await leased(log, due=PATIENT)
    await say(log, "forget", ASKS)
    assert await lease_at(log, START + 29, PATIENT) is None
    await log.acknowledge(held)
    assert ids_of(await leased(log, START + 29, PATIENT)) == ["forget"]


async def test_what_waits_behind_a_request_that_was_learnt_is_not_taken_for_one(log: TurnLog) -> None:
    await say(log, "forget", ASKS)
    await log.acknowledge(await leased(log, due=PATIENT))
    await put_off(log, "t2")
    await say(log, "t3", EXPLICIT)
    assert await lease_at(log, RETRY - 1, PATIENT) is None
