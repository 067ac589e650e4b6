"""The conversation record is the same after it was copied to another system. On every adapter."""

from __future__ import annotations

from dataclasses import replace

from recorded import added, learn_all, texts
from turn_logs import START, a_turn, lease_at, tell

from memory.model import MessageFilter, ToolMessage, TurnStatus
from memory.model.turn_copies import Learning, TurnCopy, copied_turn_id
from memory.ports import TurnLog


async def copied(log: TurnLog, user: str = "ann") -> list[TurnCopy]:
    return [copy async for copy in log.copies.turns(user)]


async def test_each_turn_says_what_became_of_it(log: TurnLog) -> None:
    await tell(log, "t1")
    await learn_all(log)
    await tell(log, "t2", status=TurnStatus.FAILED)
    await tell(log, "t3")
    await log.open(a_turn("t4"))
    await tell(log, "other", user="bob")
    found = await copied(log)
    assert [(one.turn.id, one.learning) for one in found] == [
        ("t1", Learning.LEARNT),
        ("t2", Learning.NEVER),
        ("t3", Learning.DUE),
        ("t4", Learning.DUE),
    ]
    assert found[0].turn.answer == "answer to t1"
    assert found[3].turn.status is TurnStatus.UNKNOWN


async def test_a_copy_is_recorded_as_it_was_and_only_what_is_due_is_learnt(log: TurnLog) -> None:
    given = [
        TurnCopy(a_turn("t1", status=TurnStatus.CLOSED)),
        TurnCopy(a_turn("t2", status=TurnStatus.CLOSED), Learning.NEVER, in_summaries=False),
        TurnCopy(a_turn("t3", status=TurnStatus.CLOSED), Learning.DUE),
    ]
    assert await log.copies.add_turns("ann", given) == 3
    here = [replace(one, turn=replace(one.turn, id=copied_turn_id("ann", one.turn.id))) for one in given]
    assert await copied(log) == here
    assert await log.copies.add_turns("ann", given) == 0
    assert await log.copies.add_turns("ann", here) == 0
    lease = await lease_at(log, START + 100)
    assert lease is not None
    assert [turn.id for turn in lease.turns] == [copied_turn_id("ann", "t3")]


async def test_a_turn_that_was_deleted_here_does_not_come_back(log: TurnLog) -> None:
    await tell(log, "t1")
    await learn_all(log)
    given = await copied(log)
    await log.messages.delete_turns("ann", ["t1"])
    assert await log.copies.add_turns("ann", given) == 0
    assert await copied(log) == []


async def test_nobody_learns_from_a_copy_whether_somebody_else_has_a_turn_of_that_id(log: TurnLog) -> None:
    await tell(log, "t1")
    given = await copied(log)
    given += [replace(one, turn=replace(one.turn, id="t2")) for one in given]
    assert await log.copies.own_turns("bob", ["t1", "t2"]) == frozenset()
    assert await log.copies.add_turns("bob", given) == 2
    theirs = [copied_turn_id("bob", turn_id) for turn_id in ("t1", "t2")]
    assert [one.turn.id for one in await copied(log, "bob")] == theirs
    assert await log.copies.own_turns("bob", ["t1", *theirs]) == set(theirs)
    assert await texts(log) == ["words of t1", "answer to t1"]


async def test_a_copy_that_was_deleted_here_does_not_come_back(log: TurnLog) -> None:
    await tell(log, "t1")
    given = await copied(log)
    assert await log.copies.add_turns("bob", given) == 1
    await log.messages.delete_turns("bob", [copied_turn_id("bob", "t1")])
    assert await log.copies.add_turns("bob", given) == 0


async def test_tool_traffic_stands_where_it_stood_and_never_without_its_turn(log: TurnLog) -> None:
    await tell(log, "t1")
    await log.messages.add_tool_messages("t1", [ToolMessage("clock", "9 o'clock", "c", is_result=True)], at=START)
    await log.messages.add("ann", [added("m1", "a \ud800 b", at=START + 5)])
    before, turns = await texts(log), await copied(log)
    messages = [one async for one in log.copies.messages("ann")]
    assert [one.content for one in messages] == ["9 o'clock", "a \ufffd b"]
    await log.messages.erase("ann", before=1e12)
    assert await log.copies.add_messages("ann", messages) == 1
    await tell(log, "elsewhere", session="s0")  # takes another position
    assert await log.copies.add_turns("carl", turns) == 1
    assert await log.copies.add_messages("carl", messages) == 2
    assert [one.content for one in (await log.messages.page(MessageFilter("carl"), limit=9)).messages] == [
        *before[:-1],
        "a \ufffd b",
    ]
    assert await log.copies.add_messages("carl", messages) == 0
