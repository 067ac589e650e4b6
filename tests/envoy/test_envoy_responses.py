"""The Responses API through a real Envoy: what the server receives, what the client gets, and what is recorded."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import openai
import pytest
import pytest_asyncio
from api_shapes import ASKED_RESPONSES
from filter_stack import NOTE, FilterStack, running_stack
from response_objects import call_item, text_item
from responses_server import ResponsesServer
from upstream import recording

from memory.model import Placement

TOOL = {"type": "function", "name": "weather", "parameters": {"type": "object", "properties": {}}}
pytestmark = pytest.mark.asyncio(loop_scope="session")  # one stack, with two filters


@pytest.fixture(scope="module")
def running() -> Iterator[ResponsesServer]:
    """After the SDK's first answers: they make it build its types, and the filter shares its event loop."""
    with recording(ResponsesServer()) as server, openai.OpenAI(base_url=f"{server.url}/v1", api_key="k") as client:
        server.output = [[call_item("weather")], [text_item("It rains.")]]
        assert client.responses.create(model="m", input="Hi").output
        assert list(client.responses.create(model="m", input="Hi", stream=True))
        yield server


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def shared_stack(running: ResponsesServer) -> AsyncIterator[FilterStack]:
    async with running_stack(running.url, filters=2) as stack:
        yield stack


@pytest.fixture
def server(running: ResponsesServer) -> ResponsesServer:
    running.behave()
    return running


def sdk(stack: FilterStack, user: str) -> openai.AsyncOpenAI:
    named = {"x-authz-user-id": user}
    return openai.AsyncOpenAI(base_url=f"{stack.url}/v1", api_key="k", max_retries=0, default_headers=named)


async def test_a_string_gets_its_note_and_every_other_byte_stays(stack: FilterStack, server: ResponsesServer) -> None:
    stack.recall.placement = Placement.BEFORE_LAST_USER
    body = b'{ "model":"m", "temperature":1.0e0,"input" : "caf\\u00e9?" ,"memory_context":{"user_id":"alice"}}'
    answer = await stack.chat(body, shape=ASKED_RESPONSES)
    assert answer.headers["x-memory-status"] == "used"
    noted = f'"input" : "{NOTE}\\n\\ncaf\\u00e9?"}}'.encode()
    assert server.received[-1].body == b'{ "model":"m", "temperature":1.0e0,' + noted
    assert server.received[-1].headers["content-length"] == str(len(server.received[-1].body))


async def test_the_sdk_goes_on_from_a_response_in_the_same_session(stack: FilterStack, server: ResponsesServer) -> None:
    async with sdk(stack, "goer") as client:
        stack.recall.placement = Placement.BEFORE_LAST_USER
        first = await client.responses.create(model="m", input="My cat is called Miu.", instructions="Be brief.")
        assert first.output_text == "Noted."
        second = await client.responses.create(model="m", input="How old is she?", previous_response_id=first.id)
        third = await client.responses.create(
            model="m", input=[{"role": "user", "content": "And my dog?"}], previous_response_id=second.id
        )
        other = await client.responses.create(model="m", input="Something else entirely.")
        turns = {turn.messages[0].content: turn for turn in await stack.turns("goer", until=4)}
        sessions = [turns[text].scope.session_id for text in ("How old is she?", "And my dog?")]
        assert sessions == [turns["My cat is called Miu."].scope.session_id] * 2
        assert turns["Something else entirely."].scope.session_id not in sessions
        assert third.id != other.id
        prompt = [message["content"] for message in server.prompts[-2]]
        asked = ("My cat is called Miu.", "How old is she?", "And my dog?")
        assert (prompt[::2], prompt[1::2]) == ([f"{NOTE}\n\n{text}" for text in asked], ["Noted."] * 2)


async def test_a_response_of_another_user_is_continued_by_nobody(stack: FilterStack, server: ResponsesServer) -> None:
    async with sdk(stack, "ann") as ann, sdk(stack, "bob") as bob:
        first = await ann.responses.create(model="m", input="My cat is called Miu.")
        await stack.turns("ann", until=1)
        answer = await bob.responses.create(model="m", input="How old is she?", previous_response_id=first.id)
        assert answer.output_text == "Noted."
        [hers], [his] = await stack.turns("ann", until=1), await stack.turns("bob", until=1)
        assert his.scope.session_id != hers.scope.session_id
        assert "Miu" not in str(his)


@pytest.mark.parametrize("stream", [False, True])
async def test_a_tool_loop_is_answered_in_its_turn(stack: FilterStack, server: ResponsesServer, stream: bool) -> None:
    user = f"looper-{stream}"
    async with sdk(stack, user) as client:
        server.output = [[call_item("weather")], [call_item("weather", call_id="c2")], [text_item("It rains.")]]
        asked: Any = "Will it rain where I live?"
        previous, response = None, None
        for _ in range(3):
            answered: Any = await client.responses.create(
                model="m", input=asked, previous_response_id=previous, tools=[TOOL], stream=stream
            )
            response = [event async for event in answered][-1].response if stream else answered
            previous = response.id
            calls = [item.call_id for item in response.output if item.type == "function_call"]
            asked = [{"type": "function_call_output", "call_id": one, "output": "rain"} for one in calls]
        assert response is not None
        assert response.output_text == "It rains."
        async with asyncio.timeout(60):  # the answer is written behind the chat, which does not wait for it
            while [turn.answer for turn in await stack.turns(user)] != ["It rains."]:
                await asyncio.sleep(0.02)
        [turn] = await stack.turns(user, until=1)
        assert [message.content for message in turn.messages] == ["Will it rain where I live?"]


async def test_the_router_s_clients_are_known_in_development_alone(stack: FilterStack, server: ResponsesServer) -> None:
    named = {"metadata": {"user_id": "routed"}, "user": "bob"}
    asked = {"model": "m", "input": "My cat is Miu.", **named, "auto_store": True}
    left = {name: value for name, value in asked.items() if name != "auto_store"}
    assert (await stack.chat(asked, shape=ASKED_RESPONSES)).headers["x-memory-status"] == "used"
    assert server.last() == {**left, "instructions": NOTE}
    [turn] = await stack.turns("routed", until=1)
    assert turn.scope.user_id == "routed"
    await stack.chat({**asked, "auto_store": False}, shape=ASKED_RESPONSES)
    assert len(await stack.turns("routed")) == 1
    async with running_stack(server.url, identity="header") as strict:
        await strict.chat(asked, shape=ASKED_RESPONSES)
        assert server.last() == left
        assert strict.recall.asked == []
