"""Chats through a real Envoy: what the upstream receives, what the client is told, and which turn is in the log."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from filter_stack import EDGE_SECRET, NOTE, READY_SECONDS, FilterStack, running_stack
from upstream import Received, RecordingUpstream, running_upstream

from extproc import large_bodies
from extproc.apis import STRIPPED_PATHS
from memory.model import CHAT_BYTES_MAX, HEAVY_BODY_BYTES, TurnStatus

pytestmark = pytest.mark.asyncio(loop_scope="session")  # where the shared filter lives

ODD = b'{ "model" : "m",  "temperature":0.70,\t"messages":[{"content":"caf\\u00e9 \\ud83d","role":"user"}] ,"x":1e0}'
OURS = b',"memory_context":{"user_id":"alice","project_id":"p"}}'


def asking(user: str = "", **more: object) -> bytes:
    """Of nobody, where no user is named."""
    context = {"memory_context": {"user_id": user}} if user else {}
    messages = [{"role": "user", "content": "What is my cat called?"}]
    return json.dumps({"model": "m", "messages": messages, **context, **more}).encode()


async def in_chunks(body: bytes, size: int) -> AsyncIterator[bytes]:
    """Its length is not announced."""
    for start in range(0, len(body), size):
        yield body[start : start + size]


def memory_headers(answer: httpx.Response) -> dict[str, str]:
    return {name: value for name, value in answer.headers.items() if name.startswith("x-memory")}


def exact(received: Received) -> Received:
    """What the upstream got, once its length is shown to be the length of what it got."""
    assert received.headers.get("content-length") == str(len(received.body))
    assert "transfer-encoding" not in received.headers
    return received


async def test_a_note_reaches_the_upstream_with_the_right_length_and_the_client_gets_the_receipt(
    stack: FilterStack, upstream: RecordingUpstream
) -> None:
    async with stack.client() as client:
        for round_ in range(3):  # on one connection: a wrong length would break the next request
            answer = await client.post("/v1/chat/completions", content=asking("alice", padding="é" * round_))
            assert answer.status_code == 200
            told = {"status": "used", "count": "1", "receipt": f"r-{round_ + 1}"}
            assert memory_headers(answer) == {f"x-memory-{name}": value for name, value in told.items()}
            received = exact(upstream.last_chat())
            assert NOTE in received.system_text()
            assert "memory_context" not in received.json()
        assert stack.recall.asked[0][0].user_id == "alice"


async def test_an_upstream_cannot_speak_for_us(stack: FilterStack, upstream: RecordingUpstream) -> None:
    upstream.more_headers = {"x-memory-status": "used", "x-memory-count": "99", "x-memory-receipt": "forged"}
    try:
        assert memory_headers(await stack.chat(asking())) == {}
        assert memory_headers(await stack.chat(asking("alice")))["x-memory-count"] == "1"
    finally:
        upstream.more_headers = {}


async def test_a_client_that_speaks_http_1_0_is_served(stack: FilterStack) -> None:
    body = asking("alice")
    reader, writer = await asyncio.open_connection("127.0.0.1", stack.settings.port)
    writer.write(b"POST /v1/chat/completions HTTP/1.0\r\ncontent-type: application/json\r\n")
    writer.write(b"content-length: %d\r\n\r\n%s" % (len(body), body))
    answer = await asyncio.wait_for(reader.read(), 60)
    writer.close()
    assert answer.startswith(b"HTTP/1.0 200")
    assert b"x-memory-status: used" in answer
    assert b"Noted." in answer


async def test_without_memory_every_byte_passes_but_our_fields(stack: FilterStack, upstream: RecordingUpstream) -> None:
    disabled = ODD[:-1] + b',"memory_config":{"enabled":false}' + OURS
    for body, told in ((ODD, {}), (disabled, {"x-memory-status": "disabled", "x-memory-count": "0"})):
        answer = await stack.chat(body)
        assert exact(upstream.last_chat()).body == ODD
        assert memory_headers(answer) == told
    assert stack.recall.asked == []


async def test_twenty_megabytes_pass_with_a_note_alone(stack: FilterStack, upstream: RecordingUpstream) -> None:
    answer = await stack.chat(asking("alice", padding="x" * (20 << 20)))
    assert memory_headers(answer)["x-memory-status"] == "used"
    received = exact(upstream.last_chat())
    assert NOTE in received.system_text()
    assert "memory_context" not in received.json()


async def test_a_body_of_a_known_length_past_the_limit_passes(stack: FilterStack, upstream: RecordingUpstream) -> None:
    body = asking("alice", padding="x" * (CHAT_BYTES_MAX + (4 << 20)))
    answer = await stack.chat(body)
    assert answer.status_code == 200
    assert memory_headers(answer) == {}
    assert exact(upstream.last_chat()).body == body
    assert stack.count("memproxy_bodies_passed_total", reason="too_large") == 1


@pytest.mark.parametrize("is_announced", [True, False])
async def test_a_large_body_without_a_turn_passes_untouched_and_unlearnt_and_a_small_one_notices_nothing(
    stack: FilterStack, upstream: RecordingUpstream, monkeypatch: pytest.MonkeyPatch, is_announced: bool
) -> None:
    """Its length is announced, and the filter does not get it; or it comes in chunks, and the filter has no time."""
    monkeypatch.setattr(large_bodies, "WAITING_MAX", 0)
    user_id = f"large-{is_announced}"
    body = asking(user_id, padding="x" * HEAVY_BODY_BYTES)
    with stack.filters[0].large_bodies.work("another"):
        async with stack.client() as client:
            content = body if is_announced else in_chunks(body, 1 << 16)
            answer = await client.post("/v1/chat/completions", content=content)
        assert answer.status_code == 200
        assert memory_headers(answer) == {}
        assert upstream.last_chat().body == body
        assert stack.count("memproxy_bodies_passed_total", reason="busy") == 1
        while not stack.count("memproxy_bodies_passed_total", reason="busy_unlearnt"):
            await asyncio.sleep(0.01)
        assert memory_headers(await stack.chat(asking(user_id)))["x-memory-status"] == "used"
        [turn] = await stack.turns(user_id, until=1)
        assert turn.receipt_id == "r-1"


async def test_large_bodies_get_their_notes_and_are_learnt_one_after_the_other(stack: FilterStack) -> None:
    body = asking("patient", padding="x" * HEAVY_BODY_BYTES)
    answers = await asyncio.gather(*(stack.chat(body) for _ in range(3)))
    assert [memory_headers(answer)["x-memory-status"] for answer in answers] == ["used"] * 3
    assert len(await stack.turns("patient", until=3)) == 3


async def test_a_chunked_body_is_edited_and_refused_past_the_limit(
    stack: FilterStack, upstream: RecordingUpstream
) -> None:
    async with stack.client() as client:
        answer = await client.post("/v1/chat/completions", content=in_chunks(asking("alice"), 1))
        assert memory_headers(answer)["x-memory-status"] == "used"
        assert NOTE in upstream.last_chat().system_text()
        answer = await client.post("/v1/chat/completions", content=in_chunks(b"x" * (36 << 20), 1 << 20))
        assert answer.status_code == 413


async def test_an_unchanged_body_keeps_its_framing(stack: FilterStack, upstream: RecordingUpstream) -> None:
    body = b'{"model":"m","messages":[{"role":"user","content":"Hello"}]}'
    async with stack.client() as client:
        length, chunked = {"content-length": str(len(body))}, {"transfer-encoding": "chunked"}
        for content, framing in ((body, length), (in_chunks(body, 20), chunked)):
            await client.post("/v1/chat/completions", content=content)
            received = upstream.last_chat()
            names = {"content-length", "transfer-encoding"}
            assert {name: value for name, value in received.headers.items() if name in names} == framing
            assert received.body == body


@pytest.mark.parametrize(
    "body", [b"", b"hello", b"[1]", b'{"messages":', b"\xff\xfe", b'{"messages":[]} x', b'{"messages":"text"}']
)
async def test_a_body_that_is_not_what_it_claims_passes(
    stack: FilterStack, upstream: RecordingUpstream, body: bytes
) -> None:
    answer = await stack.chat(body, **{"x-authz-user-id": "alice"})
    assert answer.status_code == 400
    assert upstream.last_chat().body == body


async def test_other_paths_and_methods_pass_and_open_no_stream(stack: FilterStack, upstream: RecordingUpstream) -> None:
    async with stack.client() as client:
        before = await streams_started(stack)
        for method, path in (
            ("GET", "/v1/models?x=1"),
            ("POST", "/v1/rerank"),
            ("GET", "/v1/chat/completions"),
            ("POST", "/v1/chat/completions/"),
            ("POST", "//v1/chat/completions"),
            ("PUT", "/v1/memoryless"),
            ("POST", "/v1/conversations"),  # OpenAI's and vLLM's own: our short names are on the API port only
            ("DELETE", "/v1/sessions/s1"),
        ):
            content = ODD[:-1] + OURS if method != "GET" else None
            await client.request(method, stack.url + path, content=content)
            received = upstream.received[-1]
            assert (received.method, received.path) == (method, path.partition("?")[0])
            assert received.body == (content or b"")
        assert stack.recall.asked == []
        assert await streams_started(stack) == before


async def streams_started(stack: FilterStack) -> set[str]:
    """What Envoy counts of streams to the filter, line by line."""
    async with httpx.AsyncClient(base_url=stack.admin_url) as admin:
        return set((await admin.get("/stats", params={"filter": "ext_proc.*streams_started"})).text.splitlines())


@pytest.mark.parametrize("path", sorted(STRIPPED_PATHS))
async def test_an_api_without_memory_is_stripped(stack: FilterStack, upstream: RecordingUpstream, path: str) -> None:
    async with stack.client() as client:
        answer = await client.post(path, content=b'{"prompt":"hi"' + OURS)
        assert answer.status_code == 200
        assert exact(upstream.received[-1]).body == b'{"prompt":"hi"}'
        assert upstream.received[-1].path == path
        assert memory_headers(answer) == {"x-memory-status": "disabled", "x-memory-count": "0"}
        answer = await client.post(path, content=ODD)
        assert exact(upstream.received[-1]).body == ODD
        assert memory_headers(answer) == {}
        assert stack.recall.asked == []
        assert stack.count("memproxy_requests_total", status="disabled", reason="no_memory_api") == 1
        assert stack.count("memproxy_bodies_passed_total", reason="no_memory_api") == 1


async def test_the_memory_api_learns_from_envoy_alone_that_a_call_came_through_it(upstream: RecordingUpstream) -> None:
    with running_upstream() as api:
        async with running_stack(upstream.url, api_port=api.port) as stack, stack.client() as client:
            forged = {"x-memory-edge-secret": "forged", "x-authz-user-id": "alice"}
            for path in ("/v1/memory", "/v1/memory/search?limit=1"):
                await client.post(path, content=b"{}", headers=forged)
                assert api.received[-1].headers["x-memory-edge-secret"] == EDGE_SECRET
                assert api.received[-1].headers["x-authz-user-id"] == "alice"
            before = len(upstream.received)
            await stack.chat(asking(), **forged)
            await client.get("/v1/models", headers=forged)
            assert (len(api.received), len(upstream.received) - before) == (2, 2)
            assert not [one for one in upstream.received[before:] if "x-memory-edge-secret" in one.headers]
            async with httpx.AsyncClient(base_url=stack.admin_url) as admin:
                assert EDGE_SECRET not in (await admin.get("/config_dump")).text


# The reply: the client's bytes are the upstream's, and the turn is in the log


def saying(user: str, text: str = "My cat is called Miu.", **more: object) -> dict[str, Any]:
    context = {"user_id": user, "session_id": "s-1"}
    return {"model": "m", "messages": [{"role": "user", "content": text}], "memory_context": context, **more}


async def stream(stack: FilterStack, body: dict[str, Any]) -> bytes:
    async with stack.client() as client, client.stream("POST", "/v1/chat/completions", json=body) as answer:
        assert answer.headers["x-memory-status"] == "used"
        return b"".join([piece async for piece in answer.aiter_raw()])


async def test_a_turn_is_what_the_client_said_and_was_answered(stack: FilterStack, upstream: RecordingUpstream) -> None:
    answer = await stack.chat(saying("ann"))
    assert answer.json()["choices"][0]["message"]["content"] == "Noted."
    assert NOTE in upstream.last_chat().system_text()
    [turn] = await stack.turns("ann", until=1)
    assert turn.status == TurnStatus.CLOSED
    assert [message.content for message in turn.messages] == ["My cat is called Miu."]
    assert (turn.answer, turn.scope.session_id, turn.receipt_id) == ("Noted.", "s-1", "r-1")


async def test_a_stream_passes_exactly_and_is_in_the_log(stack: FilterStack, upstream: RecordingUpstream) -> None:
    upstream.answer = "Grüße, 你好, and so on " * 20
    assert await stream(stack, saying("bea", stream=True)) == b"".join(upstream.streamed)
    [turn] = await stack.turns("bea", until=1)
    assert (turn.status, turn.answer.split()) == (TurnStatus.CLOSED, upstream.answer.split())


async def test_a_client_that_goes_away_leaves_an_aborted_turn(stack: FilterStack, upstream: RecordingUpstream) -> None:
    upstream.chunk_seconds, upstream.chunk_count = 0.05, 100
    async with (
        stack.client() as client,
        client.stream("POST", "/v1/chat/completions", json=saying("dora", stream=True)) as answer,
    ):
        async for _ in answer.aiter_raw():
            break
    [turn] = await stack.turns("dora", until=1)
    assert turn.status == TurnStatus.ABORTED
    assert turn.answer == ""


async def test_an_unreachable_upstream_is_a_failed_turn_and_envoys_own_answer(upstream: RecordingUpstream) -> None:
    async with running_stack("http://127.0.0.1:1") as stack:
        answer = await stack.chat(saying("emma"))
        assert answer.status_code == 503
        [turn] = await stack.turns("emma", until=1)
        assert turn.status == TurnStatus.FAILED


@pytest.mark.full("a reply that is silent for seconds")
async def test_a_long_silence_and_envoys_pings_do_not_break_the_watch(upstream: RecordingUpstream) -> None:
    """gRPC takes frequent pings for an attack unless told otherwise, and then drops every stream of the connection."""
    upstream.chunk_seconds, upstream.chunk_count = 0.7, 4
    often = (b'"connection_keepalive": {"interval": "5s"', b'"connection_keepalive": {"interval": "0.150s"')
    async with running_stack(upstream.url, rewrite=often) as stack:
        received = await stream(stack, saying("fay", stream=True))
        assert received == b"".join(upstream.streamed)
        [turn] = await stack.turns("fay", until=1)
        assert (turn.status, turn.answer.split()) == (TurnStatus.CLOSED, ["x"] * 4)


async def test_many_chats_at_once_lose_no_turn(upstream: RecordingUpstream) -> None:
    async with running_stack(upstream.url, filters=2) as stack, stack.client() as client:

        async def ask(number: int) -> httpx.Response:
            return await client.post("/v1/chat/completions", json=saying("jo", f"I own {number} books."))

        answers = await asyncio.gather(*(ask(number) for number in range(60)))
        assert {answer.headers["x-memory-status"] for answer in answers} == {"used"}
        turns = await stack.turns("jo", until=60)
        assert sorted(t.messages[0].content for t in turns) == sorted(f"I own {n} books." for n in range(60))
        assert {turn.status for turn in turns} == {TurnStatus.CLOSED}
        async with asyncio.timeout(READY_SECONDS):
            while stack.count("memproxy_turns_total", status="closed") < 60:  # counted a moment after they are written
                await asyncio.sleep(0.01)
        assert stack.count("memproxy_turns_total", status="closed") == 60
