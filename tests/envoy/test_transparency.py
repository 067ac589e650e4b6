"""Who does not ask for memory must not notice us: bytes in, bytes out, through the whole product."""

from __future__ import annotations

import json
import time

import httpx
import pytest
from product import Product, eventually
from upstream import RecordingUpstream

ODD_JSON = (
    b'{ "model":"m",  "temperature":0.70,"n":1e0,\t"messages":[{"content":"caf\\u00e9 \\ud83d","role":"user"}] ,'
    b'"x":12345678901234567890}'
)


def post(product: Product, path: str, body: bytes, **headers: str) -> httpx.Response:
    return httpx.post(
        f"{product.url}{path}", content=body, headers={"content-type": "application/json", **headers}, timeout=30
    )


def test_without_identity_the_upstream_receives_the_clients_bytes(
    shared_product: Product, upstream: RecordingUpstream
) -> None:
    answer = post(shared_product, "/v1/chat/completions", ODD_JSON)
    assert answer.status_code == 200
    assert upstream.received[-1].body == ODD_JSON
    assert not [name for name in answer.headers if name.startswith("x-memory")]


def test_with_identity_only_our_fields_go(shared_product: Product, upstream: RecordingUpstream) -> None:
    ours = b',"memory_context":{"user_id":"bytes"}'
    post(shared_product, "/v1/chat/completions", ODD_JSON[:-1] + ours + b"}")
    assert upstream.received[-1].body == ODD_JSON


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"not json",
        b"[1,2,3]",
        b'{"messages":"text"}',
        b'{"messages":{"role":"user"}}',
        b'{"messages":[1,2]}',
        b'{"messages":[]}',
        b"\xff\xfe\x00",
        b'{"messages":[{"role":"user","content":"hi"}]} trailing',
        b'{"messages":[{"role":"user","content":NaN}]}',
    ],
)
@pytest.mark.parametrize("user", ["", "somebody"])
def test_a_body_that_is_not_what_it_claims_passes(
    shared_product: Product, upstream: RecordingUpstream, body: bytes, user: str
) -> None:
    headers = {"x-authz-user-id": user} if user else {}
    answer = post(shared_product, "/v1/chat/completions", body, **headers)
    assert answer.status_code in (200, 400)  # the upstream's own answer
    assert upstream.received[-1].body == body


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/models"),
        ("GET", "/anything/else?with=query"),
        ("POST", "/v1/embeddings"),
        ("POST", "/v1/rerank"),
        ("DELETE", "/v1/files/f-1"),
        ("GET", "/v1/chat/completions"),
        ("POST", "/v1/conversations"),  # OpenAI's and vLLM's own: our short names are on the API port only
        ("GET", "/v1/conversations/c1/messages"),
        ("DELETE", "/v1/sessions/s1"),
    ],
)
def test_other_paths_and_methods_pass(
    shared_product: Product, upstream: RecordingUpstream, method: str, path: str
) -> None:
    body = b'{"input":"x","memory_context":{"user_id":"u"}}' if method == "POST" else b""
    answer = httpx.request(method, f"{shared_product.url}{path}", content=body, timeout=10)
    assert answer.status_code == 200
    assert (upstream.received[-1].method, upstream.received[-1].body) == (method, body)


def test_streamed_bytes_reach_the_client_exactly(shared_product: Product, upstream: RecordingUpstream) -> None:
    upstream.answer = "Grüße 你好 — " * 50
    for user in ("", "listener"):
        upstream.streamed.clear()
        answer = shared_product.chat("Tell me something long about me.", user, stream=True)
        assert answer.content == b"".join(upstream.streamed)


def test_twenty_megabytes_pass_and_are_stripped(shared_product: Product, upstream: RecordingUpstream) -> None:
    messages = [{"role": "user", "content": "long " * 4_000_000}, {"role": "user", "content": "What is my name?"}]
    body = {"model": "m", "memory_context": {"user_id": "large"}, "messages": messages}

    def is_stripped() -> bool:
        started = time.monotonic()
        answer = httpx.post(f"{shared_product.url}/v1/chat/completions", json=body, timeout=30)
        assert answer.status_code == 200
        assert time.monotonic() - started < 10
        received = json.loads(upstream.received[-1].body)
        assert received["messages"][-2:] == messages
        return "memory_context" not in received

    eventually(is_stripped)  # where the filter is late, the body passes as it came


def test_the_upstreams_errors_are_the_clients(shared_product: Product, upstream: RecordingUpstream) -> None:
    upstream.status = 429
    answer = shared_product.chat("What is my name?", "unlucky-2")
    assert (answer.status_code, answer.json()) == (429, {"error": {"message": "out of order"}})
