"""The Responses API through a real Envoy: what the server receives, what the client gets, and what is recorded."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import httpx
import openai
import pytest
from filter_stack import NOTE, FilterStack, running_stack
from response_objects import call_item, event_stream, refusal_item, text_item
from responses_server import ResponsesServer, running_responses_server

from extproc.identity import IdentityMode
from memory.model import Placement

ALICE = {"x-authz-user-id": "alice"}
PATH = "/v1/responses"
TOOL = {"type": "function", "name": "weather", "parameters": {"type": "object", "properties": {}}}
MUTATIONS = 300


@pytest.fixture(scope="module", autouse=True)
def warm_sdk() -> None:
    """Its first answers make it build its types, on a busy machine for seconds, while the filter shares its event loop:
    Envoy would give the filter up.
    """
    with running_responses_server() as running, openai.OpenAI(base_url=f"{running.url}/v1", api_key="k") as client:
        running.output = [[call_item("weather")], [text_item("It rains.")]]
        assert client.responses.create(model="m", input="Hi").output
        assert list(client.responses.create(model="m", input="Hi", stream=True))


@pytest.fixture
def server() -> Iterator[ResponsesServer]:
    with running_responses_server() as running:
        yield running


def memory_headers(answer: httpx.Response) -> dict[str, str]:
    return {name: value for name, value in answer.headers.items() if name.startswith("x-memory")}


async def post(stack: FilterStack, body: bytes | dict[str, Any], **headers: str) -> httpx.Response:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    async with stack.client() as client:
        return await client.post(PATH, content=content, headers={"content-type": "application/json", **headers})


def sdk(stack: FilterStack, user: str = "alice") -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(
        base_url=f"{stack.url}/v1", api_key="k", max_retries=0, default_headers={"x-authz-user-id": user}
    )


async def test_a_string_gets_its_note_and_every_other_byte_stays(server: ResponsesServer) -> None:
    async with running_stack(server.url) as stack:
        stack.recall.placement = Placement.BEFORE_LAST_USER
        body = b'{ "model":"m", "temperature":1.0e0,"input" : "caf\\u00e9?" ,"memory_context":{"user_id":"alice"}}'
        answer = await post(stack, body)
        assert memory_headers(answer)["x-memory-status"] == "used"
        noted = f'"input" : "{NOTE}\\n\\ncaf\\u00e9?"}}'.encode()
        assert server.received[-1].body == b'{ "model":"m", "temperature":1.0e0,' + noted
        assert server.received[-1].headers["content-length"] == str(len(server.received[-1].body))


async def test_without_identity_every_byte_passes_and_no_header_comes_back(server: ResponsesServer) -> None:
    async with running_stack(server.url) as stack:
        body = b'{"input":[{"role":"user","content":"x"},{"type":"new","y":1e0}] ,"model" : "m"}'
        answer = await post(stack, body)
        assert server.received[-1].body == body
        assert (answer.status_code, memory_headers(answer)) == (200, {})


async def test_streamed_events_reach_the_client_byte_for_byte(server: ResponsesServer) -> None:
    async with running_stack(server.url) as stack:
        server.output = [[text_item("Grüße 你好 — " * 40)]]
        answer = await post(stack, {"model": "m", "input": "Hi", "stream": True}, **ALICE)
        assert answer.content == b"".join(event_stream(_completed(answer.content)))
        [turn] = await stack.turns("alice", until=1)
        assert turn.answer == "Grüße 你好 — " * 40


def _completed(stream: bytes) -> Any:
    last = stream.rstrip().rpartition(b"data: ")[2]
    return json.loads(last)["response"]


async def test_the_sdk_goes_on_from_a_response_in_the_same_session(server: ResponsesServer) -> None:
    async with running_stack(server.url) as stack, sdk(stack) as client:
        stack.recall.placement = Placement.BEFORE_LAST_USER
        first = await client.responses.create(model="m", input="My cat is called Miu.", instructions="Be brief.")
        assert first.output_text == "Noted."
        second = await client.responses.create(model="m", input="How old is she?", previous_response_id=first.id)
        third = await client.responses.create(
            model="m", input=[{"role": "user", "content": "And my dog?"}], previous_response_id=second.id
        )
        other = await client.responses.create(model="m", input="Something else entirely.")
        turns = {turn.messages[0].content: turn for turn in await stack.turns("alice", until=4)}
        sessions = [turns[text].scope.session_id for text in ("How old is she?", "And my dog?")]
        assert sessions == [turns["My cat is called Miu."].scope.session_id] * 2
        assert turns["Something else entirely."].scope.session_id not in sessions
        assert third.id != other.id
        prompt = [message["content"] for message in server.prompts[2]]
        assert prompt == [
            f"{NOTE}\n\nMy cat is called Miu.",
            "Noted.",
            f"{NOTE}\n\nHow old is she?",
            "Noted.",
            f"{NOTE}\n\nAnd my dog?",
        ]


async def test_a_response_of_another_user_is_a_new_session_without_a_word(server: ResponsesServer) -> None:
    async with running_stack(server.url) as stack, sdk(stack) as alice, sdk(stack, "bob") as bob:
        first = await alice.responses.create(model="m", input="My cat is called Miu.")
        await stack.turns("alice", until=1)
        answer = await bob.responses.create(model="m", input="How old is she?", previous_response_id=first.id)
        assert answer.output_text == "Noted."
        [hers], [his] = await stack.turns("alice", until=1), await stack.turns("bob", until=1)
        assert his.scope.session_id != hers.scope.session_id
        assert "Miu" not in str(his)


async def test_a_chain_is_known_to_every_filter(server: ResponsesServer) -> None:
    async with running_stack(server.url, filters=2) as stack, sdk(stack) as client:
        previous = None
        for number in range(8):
            answer = await client.responses.create(
                model="m", input=f"Statement {number}.", previous_response_id=previous
            )
            previous = answer.id
        turns = await stack.turns("alice", until=8)
        assert len({turn.scope.session_id for turn in turns}) == 1


@pytest.mark.parametrize("stream", [False, True])
async def test_the_answer_of_a_tool_loop_belongs_to_the_turn_that_the_user_opened(
    server: ResponsesServer, stream: bool
) -> None:
    async with running_stack(server.url) as stack, sdk(stack) as client:
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
        await _answered(stack, "It rains.")
        [turn] = await stack.turns("alice", until=1)
        assert [message.content for message in turn.messages] == ["Will it rain where I live?"]


async def test_a_chat_completion_s_tool_loop_keeps_its_answer_too(upstream: Any) -> None:
    question = {"role": "user", "content": "Will it rain where I live?"}
    call = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    calling = {"role": "assistant", "content": None, "tool_calls": [call]}
    result = {"role": "tool", "tool_call_id": "c1", "content": "rain"}
    tools = [{"type": "function", "function": {"name": "weather"}}]
    async with running_stack(upstream.url) as stack:
        upstream.message = calling
        await stack.chat(json.dumps({"model": "m", "messages": [question], "tools": tools}).encode(), **ALICE)
        upstream.message = None
        upstream.answer = "It rains."
        messages = [question, calling, result]
        await stack.chat(json.dumps({"model": "m", "messages": messages, "tools": tools}).encode(), **ALICE)
        await _answered(stack, "It rains.")


async def _answered(stack: FilterStack, answer: str) -> None:
    """The answer is written behind the chat, which does not wait for it."""
    deadline = time.monotonic() + 20
    turns = await stack.turns("alice", until=1)
    while [turn.answer for turn in turns] != [answer]:
        assert time.monotonic() < deadline, f"{turns} do not say {answer}"
        await asyncio.sleep(0.02)
        turns = await stack.turns("alice", until=1)


async def test_a_failed_and_a_refused_response_leave_no_answer(server: ResponsesServer) -> None:
    async with running_stack(server.url) as stack:
        server.status = "failed"
        await post(stack, {"model": "m", "input": "My shoe size is 44.", "stream": True}, **ALICE)
        server.status, server.output = "completed", [[refusal_item("No.")]]
        await post(stack, {"model": "m", "input": "Tell me a secret.", "stream": True}, **ALICE)
        turns = await stack.turns("alice", until=2)
        assert [(turn.status, turn.answer) for turn in turns] == [("failed", ""), ("closed", "")]


async def test_clients_of_vllm_semantic_router_are_known_in_development_alone(server: ResponsesServer) -> None:
    asked = {
        "model": "m",
        "input": "My cat is Miu.",
        "metadata": {"user_id": "alice"},
        "user": "bob",
        "auto_store": True,
    }
    left = {name: value for name, value in asked.items() if name != "auto_store"}
    async with running_stack(server.url) as stack:
        assert memory_headers(await post(stack, asked))["x-memory-status"] == "used"
        assert server.last() == {**left, "instructions": NOTE}
        [turn] = await stack.turns("alice", until=1)
        assert turn.scope.user_id == "alice"
        await post(stack, {**asked, "auto_store": False})
        assert len(await stack.turns("alice")) == 1
    async with running_stack(server.url, identity=IdentityMode.HEADER) as stack:
        await post(stack, asked)
        assert server.last() == left
        assert stack.recall.asked == []


# Bodies of every kind

SOUND: list[dict[str, Any]] = [
    {"model": "m", "input": "What is my cat called?", "instructions": "Be brief.", "metadata": {"k": "v"}},
    {
        "model": "m",
        "previous_response_id": "resp_1",
        "conversation": {"id": "conv_1"},
        "store": True,
        "input": [
            {"role": "developer", "content": "Be brief."},
            {
                "role": "user",
                "content": [{"type": "input_text", "text": "Hi"}, {"type": "input_image", "image_url": "u"}],
            },
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hello"}]},
            {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_text", "text": "7"}]},
            {"type": "item_reference", "id": "msg_1"},
            {"role": "user", "content": "What is my cat called?"},
        ],
        "tools": [TOOL],
    },
]


def nested(levels: int) -> Any:
    value: Any = "deep"
    for level in range(levels):
        value = [value] if level % 2 else {"content": value}
    return value


ODD: list[Any] = [
    None,
    True,
    0,
    -1.5,
    "",
    "x",
    [],
    {},
    [[[]]],
    {"type": "new"},
    [{"role": "user"}],
    "\ud800",
    "message",
    {"type": "new_call", "id": "n_1", "content": [{"type": "new_text", "text": "What is new?"}]},
    {"type": "message", "role": "narrator", "content": [{"type": "input_text", "text": ["Hi"]}, 7, {}]},
    nested(40),
]


def mutated(chance: random.Random, value: Any) -> Any:
    """The value with one thing in it of another type, gone, doubled, deeper, or one that nobody knows."""
    if isinstance(value, dict) and value and chance.random() < 0.8:
        key = chance.choice(list(value))
        match chance.randrange(4):
            case 0:
                return {name: one for name, one in value.items() if name != key}
            case 1:
                return {**value, chance.choice(["x", "type", "role", "content", "input"]): chance.choice(ODD)}
            case _:
                return {**value, key: mutated(chance, value[key])}
    if isinstance(value, list) and value and chance.random() < 0.8:
        at = chance.randrange(len(value))
        match chance.randrange(4):
            case 0:
                return [*value[:at], *value[at + 1 :]]
            case 1:
                return [*value[:at], chance.choice(ODD), *value[at:]]
            case _:
                return [*value[:at], mutated(chance, value[at]), *value[at + 1 :]]
    return chance.choice([*ODD, [value], {"content": value}])


def mutated_item(chance: random.Random, body: Any) -> Any:
    """The body with one item mutated, of an unknown type, or with another content; as it is where it has no items."""
    items = body.get("input") if isinstance(body, dict) else None
    if not isinstance(items, list) or not items:
        return body
    at = chance.randrange(len(items))
    item = items[at] if isinstance(items[at], dict) else {}
    changed = chance.choice(
        [
            chance.choice(ODD),
            mutated(chance, items[at]),
            {**item, "type": chance.choice(["new_call", "", None, 7, "message "])},
            {**item, "content": chance.choice(ODD)},
            {**item, "content": [mutated(chance, {"type": "input_text", "text": "Hi"}), chance.choice(ODD)]},
        ]
    )
    return {**body, "input": [*items[:at], changed, *items[at + 1 :]]}


KINDS = (
    "not an object",
    "input of another type",
    "item of another type",
    "unknown item",
    "content of another type",
    "deep",
)


def kinds_of(body: Any) -> set[str]:
    """What is wrong or new in the body, of what a client may send."""
    if not isinstance(body, dict):
        return {"not an object"}
    found = {"deep"} if '[{"content": [{"content": [{"content": ' in json.dumps(body) else set()
    items = body.get("input")
    if not isinstance(items, str | list):
        return found | {"input of another type"}
    for item in items if isinstance(items, list) else ():
        if not isinstance(item, dict):
            found.add("item of another type")
        elif item.get("type", "message") not in KNOWN_ITEMS:
            found.add("unknown item")
        elif "content" in item and not isinstance(item["content"], str | list):
            found.add("content of another type")
    return found


KNOWN_ITEMS = ["message", *(item["type"] for item in SOUND[1]["input"] if "type" in item)]


async def test_mutated_bodies_pass_or_are_stripped_and_never_break(server: ResponsesServer) -> None:
    chance = random.Random(20_261_122)
    noted = 0
    seen: Counter[str] = Counter()
    async with running_stack(server.url) as stack, stack.client() as client:
        stack.recall.placement = Placement.BEFORE_LAST_USER
        for number in range(MUTATIONS):
            body = chance.choice(SOUND)
            for _ in range(chance.randint(1, 3)):
                body = mutated_item(chance, body) if chance.random() < 0.6 else mutated(chance, body)
            ours = {"memory_context": {"session_id": "s"}} if isinstance(body, dict) else None
            content = json.dumps({**body, **ours} if ours else body).encode()
            seen.update(kinds_of(body))
            answer = await client.post(PATH, content=content, headers=ALICE)
            assert answer.status_code in (200, 400, 404), (number, body)
            received = server.received[-1].body.decode()
            assert len(server.received) == number + 1
            assert received.count(NOTE) <= 1, number
            noted += NOTE in received
            assert _without_note(json.loads(received)) == _without_empty(body), number
    assert MUTATIONS / 3 < noted < MUTATIONS
    assert min(seen[kind] for kind in KINDS) >= MUTATIONS / 30, seen
    assert stack.count("memproxy_bodies_passed_total", reason="no_conversation") > MUTATIONS / 10


def _without_note(value: Any) -> Any:
    """The body as it was before the one note went in; `content` that was null or absent is absent again."""
    if isinstance(value, str):
        return value.removeprefix(f"{NOTE}\n\n").removesuffix(f"\n\n{NOTE}")  # of the question, of instructions
    if isinstance(value, list):
        return [_without_note(one) for one in value if one != {"type": "input_text", "text": NOTE}]
    if isinstance(value, dict):
        return {name: _without_note(one) for name, one in value.items() if (name, one) not in _NO_CONTENT}
    return value


_NO_CONTENT = (("content", None), ("content", NOTE), ("instructions", NOTE))


def _without_empty(value: Any) -> Any:
    return _without_note(json.loads(json.dumps(value)))
