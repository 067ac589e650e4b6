"""What every conversation record promises of its messages: order, views, search, sessions."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from recorded import ADA, OTHER, added, all_of, texts
from turn_logs import START, Process, a_turn, leased, tell

from memory.errors import BadInput
from memory.model import (
    Message,
    MessageDirection,
    MessageFilter,
    Party,
    PartyType,
    Scope,
    ToolMessage,
    TurnStatus,
    Visibility,
)
from memory.ports import TurnLog
from memory.ports.paging import all_pages


async def test_a_turn_is_read_as_what_the_user_said_and_what_was_answered(log: TurnLog) -> None:
    turn = replace(a_turn("t1", text="my cat is Tom"), model="qwen3", trace_id="abc", scope=Scope("ann", "red", "s1"))
    await log.open(turn)
    await log.finish("t1", status=TurnStatus.CLOSED, answer="nice", answered_at=START + 2)
    said, answer = await all_of(log.messages, MessageFilter("ann"))
    model = Party(PartyType.MODEL, "qwen3")
    assert (said.source, said.target, said.direction) == (ADA, model, MessageDirection.INPUT)
    assert (answer.source, answer.target, answer.direction) == (model, ADA, MessageDirection.OUTPUT)
    assert [(m.content, m.at) for m in (said, answer)] == [("my cat is Tom", START), ("nice", START + 2)]
    places = {(m.conversation_id, m.trace_id, m.project_id, m.turn_id) for m in (said, answer)}
    assert places == {("s1", "abc", "red", "t1")}
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


async def test_messages_are_read_by_conversation_and_by_trace_whatever_characters_they_hold(log: TurnLog) -> None:
    await log.open(replace(a_turn("t1"), trace_id="aa"))
    await log.open(replace(a_turn("t2", session="s2"), trace_id="bb"))
    await log.messages.add("ann", [replace(added("m1", session="s2"), trace_id="aa")])
    assert await texts(log, MessageFilter("ann", "s2")) == ["words of t2", "text of m1"]
    assert await texts(log, MessageFilter("ann", trace_id="aa")) == ["words of t1", "text of m1"]
    assert await texts(log, MessageFilter("ann", "s1", trace_id="bb")) == []
    text = 'Grüße \ud83d \x00 \'"quoted"'
    await tell(log, "t3", user="bob", text=text, answer=text)
    await log.messages.add_tool_messages("t3", [ToolMessage(text, text, text)], at=START)
    await log.messages.add("bob", [replace(added("m1", text), trace_id=text)])
    assert await texts(log, MessageFilter("bob")) == [text] * 4
    assert await texts(log, MessageFilter("bob", trace_id=text)) == [text]


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
    assert [m.content for m in everything if m.is_seen_by("planner")] == own
    with_shared = [m.content for m in everything if m.content != "text of private"]
    assert await texts(log, MessageFilter("ann", agent_id="planner", with_shared=True)) == with_shared
    assert "text of private" in await texts(log, MessageFilter("ann", agent_id="critic"))


async def test_search_finds_all_words_whatever_the_case_across_pages(log: TurnLog) -> None:
    for n in range(5):
        await tell(log, f"t{n}")
    bear, cat = "Der GROSSE Bär \ud800 50% off_", "我的猫叫汤姆"
    await log.messages.add("ann", [added("m1", bear), added("m2", cat)])
    wanted = {("bär", "große"): bear, ("% OFF_",): bear, ("猫",): cat, ("T3", "answer"): "answer to t3"}
    for words, found in wanted.items():
        assert await texts(log, MessageFilter("ann", words=words), limit=1) == [found]
    assert await texts(log, MessageFilter("bob", words=("answer",))) == []


async def test_a_forged_cursor_is_refused(log: TurnLog) -> None:
    forged = ("x", "WzEsICJ4Il0", "é", "WzEuMCwgIjEuMSJd" * 200)
    for cursor in (*forged, "WzEuMCwgIi0xLjEiXQ"):  # the last: a time and a name, as sessions have them
        with pytest.raises(BadInput, match="cursor"):
            await log.messages.page(MessageFilter("ann"), limit=5, cursor=cursor)
    for cursor in forged:
        with pytest.raises(BadInput, match="cursor"):
            await log.messages.sessions("ann", limit=5, cursor=cursor)


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
    assert [(m.source, m.target, m.content, m.direction.value) for m in found] == [
        (model, tool, "{}", "output"),
        (tool, model, "noon", "input"),
        (model, tool, "{}", "output"),
    ]
    assert {(m.turn_id, m.trace_id, m.conversation_id) for m in found} == {("t1", "aa", "s1")}
    assert await log.messages.find("ann", found[0].id) == found[0]
    await log.messages.add_tool_messages("t1", [ToolMessage("f", str(n), f"n{n}") for n in range(300)], at=START + 1)
    assert len(await texts(log)) == 1 + 200  # a turn holds a limited number of them
    await log.finish("t1", status=TurnStatus.CLOSED, answer="It is noon", answered_at=START + 3)
    lease = await leased(log, START + 9)
    assert [m.content for turn in lease.turns for m in turn.messages] == ["words of t1"]


async def test_processes_add_to_one_conversation_concurrently(process: Process, other: Process) -> None:
    records = {"one": process.log.messages, "two": other.log.messages}
    calls = [one.add("ann", [added(f"{name}-{n}", at=START + n)]) for n in range(20) for name, one in records.items()]
    await asyncio.gather(*calls)
    found = await all_of(process.log.messages, MessageFilter("ann", "s1"), limit=7)
    assert len({message.id for message in found}) == 40
    assert [m.at for m in found] == sorted(m.at for m in found)
    assert found == await all_of(other.log.messages, MessageFilter("ann", "s1"), limit=3)


async def test_sessions_are_listed_latest_first_with_what_they_hold(log: TurnLog) -> None:
    await log.open(replace(a_turn("t1"), scope=Scope("ann", session_id="s1", agent_id="planner")))
    await tell(log, "t2")
    await log.open(a_turn("t3", session="s2", at=START + 50, text="  My\n car " + "is blue " * 50))
    await log.messages.add("ann", [added("m1", at=START + 70), added("m2", session="only added", at=START + 60)])
    await tell(log, "t4", user="bob", session="s1")
    first, second, third = (await log.messages.sessions("ann", limit=10)).items
    assert [first.id, second.id, third.id] == ["s1", "only added", "s2"]
    assert (first.first_at, first.last_at, first.turns, first.messages_added) == (START, START + 70, 2, 1)
    assert (first.agent_ids, first.title) == (("critic", "planner"), "words of t1")
    assert (first.is_answering, first.unlearnt_turns) == (True, 2)
    assert (second.turns, second.title, second.is_answering) == (0, "text of m2", False)
    assert third.title.startswith("My car is blue is blue")
    assert len(third.title) == 80
    assert await log.messages.session("ann", "s2") == third
    assert await log.messages.session("bob", "s2") is None
    assert [one.title for one in (await log.messages.sessions("bob", limit=10)).items] == ["words of t4"]
    pages = all_pages(lambda cursor: log.messages.sessions("ann", limit=1, cursor=cursor))
    assert [page.items async for page in pages] == [(first,), (second,), (third,)]


async def test_the_messages_of_a_receipt_are_those_of_its_turn_for_its_own_user(log: TurnLog) -> None:
    for n in range(3):
        await log.open(replace(a_turn(f"t{n}", session=f"s{n}"), receipt_id=f"r{n}" if n else ""))
    await log.open(replace(a_turn("other", user="bob"), receipt_id="r1"))
    traffic = [ToolMessage("f", "call", "c1"), ToolMessage("f", "result", "c1", is_result=True)]
    await log.messages.add_tool_messages("t1", traffic, at=START)
    await log.open(replace(a_turn("t3", session="s1"), receipt_id="r3"))
    assert await log.messages.turn_ids("ann", "s1") == ["t1", "t3"]
    assert await log.messages.receipt_ids("ann", "s1", limit=1) == [("t3", "r3")]
    assert [m.content for m in await log.messages.of_receipt("ann", "r1")] == ["words of t1"]
    await log.finish("t1", status=TurnStatus.CLOSED, answer="nice", answered_at=START + 2)
    said, answer = await log.messages.of_receipt("ann", "r1")
    assert (said.content, answer.content, answer.turn_id, answer.conversation_id) == ("words of t1", "nice", "t1", "s1")
    assert [m.turn_id for m in await log.messages.of_receipt("bob", "r1")] == ["other"]
    for user, receipt_id in (("ann", "r9"), ("ann", ""), ("cy", "r1")):
        assert await log.messages.of_receipt(user, receipt_id) == []
    await log.messages.delete_turns("ann", ["t1"])
    assert await log.messages.of_receipt("ann", "r1") == []
