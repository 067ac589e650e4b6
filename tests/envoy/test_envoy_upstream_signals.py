"""What filters ahead of us say about a request reaches recall through a real Envoy, and strangers cannot say it."""

from __future__ import annotations

import json

import httpx
import pytest
from filter_stack import running_stack
from product import Product, in_time
from upstream import RecordingUpstream

from extproc.identity import IdentityMode
from extproc.upstream_signals import signal_reader
from memory.recall.signals.upstream import NO_SIGNALS, UpstreamSignals
from memory.settings import UpstreamSignal

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
AHEAD = (b'"httpFilters": [', b'"httpFilters": [' + json.dumps(CLASSIFIER).encode() + b", ")


async def test_recall_hears_trusted_peers_and_filters_ahead_and_no_stranger(upstream: RecordingUpstream) -> None:
    heard = [
        ({}, NO_SIGNALS),
        ({"x-vsr-fact-check-needed": "true"}, UpstreamSignals("general_fact", "x-vsr-fact-check-needed")),
        ({"x-memory-intent": "search"}, UpstreamSignals("search", "x-memory-intent")),
        ({"x-classified": "skip"}, UpstreamSignals("skip", "memory.signals:intent")),
        ({"x-unheard-of": "skip"}, NO_SIGNALS),
    ]
    peers = ("127.0.0.2/32",)
    async with running_stack(upstream.url, identity=IdentityMode.HEADER, trusted_peers=peers, rewrite=AHEAD) as stack:
        for said, signals in heard:
            await stack.chat(BODY, source="127.0.0.2", **ALICE, **said)
            assert stack.recall.signals[-1] == signals
        await stack.chat(BODY, source="127.0.0.1", **{"x-memory-intent": "search", "x-disable-router-memory": "true"})
        assert not {"x-memory-intent", "x-disable-router-memory"} & upstream.last_chat().headers.keys()


async def test_a_stranger_cannot_steer_a_search_even_where_somebody_vouches_for_it(upstream: RecordingUpstream) -> None:
    """Envoy is made to keep the identity of strangers, as if a filter had set it there: signals go all the same."""
    keeping = (b'{"remove": "x-authz-user-id"}', b'{"remove": "x-nothing"}')
    peers = ("127.0.0.2/32",)
    async with running_stack(upstream.url, identity=IdentityMode.HEADER, trusted_peers=peers, rewrite=keeping) as stack:
        for source, means in (("127.0.0.1", ""), ("127.0.0.2", "skip")):
            await stack.chat(BODY, source=source, **ALICE, **{"x-memory-intent": "skip"})
            assert stack.recall.signals[-1].means == means


@pytest.mark.parametrize("is_deaf", [False, True])
async def test_the_setting_names_who_is_heard(upstream: RecordingUpstream, *, is_deaf: bool) -> None:
    mine = () if is_deaf else (UpstreamSignal(name="X-My-Router", values=("weather",), means="tool"),)
    async with running_stack(upstream.url, signals=signal_reader(mine)) as stack:
        await stack.chat(BODY, **ALICE, **{"x-my-router": "Weather", "x-memory-intent": "search"})
        assert stack.recall.signals == [NO_SIGNALS if is_deaf else UpstreamSignals("tool", "x-my-router")]


def test_a_signal_turns_a_searched_question_into_a_skipped_one_and_the_other_way_round(
    shared_product: Product, upstream: RecordingUpstream
) -> None:
    def status(text: str, **headers: str) -> str:
        body = {"model": "m", "messages": [{"role": "user", "content": text}]}
        url, identity = f"{shared_product.url}/v1/chat/completions", {"x-authz-user-id": "signalled"}
        answer = in_time(lambda: httpx.post(url, json=body, headers=identity | headers, timeout=30))
        return str(answer.headers["x-memory-status"])

    question, greeting = "How does a heat pump work in winter, in simple words?", "Good morning!"
    shared_product.chat("My heat pump is a Daikin.", "signalled")
    shared_product.flush("signalled")
    assert status("Which heat pump do I have?") == "used"
    assert status("What is the brand of my heat pump?", **{"x-disable-router-memory": "true"}) == "skipped"
    assert status("What is the brand of my heat pump?") == "used"
    assert status(question, **{"x-vsr-fact-check-needed": "true"}) == "skipped"
    assert status(greeting) == "skipped"
    assert status(greeting, **{"x-memory-intent": "search"}) in ("used", "empty")
