"""The Responses API through a real Envoy: what the server receives, what the client gets, and what is recorded."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import openai
import pytest
import pytest_asyncio
from api_shapes import ASKED_RESPONSES
from filter_stack import NOTE, FilterStack, running_stack
from response_objects import call_item, event_stream, text_item
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


async def post(stack: FilterStack, body: bytes | dict[str, Any], **headers: str) -> httpx.Response:
    return await stack.chat(body, shape=ASKED_RESPONSES, **headers)


def sdk(stack: FilterStack, user: str) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(
        base_url=f"{stack.url}/v1", api_key="k", max_retries=0, default_headers={"x-authz-user-id": user}
    )


async def test_a_string_gets_its_note_and_every_other_byte_stays(stack: FilterStack, server: ResponsesServer) -> None:
    stack.recall.placement = Placement.BEFORE_LAST_USER
    body = b'{ "model":"m", "temperature":1.0e0,"input" : "caf\\u00e9?" ,"memory_context":{"user_id":"alice"}}'
    answer = await post(stack, body)
    assert answer.headers["x-memory-status"] == "used"
    noted = f'"input" : "{NOTE}\\n\\ncaf\\u00e9?"}}'.encode()
    assert server.received[-1].body == b'{ "model":"m", "temperature":1.0e0,' + noted
    assert server.received[-1].headers["content-length"] == str(len(server.received[-1].body))


async def test_streamed_events_reach_the_client_byte_for_byte(stack: FilterStack, server: ResponsesServer) -> None:
    server.output = [[text_item("Grüße 你好 — " * 40)]]
    answer = await post(stack, {"model": "m", "input": "Hi", "stream": True}, **{"x-authz-user-id": "listener"})
    completed = json.loads(answer.content.rstrip().rpartition(b"data: ")[2])["response"]
    assert answer.content == b"".join(event_stream(completed))
    [turn] = await stack.turns("listener", until=1)
    assert turn.answer == "Grüße 你好 — " * 40


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
        assert prompt == [
            f"{NOTE}\n\nMy cat is called Miu.",
            "Noted.",
            f"{NOTE}\n\nHow old is she?",
            "Noted.",
            f"{NOTE}\n\nAnd my dog?",
        ]


async def test_a_response_of_another_user_is_a_new_session_without_a_word(
    stack: FilterStack, server: ResponsesServer
) -> None:
    async with sdk(stack, "ann") as ann, sdk(stack, "bob") as bob:
        first = await ann.responses.create(model="m", input="My cat is called Miu.")
        await stack.turns("ann", until=1)
        answer = await bob.responses.create(model="m", input="How old is she?", previous_response_id=first.id)
        assert answer.output_text == "Noted."
        [hers], [his] = await stack.turns("ann", until=1), await stack.turns("bob", until=1)
        assert his.scope.session_id != hers.scope.session_id
        assert "Miu" not in str(his)


@pytest.mark.parametrize("stream", [False, True])
async def test_the_answer_of_a_tool_loop_belongs_to_the_turn_that_the_user_opened(
    stack: FilterStack, server: ResponsesServer, stream: bool
) -> None:
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


async def test_clients_of_vllm_semantic_router_are_known_in_development_alone(
    stack: FilterStack, server: ResponsesServer
) -> None:
    named = {"metadata": {"user_id": "routed"}, "user": "bob"}
    asked = {"model": "m", "input": "My cat is Miu.", **named, "auto_store": True}
    left = {name: value for name, value in asked.items() if name != "auto_store"}
    assert (await post(stack, asked)).headers["x-memory-status"] == "used"
    assert server.last() == {**left, "instructions": NOTE}
    [turn] = await stack.turns("routed", until=1)
    assert turn.scope.user_id == "routed"
    await post(stack, {**asked, "auto_store": False})
    assert len(await stack.turns("routed")) == 1
    async with running_stack(server.url, identity="header") as strict:
        await post(strict, asked)
        assert server.last() == left
        assert strict.recall.asked == []
