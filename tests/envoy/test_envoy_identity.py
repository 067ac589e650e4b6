"""Identity and signals in headers through a real Envoy: what a client may try with them, and what filters make of them.

Envoy hands the lines of a repeated header on one by one, and joins nothing; so a comma in a value is part of an id.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from functools import partial

import pytest
import pytest_asyncio
from api_shapes import SHAPES
from filter_stack import NOTE, FilterStack, running_stack
from upstream import RecordingUpstream

from extproc.identity import IDENTITY_HEADER
from memory.recall.signals.upstream import NO_SIGNALS, UpstreamSignals

QUESTION = "What is my cat called?"
BODY = b'{"model":"m","messages":[{"role":"user","content":"What is my cat called?"}]}'
ALICE = {"x-authz-user-id": "alice"}

# A filter of somebody else's, ahead of ours: it writes what it found out into Envoy's metadata.
CLASSIFIER = {
    "name": "envoy.filters.http.header_to_metadata",
    "typedConfig": {
        "@type": "type.googleapis.com/envoy.extensions.filters.http.header_to_metadata.v3.Config",
        "requestRules": [
            {
                "header": "x-classified",
                "onHeaderPresent": {"metadataNamespace": "memory.signals", "key": "intent", "type": "STRING"},
                "remove": True,
            }
        ],
    },
}
AHEAD = (b'"http_filters": [', b'"http_filters": [' + json.dumps(CLASSIFIER).encode() + b", ")
PEERS = ("127.0.0.2/32",)
pytestmark = pytest.mark.asyncio(loop_scope="session")  # one stack a mode


@pytest_asyncio.fixture(scope="module", loop_scope="session", params=["development", "header"])
async def shared_stack(
    request: pytest.FixtureRequest, shared_upstream: RecordingUpstream
) -> AsyncIterator[FilterStack]:
    async with running_stack(shared_upstream.url, identity=request.param) as running:
        yield running


async def ask(stack: FilterStack, *values: bytes, name: str = IDENTITY_HEADER) -> str:
    """The memory status of a question with one header line for each value; "" where memory had no part in it.

    It is asked through each API, and must get the same from all.
    """
    lines = [(b"content-type", b"application/json"), *((name.encode(), value) for value in values)]
    seen = set()
    for shape in SHAPES:
        body = json.dumps(shape.body([{"role": "user", "content": QUESTION}])).encode()
        async with stack.client() as client:
            answer = await client.post(shape.shape.path, content=body, headers=lines)
        assert answer.status_code == 200
        seen.add(answer.headers.get("x-memory-status", ""))
    [status] = seen
    return status


async def test_two_lines_that_differ_name_and_teach_nobody(stack: FilterStack, upstream: RecordingUpstream) -> None:
    for values in ((b"alice", b"bob"), (b"bob", b"alice"), (b"alice", b""), (b"alice", b"alice", b"bob")):
        assert await ask(stack, *values) == "", values
        assert not [one for one in upstream.received[-len(SHAPES) :] if NOTE.encode() in one.body]
    assert await ask(stack, b"alice", b"bob", name="X-Authz-User-Id") == ""
    assert stack.recall.asked == []
    assert stack.count("memproxy_identity_refused_total", reason="several_headers") >= 5 * len(SHAPES)
    for user in ("alice", "bob", "alice,bob", "alice, bob", "bob,alice", "alice,"):
        assert await stack.turns(user) == []


async def test_a_line_twice_is_one_and_a_comma_is_part_of_it(stack: FilterStack, upstream: RecordingUpstream) -> None:
    for values in ((b"carol", b"carol"), (b"carol,dave",), (b"carol, dave",)):
        assert await ask(stack, *values) == "used"
    assert [scope.user_id for scope, _ in stack.recall.asked[:: len(SHAPES)]] == ["carol", "carol,dave", "carol, dave"]
    assert len(stack.recall.asked) == 3 * len(SHAPES)


async def test_only_a_trusted_peer_may_say_who_the_user_is(upstream: RecordingUpstream) -> None:
    question = [{"role": "user", "content": QUESTION}]
    async with running_stack(upstream.url, identity="header", trusted_peers=PEERS) as stack:
        for shape in SHAPES:
            stack.begin()
            asks = partial(stack.chat, shape=shape)
            plain = json.dumps(shape.body(question)).encode()
            naming_alice = json.dumps(shape.body(question, memory_context={"user_id": "alice"})).encode()
            spoofed = await asks(plain, source="127.0.0.1", **ALICE)
            assert "x-memory-status" not in spoofed.headers
            assert "x-authz-user-id" not in upstream.last_chat().headers
            assert stack.recall.asked == []
            in_body = await asks(naming_alice, source="127.0.0.2")
            assert in_body.headers["x-memory-status"] == "disabled"
            assert stack.count("memproxy_identity_refused_total", reason="unproven_user") == 1
            believed = await asks(plain, source="127.0.0.2", **ALICE)
            assert believed.headers["x-memory-status"] == "used"
            forwarded = await asks(plain, source="127.0.0.1", **ALICE, **{"x-forwarded-for": "127.0.0.2"})
            assert "x-memory-status" not in forwarded.headers


async def test_recall_hears_trusted_peers_and_filters_ahead_and_no_stranger(upstream: RecordingUpstream) -> None:
    stated = [
        ({}, NO_SIGNALS),
        ({"x-disable-router-memory": "true"}, UpstreamSignals("skip", "x-disable-router-memory")),
        ({"x-memory-intent": "search"}, UpstreamSignals("search", "x-memory-intent")),
        ({"x-classified": "skip"}, UpstreamSignals("skip", "memory.signals:intent")),
        ({"x-unstated-of": "skip"}, NO_SIGNALS),
    ]
    async with running_stack(upstream.url, identity="header", trusted_peers=PEERS, rewrite=AHEAD) as stack:
        for said, signals in stated:
            await stack.chat(BODY, source="127.0.0.2", **ALICE, **said)
            assert stack.recall.signals[-1] == signals
        await stack.chat(BODY, source="127.0.0.1", **{"x-memory-intent": "search", "x-disable-router-memory": "true"})
        assert not {"x-memory-intent", "x-disable-router-memory"} & upstream.last_chat().headers.keys()


@pytest.mark.full("another configuration of Envoy")
async def test_a_stranger_cannot_steer_a_search_even_where_somebody_vouches_for_it(upstream: RecordingUpstream) -> None:
    """Envoy is made to keep the identity of strangers, as if a filter had set it there: signals go all the same."""
    keeping = (b'{"remove": "x-authz-user-id"}', b'{"remove": "x-nothing"}')
    async with running_stack(upstream.url, identity="header", trusted_peers=PEERS, rewrite=keeping) as stack:
        for source, means in (("127.0.0.1", ""), ("127.0.0.2", "skip")):
            await stack.chat(BODY, source=source, **ALICE, **{"x-memory-intent": "skip"})
            assert stack.recall.signals[-1].means == means
