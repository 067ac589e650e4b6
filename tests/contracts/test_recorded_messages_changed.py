"""What every conversation record promises of changes, of words that left it, and of copies of it."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from recorded import added, all_of, learn_all, texts
from turn_logs import START, Deployment, Process, a_turn, lease_at, leased, tell, windows

from memory.errors import Conflict
from memory.model import ChainLink, Message, MessageFilter, RecallStatus, Receipt, ToolMessage, TurnStatus
from memory.model.turns import Learning, TurnCopy, copied_turn_id
from memory.ports import Trimming, TurnLog


async def test_deleting_one_message_leaves_the_ids_of_the_others(log: TurnLog) -> None:
    record = log.messages
    await log.open(replace(a_turn("t1"), messages=(Message("user", "one"), Message("user", "two"))))
    await log.finish("t1", status=TurnStatus.CLOSED, answer="three", answered_at=START)
    await learn_all(log)
    await record.add("ann", [added("m1", "four")])
    one, two, three, four = await all_of(record, MessageFilter("ann"))
    assert [await record.delete_message(user, one.id) for user in ("bob", "ann", "ann")] == [False, True, False]
    assert await all_of(record, MessageFilter("ann")) == [two, three, four]
    assert [await record.delete_message("ann", m.id) for m in (four, three, two)] == [True] * 3
    assert [turn async for turn in log.turns("ann")] == []
    for wrong in ("turn:t1:9", "turn:t1:x", "turn::0", "turn:", "x"):
        assert not await record.delete_message("ann", wrong)


async def test_a_deleted_message_is_not_learnt(log: TurnLog) -> None:
    await tell(log, "t1")
    lease = await leased(log, START + 1)
    assert await log.messages.delete_message("ann", "turn:t1:0")
    with pytest.raises(Conflict):
        await log.save_plan(lease, b"plan")
    assert await lease_at(log, START + 500) is None
    assert await texts(log) == ["answer to t1"]


@pytest.mark.parametrize("stage", ["open", "ready", "leased", "learnt"])
async def test_deleted_turns_are_gone_at_any_stage(process: Process, stage: str) -> None:
    log, receipts = process.log, process.receipts
    await log.open(replace(a_turn("t1"), receipt_id="r1"))
    await tell(log, "theirs", user="bob")
    await log.messages.add_tool_messages("t1", [ToolMessage("f", "secret call", "c1")], at=START)
    for user in ("ann", "bob"):
        await log.chains.keep(user, ("resp_1",), ChainLink("s1", "t1"), at=START)
        receipts.keep(Receipt("r1", user, START, RecallStatus.EMPTY, "none", query="asked"))
    async with asyncio.timeout(60):
        while await receipts.get("bob", "r1") is None:
            await asyncio.sleep(0.001)
    if stage != "open":
        await log.finish("t1", status=TurnStatus.CLOSED, answer="a", answered_at=START)
    lease = await lease_at(log, START + 1) if stage in ("leased", "learnt") else None
    if stage == "learnt":
        await learn_all(log)
    assert await log.messages.delete_turns("ann", ["t1", "theirs", "nothing"]) == 1
    assert await log.messages.delete_turns("ann", []) == 0
    await log.finish("t1", status=TurnStatus.CLOSED, answer="late", answered_at=START)
    assert await texts(log) == []
    assert await log.chains.find("ann", "resp_1") is await receipts.get("ann", "r1") is None
    assert None not in (await log.chains.find("bob", "resp_1"), await receipts.get("bob", "r1"))
    if lease is not None and lease.user_id == "ann":
        with pytest.raises(Conflict):
            await log.acknowledge(lease)
    assert (await log.backlog("ann", opened_before=START + 9)).pending == 0
    assert await texts(log, MessageFilter("bob")) == ["words of theirs", "answer to theirs"]


async def test_erasing_a_project_or_a_user_reaches_turns_and_messages(deployment: Deployment, log: TurnLog) -> None:
    await tell(log, "red", project="red")
    await tell(log, "plain")
    await log.messages.add("ann", [replace(added("m1"), project_id="red"), added("m2")])
    await tell(log, "theirs", user="bob")
    deployment.clock.now += 10
    await tell(log, "later", project="red")
    assert await log.messages.erase("ann", project_id="red", before=START + 5) == 2
    left = ["answer to later", "answer to plain", "text of m2", "words of later", "words of plain"]
    assert sorted(await texts(log)) == left
    assert await log.messages.erase("ann", before=START + 99) == 3
    assert await texts(log) == []
    assert len(await texts(log, MessageFilter("bob"))) == 2


async def test_trimming_keeps_the_last_messages_and_what_is_not_learnt(log: TurnLog) -> None:
    for n in range(3):
        await tell(log, f"t{n}")
        await learn_all(log)
    await log.messages.add("ann", [added("m1", at=START - 5), added("m2", session="s2")])
    await tell(log, "fresh", session="s1")
    trimmings = Trimming("ann", "s1", 3), Trimming("ann", "s1", 3), Trimming("bob", "s1", 0)
    assert [await log.messages.trim(one) for one in trimmings] == [5, 0, 0]
    left = {"words of fresh", "answer to t1", "answer to t2", "answer to fresh"}
    assert set(await texts(log, MessageFilter("ann", "s1"))) == left
    assert await texts(log, MessageFilter("ann", "s2")) == ["text of m2"]


async def test_compressing_shortens_old_outputs_and_results_for_good(log: TurnLog) -> None:
    await log.open(a_turn("t1", text="u" * 900))
    await log.messages.add_tool_messages("t1", [ToolMessage("f", "r" * 900, "c1", is_result=True)], at=START)
    await log.finish("t1", status=TurnStatus.CLOSED, answer="a" * 900, answered_at=START)
    await log.messages.add("ann", [added("m1", "i" * 900), added("m2", "o" * 900)])
    trimming = Trimming("ann", "s1", 1)
    assert await log.messages.compress(trimming, characters_max=100) == 0  # the turn is not learnt yet
    await learn_all(log)
    assert await log.messages.compress(trimming, characters_max=100) == 2
    said, result, answer, posted, last = await texts(log)
    assert (said, posted, last) == ("u" * 900, "i" * 900, "o" * 900)
    for text, letter in ((result, "r"), (answer, "a")):
        assert len(text) == 100
        assert text.startswith(letter * 50)
        assert "shortened from 900 characters" in text
    assert await log.messages.compress(trimming, characters_max=100) == 0


async def test_expired_turns_and_messages_go_except_what_is_not_learnt(deployment: Deployment, log: TurnLog) -> None:
    await tell(log, "old")
    await log.messages.add_tool_messages("old", [ToolMessage("f", "x", "c")], at=START)
    await tell(log, "theirs", user="bob")
    await learn_all(log)
    await tell(log, "waits")
    await log.messages.add("ann", [added("m1", at=START + 1_000)])
    deployment.clock.now += 100
    await tell(log, "new")
    await log.messages.add("ann", [added("m2", at=START - 1_000)])
    # at first one turn and one message
    assert [await log.messages.expire(before=START + 50, limit=limit) for limit in (1, 10, 10)] == [2, 1, 0]
    assert await texts(log, MessageFilter("bob")) == []
    left = ["text of m2", "words of waits", "words of new", "answer to waits", "answer to new"]
    assert await texts(log) == left


async def test_a_long_record_is_deleted_completely(log: TurnLog) -> None:
    """In as many transactions as it takes, and added messages with their conversation only."""
    turn_ids = [f"t{n}" for n in range(250)]
    await asyncio.gather(*(log.append(a_turn(one, status=TurnStatus.CLOSED)) for one in turn_ids))
    await log.messages.add("ann", [added(f"m{n}") for n in range(250)])
    await log.messages.add("ann", [added("elsewhere", session="s2")])
    await log.messages.add("bob", [added("m1")])
    assert await log.messages.delete_added("ann", "s1") == 250
    assert await texts(log, MessageFilter("bob")) == ["text of m1"]
    assert await log.messages.delete_turns("ann", turn_ids[:120]) == 120
    assert await texts(log, MessageFilter("ann", "s2")) == ["text of elsewhere"]
    assert await log.messages.erase("ann", before=START + 9) == 131
    assert await texts(log) == []
    assert (await log.backlog("ann", opened_before=START + 9)).pending == 0


async def test_a_deleted_turn_is_named_until_it_is_settled_and_an_erased_one_never(log: TurnLog) -> None:
    removed = log.removed_words
    for turn_id in ("t1", "t2", "t3"):
        await tell(log, turn_id)
    await tell(log, "failed", status=TurnStatus.FAILED)
    await learn_all(log)
    await log.messages.delete_turns("ann", ["failed"])  # it taught nothing
    assert await removed.next_user() is None
    await log.messages.delete_turns("ann", ["t1", "t3"])
    assert (await removed.next_user(), await removed.next_user(without=["ann"])) == ("ann", None)
    assert set(await removed.turn_ids("ann", limit=10)) == {"t1", "t3"}
    assert len(await removed.turn_ids("ann", limit=1)) == 1
    assert await removed.turn_ids("bob", limit=10) == []
    await removed.settle("bob", ["t1", "t3"])
    assert await removed.next_user() == "ann"
    await removed.settle("ann", ["t1", "t3"])
    assert await removed.next_user() is None
    await log.messages.erase("ann", before=1e12)
    assert await removed.next_user() is None


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
    became = {"t1": Learning.LEARNT, "t2": Learning.NEVER, "t3": Learning.DUE, "t4": Learning.DUE}
    assert [(one.turn.id, one.learning) for one in found] == list(became.items())
    assert (found[0].turn.answer, found[3].turn.status) == ("answer to t1", TurnStatus.UNKNOWN)


async def test_a_copy_is_recorded_as_it_was_and_only_what_is_due_is_learnt(log: TurnLog) -> None:
    given = [
        TurnCopy(a_turn("t1", status=TurnStatus.CLOSED)),
        TurnCopy(a_turn("t2", status=TurnStatus.CLOSED), Learning.NEVER, in_summaries=False),
        TurnCopy(a_turn("t3", status=TurnStatus.CLOSED), Learning.DUE),
        TurnCopy(a_turn("t4", status=TurnStatus.CLOSED), in_summaries=False, is_order=True),
    ]
    assert await log.copies.add_turns("ann", given) == 4
    here = [replace(one, turn=replace(one.turn, id=copied_turn_id("ann", one.turn.id))) for one in given]
    assert await copied(log) == here
    assert await log.copies.add_turns("ann", given) == 0
    assert await log.copies.add_turns("ann", here) == 0
    lease = await leased(log, START + 100)
    assert [turn.id for turn in lease.turns] == [copied_turn_id("ann", "t3")]


async def test_an_order_is_one_in_a_copy_too_whose_words_are_to_be_read_again(log: TurnLog) -> None:
    await tell(log, "early")
    late = await leased(log)
    await tell(log, "order", session="s2")
    await log.retry_at(late, due_at=START + 50, reason="not yet")
    lease = await leased(log)
    await log.mark_forget_requests(lease, {"order": b"read, of a turn that is called otherwise there"})
    await log.acknowledge(lease)
    given = await copied(log)
    assert [(one.learning, one.is_order, one.in_summaries) for one in given] == [
        (Learning.DUE, False, True),
        (Learning.LEARNT, True, False),
    ]
    assert await log.copies.add_turns("bob", given) == 2
    await tell(log, "of their conversation", user="bob", session="s2")
    order = copied_turn_id("bob", "order")
    for is_since in (True, False):
        lease = await leased(log)
        (found,) = await log.forget_requests_for(lease, limit=9)
        assert (found.turn.id, found.claims, found.is_since) == (order, b"", is_since)
        await log.acknowledge(lease)


async def test_a_held_copy_is_learnt_once_it_is_released(log: TurnLog) -> None:
    held = TurnCopy(a_turn("t1", status=TurnStatus.CLOSED), Learning.DUE, is_held=True)
    assert [await log.copies.add_turns("ann", [held]) for _ in range(2)] == [1, 0]
    (here,) = await copied(log)
    assert (here.learning, await lease_at(log, START + 100)) == (Learning.DUE, None)
    assert await log.copies.add_turns("ann", [replace(held, is_held=False)]) == 0
    await log.copies.release("bob", ["t1"])
    assert await lease_at(log, START + 100) is None
    await log.copies.release("ann", ["t1"])
    assert await windows(log) == [[here.turn.id]]
    await log.copies.release("ann", ["t1", here.turn.id])
    assert await lease_at(log, START + 100) is None


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
    assert await texts(log, MessageFilter("carl")) == [*before[:-1], "a \ufffd b"]
    assert await log.copies.add_messages("carl", messages) == 0


async def test_what_was_deleted_here_does_not_come_back_neither_a_turn_nor_a_copy(log: TurnLog) -> None:
    await tell(log, "t1")
    await learn_all(log)
    given = await copied(log)
    assert await log.copies.add_turns("bob", given) == 1
    for user, turn_id in (("ann", "t1"), ("bob", copied_turn_id("bob", "t1"))):
        await log.messages.delete_turns(user, [turn_id])
        assert await log.copies.add_turns(user, given) == 0
        assert await copied(log, user) == []
