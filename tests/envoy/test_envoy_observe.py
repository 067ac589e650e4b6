"""The reply side through a real Envoy: the client's bytes are the upstream's, and the turn is in the log."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import pytest
from filter_stack import NOTE, FilterStack, running_stack
from upstream import RecordingUpstream

from memory.model import TurnStatus

pytestmark = pytest.mark.asyncio(loop_scope="session")  # where the shared filter lives


def asking(user: str, text: str = "My cat is called Miu.", **more: object) -> dict[str, Any]:
    context = {"user_id": user, "session_id": "s-1"}
    return {"model": "m", "messages": [{"role": "user", "content": text}], "memory_context": context, **more}


async def stream(stack: FilterStack, body: dict[str, Any]) -> bytes:
    async with stack.client() as client, client.stream("POST", "/v1/chat/completions", json=body) as answer:
        assert answer.headers["x-memory-status"] == "used"
        return b"".join([piece async for piece in answer.aiter_raw()])


async def test_a_plain_reply_becomes_a_turn_with_what_the_client_said_and_not_what_we_added(
    stack: FilterStack,
    upstream: RecordingUpstream,
) -> None:
    answer = await stack.chat(json.dumps(asking("ann")).encode())
    assert answer.json()["choices"][0]["message"]["content"] == "Noted."
    assert NOTE in upstream.last_chat().system_text()
    [turn] = await stack.turns("ann", until=1)
    assert turn.status == TurnStatus.CLOSED
    assert [message.content for message in turn.messages] == ["My cat is called Miu."]
    assert (turn.answer, turn.scope.session_id, turn.receipt_id) == ("Noted.", "s-1", "r-1")


async def test_streamed_bytes_reach_the_client_exactly_and_the_answer_reaches_the_log(
    stack: FilterStack,
    upstream: RecordingUpstream,
) -> None:
    upstream.answer = "Grüße, 你好, and so on " * 20
    assert await stream(stack, asking("bea", stream=True)) == b"".join(upstream.streamed)
    [turn] = await stack.turns("bea", until=1)
    assert (turn.status, turn.answer.split()) == (TurnStatus.CLOSED, upstream.answer.split())


async def test_an_error_of_the_upstream_is_a_failed_turn(stack: FilterStack, upstream: RecordingUpstream) -> None:
    upstream.status = 500
    answer = await stack.chat(json.dumps(asking("cleo")).encode())
    assert answer.status_code == 500
    [turn] = await stack.turns("cleo", until=1)
    assert turn.status == TurnStatus.FAILED


async def test_a_client_that_goes_away_leaves_an_aborted_turn(stack: FilterStack, upstream: RecordingUpstream) -> None:
    upstream.chunk_seconds, upstream.chunk_count = 0.05, 100
    async with (
        stack.client() as client,
        client.stream("POST", "/v1/chat/completions", json=asking("dora", stream=True)) as answer,
    ):
        async for _ in answer.aiter_raw():
            break
    [turn] = await stack.turns("dora", until=1)
    assert turn.status == TurnStatus.ABORTED
    assert turn.answer == ""


async def test_an_unreachable_upstream_is_a_failed_turn_and_envoys_own_answer(upstream: RecordingUpstream) -> None:
    async with running_stack("http://127.0.0.1:1") as stack:
        answer = await stack.chat(json.dumps(asking("emma")).encode())
        assert answer.status_code == 503
        [turn] = await stack.turns("emma", until=1)
        assert turn.status == TurnStatus.FAILED


@pytest.mark.full("a reply that is silent for seconds")
async def test_a_long_silence_and_envoys_pings_do_not_break_the_watch(upstream: RecordingUpstream) -> None:
    """gRPC takes frequent pings for an attack unless told otherwise, and then drops every stream of the connection."""
    upstream.chunk_seconds, upstream.chunk_count = 0.7, 4
    often = (b'"connectionKeepalive": {"interval": "5s"', b'"connectionKeepalive": {"interval": "0.150s"')
    async with running_stack(upstream.url, rewrite=often) as stack:
        received = await stream(stack, asking("fay", stream=True))
        assert received == b"".join(upstream.streamed)
        [turn] = await stack.turns("fay", until=1)
        assert (turn.status, turn.answer.split()) == (TurnStatus.CLOSED, ["x"] * 4)


async def test_nobody_without_identity_is_recorded(stack: FilterStack) -> None:
    body = asking("gail")
    del body["memory_context"]["user_id"]
    await stack.chat(json.dumps(body).encode())
    await stack.chat(json.dumps(asking("gail", memory_config={"auto_store": False})).encode())
    await stack.chat(json.dumps(asking("last")).encode())
    assert len(await stack.turns("last", until=1)) == 1
    assert await stack.turns("gail") == []


async def test_a_large_prompt_and_a_large_reply_are_recorded_too(
    stack: FilterStack, upstream: RecordingUpstream
) -> None:
    upstream.answer = "word " * 60_000
    said = "I live in Lisbon. " + "x" * (2 << 20)
    answer = await stack.chat(json.dumps(asking("hana", said)).encode())
    assert answer.status_code == 200
    [turn] = await stack.turns("hana", until=1)
    assert turn.status == TurnStatus.CLOSED
    assert turn.messages[0].content.startswith("I live in Lisbon. ")
    assert turn.answer.startswith("word word")


async def test_many_chats_at_once_lose_no_turn(upstream: RecordingUpstream) -> None:
    async with running_stack(upstream.url, filters=2) as stack, stack.client() as client:

        async def ask(number: int) -> httpx.Response:
            return await client.post("/v1/chat/completions", json=asking("jo", f"I own {number} books."))

        answers = await asyncio.gather(*(ask(number) for number in range(60)))
        assert {answer.headers["x-memory-status"] for answer in answers} == {"used"}
        turns = await stack.turns("jo", until=60)
        assert sorted(t.messages[0].content for t in turns) == sorted(f"I own {n} books." for n in range(60))
        assert {turn.status for turn in turns} == {TurnStatus.CLOSED}
        assert stack.count("memproxy_turns_total", status="closed") == 60


async def test_a_chat_completion_s_tool_loop_keeps_its_answer_too(
    stack: FilterStack, upstream: RecordingUpstream
) -> None:
    question = {"role": "user", "content": "Will it rain where I live?"}
    call = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    calling = {"role": "assistant", "content": None, "tool_calls": [call]}
    result = {"role": "tool", "tool_call_id": "c1", "content": "rain"}
    tools = [{"type": "function", "function": {"name": "weather"}}]
    upstream.message = calling
    await stack.chat(
        json.dumps({"model": "m", "messages": [question], "tools": tools}).encode(), **{"x-authz-user-id": "rainy"}
    )
    upstream.message = None
    upstream.answer = "It rains."
    messages = [question, calling, result]
    await stack.chat(
        json.dumps({"model": "m", "messages": messages, "tools": tools}).encode(), **{"x-authz-user-id": "rainy"}
    )
    async with asyncio.timeout(60):  # the answer is written behind the chat, which does not wait for it
        while [turn.answer for turn in await stack.turns("rainy")] != ["It rains."]:
            await asyncio.sleep(0.02)
