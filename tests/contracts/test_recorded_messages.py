"""What every conversation record promises of its messages: order, views, search, deletion, and whose they are."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from turn_logs import DEPLOYMENTS, START, Deployment, a_turn, lease_at, tell

from memory.errors import BadInput, Conflict
from memory.model import (
    ChainLink,
    Message,
    MessageDirection,
    MessageFilter,
    Party,
    PartyType,
    RecallStatus,
    Receipt,
    RecordedMessage,
    Scope,
    ToolMessage,
    TurnStatus,
    Visibility,
)
from memory.model.recorded import agent_view
from memory.ports import RecordedMessages, Trimming, TurnLog

ADA, AGENT, OTHER = Party(PartyType.USER, "ann"), Party(PartyType.AGENT, "planner"), Party(PartyType.AGENT, "critic")


@pytest.fixture(params=sorted(DEPLOYMENTS))
def deployment(request: pytest.FixtureRequest, tmp_path: Path) -> Deployment:
    return DEPLOYMENTS[request.param](tmp_path)


@pytest.fixture
async def log(deployment: Deployment) -> AsyncIterator[TurnLog]:
    async with deployment.start() as process:
        yield process.log


def added(
    message_id: str,
    content: str = "",
    *,
    at: float = START,
    source: Party = AGENT,
    target: Party = OTHER,
    session: str = "s1",
    visibility: Visibility = Visibility.USER,
) -> RecordedMessage:
    direction = MessageDirection.INPUT
    return RecordedMessage(
        message_id, session, source, target, direction, content or f"text of {message_id}", at, visibility=visibility
    )


async def all_of(record: RecordedMessages, where: MessageFilter, *, limit: int = 100) -> list[RecordedMessage]:
    found: list[RecordedMessage] = []
    cursor, is_first = "", True
    while cursor or is_first:
        page = await record.page(where, limit=limit, cursor=cursor)
        assert len(page.messages) <= limit
        found += page.messages
        cursor, is_first = page.next_cursor, False
    return found


async def texts(log: TurnLog, where: MessageFilter | None = None, *, limit: int = 100) -> list[str]:
    return [message.content for message in await all_of(log.messages, where or MessageFilter("ann"), limit=limit)]


async def learn_all(log: TurnLog) -> None:
    while (lease := await lease_at(log, START + 100)) is not None:
        await log.acknowledge(lease)


# Reading


async def test_a_turn_is_read_as_what_the_user_said_and_what_was_answered(log: TurnLog) -> None:
    turn = replace(a_turn("t1", text="my cat is Tom"), model="qwen3", trace_id="abc", scope=Scope("ann", "red", "s1"))
    await log.open(turn)
    await log.finish("t1", status=TurnStatus.CLOSED, answer="nice", answered_at=START + 2)
    said, answer = await all_of(log.messages, MessageFilter("ann"))
    model = Party(PartyType.MODEL, "qwen3")
    assert (said.source, said.target, said.direction) == (ADA, model, MessageDirection.INPUT)
    assert (answer.source, answer.target, answer.direction) == (model, ADA, MessageDirection.OUTPUT)
    assert [(m.content, m.at) for m in (said, answer)] == [("my cat is Tom", START), ("nice", START + 2)]
    assert {(m.conversation_id, m.trace_id, m.project_id, m.turn_id) for m in (said, answer)} == {
        ("s1", "abc", "red", "t1")
    }
    assert [await log.messages.find("ann", m.id) for m in (said, answer)] == [said, answer]
    assert await log.messages.find("bob", said.id) is None


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
async def test_the_order_is_the_same_whatever_the_page_and_under_equal_times(log: TurnLog, limit: int) -> None:
    for turn_id in ("t1", "t2"):
        two = (Message("user", f"{turn_id} one"), Message("user", f"{turn_id} two"))
        await log.open(replace(a_turn(turn_id), messages=two))
    traffic = [ToolMessage("f", "call", "c1"), ToolMessage("f", "result", "c1", is_result=True)]
    await log.messages.add_tool_messages("t1", traffic, at=START)
    await log.messages.add("ann", [added("m2", "second added"), added("m1", "third added")])
    await log.messages.add("ann", [added("m3", "before all", at=START - 9), added("m4", "after all", at=START + 9)])
    for turn_id in ("t2", "t1"):
        await log.finish(turn_id, status=TurnStatus.CLOSED, answer=f"{turn_id} answer", answered_at=START)
    assert await texts(log, limit=limit) == [
        "before all",
        *("t1 one", "t1 two", "call", "result", "t1 answer"),
        *("t2 one", "t2 two", "t2 answer"),
        *("second added", "third added", "after all"),
    ]


async def test_messages_are_read_by_conversation_and_by_trace(log: TurnLog) -> None:
    await log.open(replace(a_turn("t1"), trace_id="aa"))
    await log.open(replace(a_turn("t2", session="s2"), trace_id="bb"))
    await log.messages.add("ann", [replace(added("m1", session="s2"), trace_id="aa")])
    assert await texts(log, MessageFilter("ann", "s2")) == ["words of t2", "text of m1"]
    assert await texts(log, MessageFilter("ann", trace_id="aa")) == ["words of t1", "text of m1"]
    assert await texts(log, MessageFilter("ann", "s1", trace_id="bb")) == []


async def test_an_agents_view_is_derived_from_the_global_record(log: TurnLog) -> None:
    await log.open(replace(a_turn("t1"), scope=Scope("ann", session_id="s1", agent_id="planner")))
    await log.finish("t1", status=TurnStatus.CLOSED, answer="planned", answered_at=START + 1)
    await log.messages.add_tool_messages("t1", [ToolMessage("f", "{}", "c1")], at=START)
    await log.open(a_turn("t2"))
    alone = Visibility.AGENT
    knowledge, third = Party(PartyType.KNOWLEDGE, "handbook"), Party(PartyType.AGENT, "third")
    posted = [
        added("to critic", at=START + 3),
        added("shared", source=knowledge, target=OTHER, at=START + 4),
        added("private", source=third, target=OTHER, visibility=alone, at=START + 5),
    ]
    await log.messages.add("ann", posted)
    own = ["words of t1", "{}", "planned", "text of to critic"]
    everything = await all_of(log.messages, MessageFilter("ann"))
    assert await texts(log, MessageFilter("ann", agent_id="planner")) == own
    assert [m.content for m in agent_view(everything, "planner")] == own
    assert await texts(log, MessageFilter("ann", agent_id="planner", with_shared=True)) == [
        m.content for m in everything if m.content != "text of private"
    ]
    assert "text of private" in await texts(log, MessageFilter("ann", agent_id="critic"))


async def test_search_finds_all_words_whatever_the_case_across_pages(log: TurnLog) -> None:
    for n in range(5):
        await tell(log, f"t{n}")
    await log.messages.add("ann", [added("m1", "Der GROSSE Bär \ud800 50% off_"), added("m2", "我的猫叫汤姆")])
    assert await texts(log, MessageFilter("ann", words=("bär", "große"))) == ["Der GROSSE Bär \ud800 50% off_"]
    assert await texts(log, MessageFilter("ann", words=("% OFF_",))) == ["Der GROSSE Bär \ud800 50% off_"]
    assert await texts(log, MessageFilter("ann", words=("猫",))) == ["我的猫叫汤姆"]
    assert await texts(log, MessageFilter("ann", words=("answer", "T3")), limit=1) == ["answer to t3"]
    assert await texts(log, MessageFilter("bob", words=("answer",))) == []


async def test_text_is_kept_whatever_characters_it_holds(log: TurnLog) -> None:
    text = 'Grüße \ud83d \x00 \'"quoted"'
    await log.open(a_turn("t1", text=text))
    await log.finish("t1", status=TurnStatus.CLOSED, answer=text, answered_at=START)
    await log.messages.add_tool_messages("t1", [ToolMessage(text, text, text)], at=START)
    await log.messages.add("ann", [replace(added("m1", text), trace_id=text)])
    assert await texts(log) == [text] * 4
    assert await texts(log, MessageFilter("ann", trace_id=text)) == [text]


@pytest.mark.parametrize("cursor", ["x", "WzEsICJ4Il0", "é", "WzEuMCwgIjEuMSJd" * 200, "WzEuMCwgIi0xLjEiXQ"])
async def test_a_forged_cursor_is_refused(log: TurnLog, cursor: str) -> None:
    with pytest.raises(BadInput, match="cursor"):
        await log.messages.page(MessageFilter("ann"), limit=5, cursor=cursor)
    if cursor != "WzEuMCwgIi0xLjEiXQ":  # a time and a name, as sessions have them
        with pytest.raises(BadInput, match="cursor"):
            await log.messages.sessions("ann", limit=5, cursor=cursor)


# Adding


async def test_a_message_is_added_once_and_two_users_may_use_one_id(log: TurnLog) -> None:
    for user in ("ann", "bob"):
        await log.messages.add(user, [added("m1", f"first of {user}")])
        await log.messages.add(user, [added("m1", "again")])
    assert await texts(log) == ["first of ann"]
    assert await texts(log, MessageFilter("bob", "s1")) == ["first of bob"]


async def test_tool_traffic_is_added_once_per_call_and_never_learnt(log: TurnLog) -> None:
    await log.open(replace(a_turn("t1"), model="m", trace_id="aa"))
    call, result = ToolMessage("clock", "{}", "c1"), ToolMessage("clock", "noon", "c1", is_result=True)
    await log.messages.add_tool_messages("t1", [call, result], at=START + 1)
    await log.messages.add_tool_messages("t1", [call, result, ToolMessage("clock", "{}", "c2")], at=START + 2)
    await log.messages.add_tool_messages("nobody", [call], at=START)
    tool, model = Party(PartyType.TOOL, "clock"), Party(PartyType.MODEL, "m")
    found = (await all_of(log.messages, MessageFilter("ann")))[1:]
    assert [(m.source, m.target, m.content) for m in found] == [
        (model, tool, "{}"),
        (tool, model, "noon"),
        (model, tool, "{}"),
    ]
    assert [m.direction.value for m in found] == ["output", "input", "output"]
    assert {(m.turn_id, m.trace_id, m.conversation_id) for m in found} == {("t1", "aa", "s1")}
    assert await log.messages.find("ann", found[0].id) == found[0]
    await log.finish("t1", status=TurnStatus.CLOSED, answer="It is noon", answered_at=START + 3)
    lease = await lease_at(log, START + 9)
    assert lease is not None
    assert [m.content for turn in lease.turns for m in turn.messages] == ["words of t1"]


async def test_a_turn_holds_a_limited_number_of_tool_messages(log: TurnLog) -> None:
    await log.open(a_turn("t1"))
    for start in (0, 150):
        many = [ToolMessage("f", str(n), f"c{n}") for n in range(start, start + 150)]
        await log.messages.add_tool_messages("t1", many, at=START + 1)
    assert len(await texts(log)) == 1 + 200


async def test_processes_add_to_one_conversation_concurrently(deployment: Deployment) -> None:
    async with deployment.start() as one, deployment.start() as two:
        await asyncio.gather(
            *(
                process.log.messages.add("ann", [added(f"{name}-{n}", at=START + n)])
                for n in range(20)
                for name, process in (("one", one), ("two", two))
            )
        )
        found = await all_of(one.log.messages, MessageFilter("ann", "s1"), limit=7)
        assert len({message.id for message in found}) == 40
        assert [m.at for m in found] == sorted(m.at for m in found)
        assert found == await all_of(two.log.messages, MessageFilter("ann", "s1"), limit=3)


# Sessions


async def test_sessions_are_listed_latest_first_with_what_they_hold(log: TurnLog) -> None:
    await log.open(replace(a_turn("t1"), scope=Scope("ann", session_id="s1", agent_id="planner")))
    await tell(log, "t2")
    await log.open(a_turn("t3", session="s2", at=START + 50, text="  My\n car " + "is blue " * 50))
    await log.messages.add("ann", [added("m1", at=START + 70), added("m2", session="only added", at=START + 60)])
    await tell(log, "t4", user="bob", session="s1")
    first, second, third = (await log.messages.sessions("ann", limit=10)).sessions
    assert [first.id, second.id, third.id] == ["s1", "only added", "s2"]
    assert (first.first_at, first.last_at, first.turns, first.messages_added) == (START, START + 70, 2, 1)
    assert (first.agent_ids, first.title) == (("critic", "planner"), "words of t1")
    assert (first.is_answering, first.unlearnt_turns) == (True, 2)
    assert (second.turns, second.title, second.is_answering) == (0, "text of m2", False)
    assert third.title.startswith("My car is blue is blue")
    assert len(third.title) == 80
    assert await log.messages.session("ann", "s2") == third
    assert await log.messages.session("bob", "s2") is None
    assert [one.title for one in (await log.messages.sessions("bob", limit=10)).sessions] == ["words of t4"]


async def test_sessions_are_paged(log: TurnLog) -> None:
    for n in range(5):
        await log.open(a_turn(f"t{n}", session=f"s{n}"))  # at the same time
    seen, cursor = [], ""
    for _ in range(3):
        page = await log.messages.sessions("ann", limit=2, cursor=cursor)
        seen += [one.id for one in page.sessions]
        cursor = page.next_cursor
    assert (seen, cursor) == (["s4", "s3", "s2", "s1", "s0"], "")


async def test_the_turns_and_receipts_of_a_session(log: TurnLog) -> None:
    for n in range(4):
        await log.open(replace(a_turn(f"t{n}"), receipt_id=f"r{n}" if n else ""))
    await log.open(replace(a_turn("other", user="bob"), receipt_id="rb"))
    assert await log.messages.turn_ids("ann", "s1") == ["t0", "t1", "t2", "t3"]
    assert await log.messages.receipt_ids("ann", "s1", limit=2) == [("t2", "r2"), ("t3", "r3")]


# Deleting


async def test_deleting_one_message_leaves_the_ids_of_the_others(log: TurnLog) -> None:
    await log.open(replace(a_turn("t1"), messages=(Message("user", "one"), Message("user", "two"))))
    await log.finish("t1", status=TurnStatus.CLOSED, answer="three", answered_at=START)
    await learn_all(log)
    await log.messages.add("ann", [added("m1", "four")])
    one, two, three, four = await all_of(log.messages, MessageFilter("ann"))
    assert not await log.messages.delete_message("bob", one.id)
    assert await log.messages.delete_message("ann", one.id)
    assert not await log.messages.delete_message("ann", one.id)
    assert await all_of(log.messages, MessageFilter("ann")) == [two, three, four]
    assert [await log.messages.delete_message("ann", m.id) for m in (four, three, two)] == [True] * 3
    assert [turn async for turn in log.turns("ann")] == []
    for wrong in ("turn:t1:9", "turn:t1:x", "turn::0", "turn:", "x"):
        assert not await log.messages.delete_message("ann", wrong)


async def test_a_deleted_message_is_not_learnt(log: TurnLog) -> None:
    await tell(log, "t1")
    lease = await lease_at(log, START + 1)
    assert lease is not None
    assert await log.messages.delete_message("ann", "turn:t1:0")
    with pytest.raises(Conflict):
        await log.save_plan(lease, b"plan")
    assert await lease_at(log, START + 500) is None
    assert await texts(log) == ["answer to t1"]


@pytest.mark.parametrize("stage", ["open", "ready", "leased", "learnt"])
async def test_deleted_turns_are_gone_at_any_stage(deployment: Deployment, stage: str) -> None:
    async with deployment.start() as process:
        log = process.log
        await log.open(replace(a_turn("t1"), receipt_id="r1"))
        await tell(log, "theirs", user="bob")
        await log.messages.add_tool_messages("t1", [ToolMessage("f", "secret call", "c1")], at=START)
        for user in ("ann", "bob"):
            await log.chains.keep(user, ("resp_1",), ChainLink("s1", "t1"), at=START)
            process.receipts.keep(Receipt("r1", user, START, RecallStatus.EMPTY, "none", query="asked"))
        while await process.receipts.get("bob", "r1") is None:
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
        assert await log.chains.find("ann", "resp_1") is None
        assert await log.chains.find("bob", "resp_1") is not None
        assert await process.receipts.get("ann", "r1") is None
        assert await process.receipts.get("bob", "r1") is not None
        if lease is not None and lease.user_id == "ann":
            with pytest.raises(Conflict):
                await log.acknowledge(lease)
        assert (await log.backlog("ann", opened_before=START + 9)).pending == 0
        assert await texts(log, MessageFilter("bob")) == ["words of theirs", "answer to theirs"]


async def test_added_messages_are_deleted_with_their_conversation_only(log: TurnLog) -> None:
    await log.messages.add("ann", [added("m1"), added("m2"), added("m3", session="s2")])
    await log.messages.add("bob", [added("m1")])
    assert await log.messages.delete_added("ann", "s1") == 2
    assert await texts(log) == ["text of m3"]
    assert await texts(log, MessageFilter("bob")) == ["text of m1"]


async def test_erasing_a_project_or_a_user_reaches_turns_and_messages(deployment: Deployment) -> None:
    async with deployment.start() as process:
        log = process.log
        await tell(log, "red", project="red")
        await tell(log, "plain")
        await log.messages.add("ann", [replace(added("m1"), project_id="red"), added("m2")])
        await tell(log, "theirs", user="bob")
        deployment.clock.now += 10
        await tell(log, "later", project="red")
        assert await log.messages.erase("ann", project_id="red", before=START + 5) == 2
        left = ["words of plain", "words of later", "answer to plain", "answer to later"]
        assert sorted(await texts(log)) == sorted([*left, "text of m2"])
        assert await log.messages.erase("ann", before=START + 99) == 3
        assert await texts(log) == []
        assert len(await texts(log, MessageFilter("bob"))) == 2


# Trimming


async def test_trimming_keeps_the_last_messages_and_what_is_not_learnt(log: TurnLog) -> None:
    for n in range(3):
        await tell(log, f"t{n}")
        await learn_all(log)
    await log.messages.add("ann", [added("m1", at=START - 5), added("m2", session="s2")])
    await tell(log, "fresh", session="s1")
    assert await log.messages.trim(Trimming("ann", "s1", 3)) == 5
    assert sorted(await texts(log, MessageFilter("ann", "s1"))) == sorted(
        ["words of fresh", "answer to t1", "answer to t2", "answer to fresh"]
    )
    assert await log.messages.trim(Trimming("ann", "s1", 3)) == 0
    assert await log.messages.trim(Trimming("bob", "s1", 0)) == 0
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


async def test_expired_turns_and_messages_go_except_what_is_not_learnt(deployment: Deployment) -> None:
    async with deployment.start() as process:
        log = process.log
        await tell(log, "old")
        await log.messages.add_tool_messages("old", [ToolMessage("f", "x", "c")], at=START)
        await tell(log, "theirs", user="bob")
        await learn_all(log)
        await tell(log, "waits")
        await log.messages.add("ann", [added("m1", at=START + 1_000)])
        deployment.clock.now += 100
        await tell(log, "new")
        await log.messages.add("ann", [added("m2", at=START - 1_000)])
        assert await log.messages.expire(before=START + 50, limit=1) == 2  # one turn, one message
        assert await log.messages.expire(before=START + 50, limit=10) == 1
        assert await log.messages.expire(before=START + 50, limit=10) == 0
        assert await texts(log, MessageFilter("bob")) == []
        left = ["text of m2", "words of waits", "words of new", "answer to waits", "answer to new"]
        assert await texts(log) == left
