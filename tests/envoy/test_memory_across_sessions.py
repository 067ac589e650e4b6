"""The main promise, with the real openai SDK through the real product: told in one session, known in the next."""

from __future__ import annotations

import time
from typing import Any

import httpx
import openai
import pytest
from api_shapes import SHAPES
from product import Product, eventually, in_time, sentences
from upstream import RecordingUpstream

BUDGET = "My budget for the Hawaii trip is $10,000."
QUESTION = "What is my budget for the Hawaii trip?"


def context(user_id: str, session_id: str) -> dict[str, object]:
    return {"memory_context": {"user_id": user_id, "session_id": session_id}}


def known(product: Product, user_id: str, statement: str) -> bool:
    return statement.strip().rstrip(".").casefold() in sentences(product.memories(user_id))


def learnt_after(api: httpx.Client, statement: str) -> float:
    """Seconds from now until REST shows it, asked every 20 ms; a call counts from when it was sent."""
    started = time.monotonic()
    while (asked := time.monotonic()) < started + 10:
        memories = api.get("/v1/memory").json()["memories"]
        if statement.rstrip(".").casefold() in sentences([memory["content"] for memory in memories]):
            return asked - started
        time.sleep(0.02)
    raise AssertionError("not learnt within 10 s")


@pytest.mark.parametrize("stream", [False, True])
def test_told_in_session_a_is_injected_in_session_b(
    shared_product: Product, upstream: RecordingUpstream, stream: bool
) -> None:
    user = f"sync-{stream}"
    client = openai.OpenAI(base_url=f"{shared_product.url}/v1", api_key="k", max_retries=0)
    told = client.chat.completions.create(
        model="m", messages=[{"role": "user", "content": BUDGET}], stream=stream, extra_body=context(user, "a")
    )
    if stream:
        assert "".join(chunk.choices[0].delta.content or "" for chunk in told) == "Noted."
    else:
        assert told.choices[0].message.content == "Noted."
    eventually(lambda: known(shared_product, user, BUDGET))
    shared_product.flush(user)  # REST sees a write before it is over, chats afterwards

    completions = client.chat.completions.with_raw_response
    question: Any = {"model": "m", "messages": [{"role": "user", "content": QUESTION}], "stream": stream}
    asked = in_time(lambda: completions.create(**question, extra_body=context(user, "b"))).parse()
    if stream:
        list(asked)
    assert "$10,000" in upstream.last_chat().system_text()
    assert "memory_context" not in upstream.last_chat().json()


@pytest.mark.parametrize("stream", [False, True])
async def test_the_async_client_is_served_alike(
    shared_product: Product, upstream: RecordingUpstream, stream: bool
) -> None:
    user = f"async-{stream}"
    async with openai.AsyncOpenAI(base_url=f"{shared_product.url}/v1", api_key="k", max_retries=0) as client:
        for text, session in ((BUDGET, "a"), (QUESTION, "b")):
            answer = await client.chat.completions.create(
                model="m",
                messages=[{"role": "user", "content": text}],
                stream=stream,
                extra_body=context(user, session),
            )
            if stream:
                async for _ in answer:
                    pass
            shared_product.flush(user)
    assert "$10,000" in upstream.last_chat().system_text()


def test_another_user_gets_nothing(shared_product: Product, upstream: RecordingUpstream) -> None:
    shared_product.chat(BUDGET, "teller")
    assert shared_product.flush("teller") == {"pending": 0, "failed": 0}
    for shape in SHAPES:
        answer = shared_product.ask(QUESTION, "stranger", shape=shape)
        assert answer.headers["x-memory-status"] == "empty"
        assert "$10,000" not in upstream.last_chat().body.decode()
        assert shared_product.ask(QUESTION, "teller", shape=shape).headers["x-memory-status"] == "used"
        assert "$10,000" in shape.note(upstream.last_chat().body, QUESTION)
    assert shared_product.memories("stranger") == []


def test_a_streamed_turn_is_learnt_within_a_second(shared_product: Product, upstream: RecordingUpstream) -> None:
    upstream.answer = "That is a lovely name for a parrot, I must say."
    statement = "My parrot is called Quasimodo."
    with httpx.Client(base_url=shared_product.api, timeout=10, headers={"x-authz-user-id": "streamer"}) as api:
        assert api.get("/v1/memory").json()["memories"] == []  # the connection is open before the clock runs
        answer = shared_product.chat(statement, "streamer", stream=True)
        seconds = learnt_after(api, statement)
    assert answer.text.endswith("data: [DONE]\n\n")
    assert seconds <= 1.0
    assert not any("lovely" in memory for memory in shared_product.memories("streamer"))


def test_receipts_travel_in_the_response_headers(shared_product: Product, upstream: RecordingUpstream) -> None:
    shared_product.chat("I keep my passport in the blue drawer.", "owner")
    shared_product.flush("owner")
    answer = shared_product.ask("Where do I keep my passport?", "owner", stream=True)
    assert answer.headers["x-memory-status"] == "used"
    assert int(answer.headers["x-memory-count"]) >= 1
    assert answer.headers["x-memory-receipt"]
    greeted = shared_product.chat("Good morning!", "owner")
    assert greeted.headers["x-memory-status"] == "skipped"


def test_the_same_statement_again_updates_and_does_not_double(
    shared_product: Product, upstream: RecordingUpstream
) -> None:
    for text in ("My dentist is Dr. Okafor.", "my dentist is Dr. Okafor"):
        shared_product.chat(text, "repeater", session_id=text[:2])
        shared_product.flush("repeater")
    assert len(shared_product.memories("repeater")) == 1


def test_a_failed_reply_teaches_nothing(shared_product: Product, upstream: RecordingUpstream) -> None:
    upstream.status = 500
    assert shared_product.chat("My shoe size is 44.", "unlucky").status_code == 500
    upstream.status = 200
    assert shared_product.flush("unlucky") == {"pending": 0, "failed": 0}
    assert shared_product.memories("unlucky") == []


def test_memory_config_is_obeyed_and_stripped(shared_product: Product, upstream: RecordingUpstream) -> None:
    shared_product.chat("My bicycle is orange.", "careful", memory_config={"auto_store": False})
    shared_product.flush("careful")
    assert shared_product.memories("careful") == []
    shared_product.chat("My bicycle is orange.", "careful")
    shared_product.flush("careful")
    answer = shared_product.chat("What colour is my bicycle?", "careful", memory_config={"enabled": False})
    assert answer.headers["x-memory-status"] == "disabled"
    assert b"orange" not in upstream.last_chat().body
    assert b"memory_config" not in upstream.last_chat().body


def test_the_rest_api_is_served_under_the_proxys_own_port(shared_product: Product) -> None:
    url = f"{shared_product.url}/v1/memory"
    memory = {"content": "The alarm code of the cabin is 7741.", "memory_type": "semantic"}
    created = httpx.post(url, params={"user_id": "rester"}, json={"memories": [memory]}, timeout=10)
    assert created.status_code == 201
    found = httpx.post(f"{url}/search", params={"user_id": "rester"}, json={"query": "cabin alarm code"}, timeout=10)
    assert [m["content"] for m in found.json()["memories"]] == [memory["content"]]


@pytest.mark.parametrize("stream", [False, True])
def test_a_secret_is_in_no_file(shared_product: Product, upstream: RecordingUpstream, stream: bool) -> None:
    key = f"sk-proj-{'aB3dE5fG7hJ9kL1mN2pQ4rS6tU8v'[:: -1 if stream else 1]}"
    upstream.answer = f"I will use {key} then."
    shared_product.chat(f"My API key is {key}. I live in Leeds with my terrier Biscuit.", "careless", stream=stream)
    assert shared_product.flush("careless") == {"pending": 0, "failed": 0}
    assert any("Biscuit" in memory for memory in shared_product.memories("careless"))
    files = [path for path in shared_product.data_dir.rglob("*") if path.is_file()]
    assert [path.name for path in files if key.encode() in path.read_bytes()] == []
