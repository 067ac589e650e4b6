"""Anthropic's API through a real Envoy: what the server receives, what the client gets, and what is recorded."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import anthropic
import httpx
import pytest
import pytest_asyncio
from api_shapes import ASKED_MESSAGES
from filter_stack import NOTE, FilterStack, running_stack
from message_objects import text_block, thinking_block, tool_block
from messages_server import MessagesServer
from upstream import recording

from memory.model import Placement

TOOL: Any = {"name": "weather", "input_schema": {"type": "object", "properties": {}}}

# What Claude Code 2 sends, shortened: a block that changes with each request, marks for the cache that move, and
# reminders in the user's name.
CLAUDE_CODE: dict[str, Any] = {
    "model": "m",
    "max_tokens": 32_000,
    "system": [
        {"type": "text", "text": "x-anthropic-billing-header: cc_version=2.1.154; cch=%s;"},
        {"type": "text", "text": "You are Claude Code.", "cache_control": {"type": "ephemeral"}},
    ],
    "tools": [{**TOOL, "name": "Read"}],
    "metadata": {"user_id": "user_0_account__session_0"},
    "thinking": {"type": "adaptive"},
    "stream": True,
}
REMINDER = {"type": "text", "text": "<system-reminder>\nI hate boats.\n</system-reminder>"}
MARK = {"cache_control": {"type": "ephemeral"}}

pytestmark = pytest.mark.asyncio(loop_scope="session")  # one stack, with two filters


@pytest.fixture(scope="module")
def running() -> Iterator[MessagesServer]:
    """After the SDK's first answers: they make it build its types, and the filter shares its event loop."""
    with recording(MessagesServer()) as server, anthropic.Anthropic(base_url=server.url, api_key="k") as client:
        hi: Any = [{"role": "user", "content": "Hi"}]
        assert client.messages.create(model="m", max_tokens=9, messages=hi).content
        assert list(client.messages.create(model="m", max_tokens=9, messages=hi, stream=True))
        yield server


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def shared_stack(running: MessagesServer) -> AsyncIterator[FilterStack]:
    async with running_stack(running.url, filters=2) as stack:
        yield stack


@pytest.fixture
def stack(stack: FilterStack) -> FilterStack:
    stack.recall.placement = Placement.BEFORE_LAST_USER
    return stack


@pytest.fixture
def server(running: MessagesServer) -> MessagesServer:
    running.behave()
    return running


async def post(stack: FilterStack, body: bytes | dict[str, Any], **headers: str) -> httpx.Response:
    return await stack.chat(body, shape=ASKED_MESSAGES, **headers)


def sdk(stack: FilterStack, user: str) -> anthropic.AsyncAnthropic:
    return anthropic.AsyncAnthropic(
        base_url=stack.url, api_key="k", max_retries=0, default_headers={"x-authz-user-id": user}
    )


def user(content: Any) -> Any:
    return {"role": "user", "content": content}


def assistant(content: Any) -> Any:
    return {"role": "assistant", "content": content}


async def test_a_message_gets_its_note_and_every_other_byte_stays(stack: FilterStack, server: MessagesServer) -> None:
    body = b'{ "model":"m", "max_tokens":9,"messages" : [{"role":"user","content":"caf\\u00e9?"}] ,"memory_context":%s}'
    answer = await post(stack, body % b'{"user_id":"alice"}')
    assert answer.headers["x-memory-status"] == "used"
    noted = f'"messages" : [{{"role":"user","content":"{NOTE}\\n\\ncaf\\u00e9?"}}]}}'.encode()
    assert server.received[-1].body == b'{ "model":"m", "max_tokens":9,' + noted
    assert server.received[-1].headers["content-length"] == str(len(server.received[-1].body))
    assert (answer.json()["content"], answer.headers["x-memory-count"]) == ([text_block("Noted.")], "1")


async def test_streamed_events_reach_the_client_byte_for_byte(stack: FilterStack, server: MessagesServer) -> None:
    server.content = [[thinking_block("Hm."), text_block("Grüße 你好 — " * 40)]]
    asked = {"model": "m", "max_tokens": 9, "messages": [user("Hi")], "stream": True}
    answer = await post(stack, asked, **{"x-authz-user-id": "streamed"})
    assert answer.content == b"".join(server.streamed)
    [turn] = await stack.turns("streamed", until=1)
    assert (turn.messages[0].content, turn.answer) == ("Hi", "Grüße 你好 — " * 40)


async def test_the_sdk_s_conversation_is_one_session_with_one_prefix(
    stack: FilterStack, server: MessagesServer
) -> None:
    """Plain, streamed and streamed by the SDK's helper, which raises where events are out of order."""
    async with sdk(stack, "goer") as client:
        messages = [user("My cat is called Miu.")]
        first = await client.messages.create(model="m", max_tokens=9, system="Be brief.", messages=messages)
        assert [block.text for block in first.content if block.type == "text"] == ["Noted."]
        messages += [assistant([block.to_dict() for block in first.content]), user("How old is she?")]
        streamed = await client.messages.create(
            model="m", max_tokens=9, system="Be brief.", messages=messages, stream=True
        )
        kinds = [event.type async for event in streamed]
        assert (kinds[0], kinds[-1]) == ("message_start", "message_stop")
        messages += [assistant("Noted."), user([text_block("And my dog?")])]
        async with client.messages.stream(model="m", max_tokens=9, system="Be brief.", messages=messages) as helped:
            assert await helped.get_final_text() == "Noted."
    turns = await stack.turns("goer", until=3)
    said = [turn.messages[0].content for turn in turns]
    assert sorted(said) == ["And my dog?", "How old is she?", "My cat is called Miu."]
    assert len({turn.scope.session_id for turn in turns}) == 1
    assert {turn.answer for turn in turns} == {"Noted."}
    prompt = server.last()
    assert (prompt["system"], prompt["messages"][-1]) == ("Be brief.", user([text_block(f"{NOTE}\n\nAnd my dog?")]))


@pytest.mark.parametrize("stream", [False, True])
async def test_the_answer_of_a_tool_loop_belongs_to_the_turn_that_the_user_opened(
    stack: FilterStack, server: MessagesServer, stream: bool
) -> None:
    name = f"looper-{stream}"
    server.content = [
        [thinking_block("Where?"), text_block("I look."), tool_block("weather", {"city": "Leeds"})],
        [tool_block("weather", {"city": "York"}, "toolu_2")],
        [text_block("It rains.")],
    ]
    messages = [user("Will it rain where I live?")]
    async with sdk(stack, name) as client:
        while True:
            if stream:
                async with client.messages.stream(model="m", max_tokens=9, messages=messages, tools=[TOOL]) as streamed:
                    answer = await streamed.get_final_message()
            else:
                answer = await client.messages.create(model="m", max_tokens=9, messages=messages, tools=[TOOL])
            calls = [block.id for block in answer.content if block.type == "tool_use"]
            if not calls:
                break
            results = [{"type": "tool_result", "tool_use_id": one, "content": "rain"} for one in calls]
            messages += [assistant([block.to_dict() for block in answer.content]), user(results)]
    async with asyncio.timeout(60):  # the answer is written behind the chat, which does not wait for it
        while [turn.answer for turn in await stack.turns(name)] != ["It rains."]:
            await asyncio.sleep(0.02)
    [turn] = await stack.turns(name, until=1)
    assert [message.content for message in turn.messages] == ["Will it rain where I live?"]
    asked = [message["content"] for message in server.last()["messages"] if message["role"] == "user"]
    assert asked[1:] == [
        [{"type": "tool_result", "tool_use_id": one, "content": "rain"}] for one in ("toolu_1", "toolu_2")
    ]


async def test_claude_code_is_observed_without_its_own_words(stack: FilterStack, server: MessagesServer) -> None:
    def request(number: int, *messages: Any) -> dict[str, Any]:
        system = [{**CLAUDE_CODE["system"][0], "text": CLAUDE_CODE["system"][0]["text"] % number}]
        return {**CLAUDE_CODE, "system": [*system, CLAUDE_CODE["system"][1]], "messages": messages}

    server.content = [[tool_block("Read", {"file_path": "/a.py"})], [text_block("Done.")], [text_block("Yes.")]]
    said, called = text_block("I write Python 3.13."), assistant([tool_block("Read", {"file_path": "/a.py"})])
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "x = 1"}
    later = request(
        3,
        *(user([REMINDER, said]), called, user([result, REMINDER]), assistant([text_block("Done.")])),
        {"role": "system", "content": "<total_tokens>9</total_tokens>"},
        user([{**text_block("Is it short?"), **MARK}]),
    )
    requests = [
        request(1, user([REMINDER, {**said, **MARK}])),
        request(2, user([REMINDER, said]), called, user([{**result, **MARK}, REMINDER])),
        later,
    ]
    answers = [await post(stack, one, **{"x-authz-user-id": "coder"}) for one in requests]
    assert [answer.headers["x-memory-status"] for answer in answers] == ["used"] * 3
    noted = {**text_block(f"{NOTE}\n\nIs it short?"), **MARK}
    assert server.last() == {**later, "messages": [*later["messages"][:-1], user([noted])]}
    turns = await stack.turns("coder", until=2)
    assert sorted(turn.messages[0].content for turn in turns) == ["I write Python 3.13.", "Is it short?"]
    assert len({turn.scope.session_id for turn in turns}) == 1
    assert "boats" not in str(turns)


async def test_refusals_reach_the_sdk_as_its_own_errors_and_leave_no_answer(
    stack: FilterStack, server: MessagesServer
) -> None:
    server.error = "This model's maximum context length is 4096 tokens. However, you requested 9000."
    async with sdk(stack, "refused") as client:
        with pytest.raises(anthropic.BadRequestError, match="maximum context length"):
            await client.messages.create(model="m", max_tokens=9, messages=[user("My shoe size is 44.")])
    [turn] = await stack.turns("refused", until=1)
    assert (turn.status, turn.answer) == ("failed", "")
    assert (await post(stack, b'{"messages":[{"role":"user"}],"memory_context":{}}')).status_code == 400
    assert server.received[-1].body == b'{"messages":[{"role":"user"}]}'
