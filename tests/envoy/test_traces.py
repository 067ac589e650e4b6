"""One trace from the client through Envoy, filter and turn log to the worker, without a word or a name of the user."""

from __future__ import annotations

import uuid
from typing import Any

import httpx
import pytest
from filter_stack import running_stack
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from product import Product, eventually, in_time
from trace_collector import CollectedSpan, TraceCollector
from upstream import RecordingUpstream

from memory.settings.switches import TracingSettings

USER = "ann.of.the.traces@example.org"
MARKER = "zanzibarine"
PARENT = "b7ad6b7169203331"
CLIENT_PARTS = ("memory.inject", "memory.recall", "recall.embed", "memory.observe", "turn.open", "turn.close")


def chat(product: Product, text: str, trace: str = "", *, flag: str = "01", stream: bool = False) -> httpx.Response:
    return httpx.post(
        f"{product.url}/v1/chat/completions?words={MARKER}",
        json={
            "model": "m",
            "stream": stream,
            "messages": [{"role": "user", "content": text}],
            "memory_context": {"user_id": USER, "session_id": uuid.uuid4().hex},
        },
        headers={"user-agent": MARKER, **(parent_of(trace, flag=flag) if trace else {})},
        timeout=30,
    )


def parent_of(trace: str, *, flag: str = "01") -> dict[str, str]:
    """The header of a client that traces its calls."""
    return {"traceparent": f"00-{trace}-{PARENT}-{flag}"}


def whole_trace(collector: TraceCollector, trace_id: str, *, names: tuple[str, ...]) -> dict[str, CollectedSpan]:
    """Its spans by name, once all of these are there."""

    def found() -> dict[str, CollectedSpan]:
        spans = {span.name: span for span in collector.trace(trace_id)}
        return spans if set(names) <= set(spans) else {}

    try:
        spans: dict[str, CollectedSpan] = eventually(found)
    except AssertionError as late:
        late.add_note(f"came: {[span.name for span in collector.trace(trace_id)]}")
        raise
    return spans


@pytest.mark.parametrize("stream", [False, True], ids=["whole answer", "streamed answer"])
def test_client_envoy_and_filter_are_one_trace_with_right_parents(
    shared_product: Product, trace_collector: TraceCollector, upstream: RecordingUpstream, stream: bool
) -> None:
    tried: list[str] = []

    def ask() -> httpx.Response:
        tried.append(uuid.uuid4().hex)
        return chat(shared_product, f"I love {MARKER} tea.", tried[-1], stream=stream)

    answer = in_time(ask)
    assert answer.status_code == 200
    trace = tried[-1]
    spans = whole_trace(trace_collector, trace, names=("ingress", *CLIENT_PARTS))
    ingress, inject, observe = (spans[name] for name in ("ingress", "memory.inject", "memory.observe"))
    assert ingress.service == "memproxy-envoy"
    assert ingress.parent_id == PARENT

    def both_calls() -> dict[str, CollectedSpan] | None:
        """Envoy's spans of its calls to the filter, which it may export after the others."""
        found = {span.span_id: span for span in trace_collector.trace(trace) if span.parent_id == ingress.span_id}
        return found if {inject.parent_id, observe.parent_id} <= found.keys() else None

    calls = eventually(both_calls)
    clusters = [calls[one.parent_id].attributes["upstream_cluster"] for one in (inject, observe)]
    assert clusters == ["memory_inject", "memory_observe"]
    assert spans["memory.recall"].parent_id == inject.span_id
    assert spans["recall.embed"].parent_id == spans["memory.recall"].span_id
    assert spans["turn.open"].parent_id in {inject.span_id, observe.span_id}, "the observer's, if the log was late"
    assert spans["turn.close"].parent_id == observe.span_id
    assert {spans[name].service for name in CLIENT_PARTS} == {"memproxy-filter"}
    assert spans["memory.recall"].attribute("receipt_id") == answer.headers["x-memory-receipt"]
    assert spans["memory.recall"].attribute("status") == answer.headers["x-memory-status"]
    asked = upstream.last_chat().headers["traceparent"]
    assert asked.startswith(f"00-{trace}-")  # the model server can continue the trace
    assert [one for one in spans.values() if one.ended < one.began] == []


def test_the_window_of_a_turn_links_to_its_opening(shared_product: Product, trace_collector: TraceCollector) -> None:
    trace = uuid.uuid4().hex
    chat(shared_product, f"My parrot is called {MARKER}.", trace)
    assert shared_product.flush(USER)["pending"] == 0
    opening = whole_trace(trace_collector, trace, names=("turn.open",))["turn.open"]

    def window() -> list[CollectedSpan]:
        return [span for span in trace_collector.spans() if (trace, opening.span_id) in span.links]

    (learnt,) = eventually(window)
    assert (learnt.service, learnt.name, learnt.attribute("outcome")) == ("memproxy-worker", "memory.learn", "learnt")
    steps = {span.name for span in trace_collector.trace(learnt.trace_id) if span.parent_id == learnt.span_id}
    assert steps == {"learn.read", "learn.apply"}


def test_without_a_trace_envoy_begins_one_on_record(shared_product: Product, trace_collector: TraceCollector) -> None:
    known = {span.trace_id for span in trace_collector.spans()}
    chat(shared_product, f"I moved to {MARKER} street.")

    def recorded() -> list[str]:
        page = httpx.get(f"{shared_product.api}/v1/memory/messages", params={"user_id": USER}, timeout=30).json()
        return [one["trace_id"] for one in page["messages"] if "street" in one["content"]]

    (trace,) = set(eventually(recorded))
    assert trace not in known
    spans = whole_trace(trace_collector, trace, names=("ingress", "memory.observe", "memory.recall"))
    assert spans["ingress"].parent_id == ""


def test_a_client_that_wants_no_trace_gets_none(shared_product: Product, trace_collector: TraceCollector) -> None:
    quiet, loud = uuid.uuid4().hex, uuid.uuid4().hex
    chat(shared_product, "What do I like?", quiet, flag="00")
    chat(shared_product, "What do I like?", loud)
    whole_trace(trace_collector, loud, names=("ingress", *CLIENT_PARTS))
    assert trace_collector.trace(quiet) == []


SEARCH = {"query": f"What about {MARKER}?"}
TOOL = {"name": "memory_search", "arguments": SEARCH}


@pytest.mark.parametrize(
    ("port", "path", "body"),
    [
        ("proxy", "/v1/memory/search", SEARCH),
        ("API", "/v1/memory/search", SEARCH),
        ("API", "/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": TOOL}),
    ],
)
def test_a_call_of_the_api_and_its_steps_are_in_its_trace(
    shared_product: Product, trace_collector: TraceCollector, port: str, path: str, body: dict[str, Any]
) -> None:
    trace, base = uuid.uuid4().hex, shared_product.url if port == "proxy" else shared_product.api
    headers = {**parent_of(trace), "accept": "application/json, text/event-stream"}
    answer = httpx.post(f"{base}{path}?user_id={USER}", json=body, headers=headers, timeout=60)
    assert answer.status_code == 200, answer.text
    steps = (f"POST {path}", "memory.recall", "recall.embed")
    spans = whole_trace(trace_collector, trace, names=steps if port == "API" else ("ingress", *steps))
    served, recall, embed = (spans[name] for name in steps)
    assert (served.service, served.kind) == ("memproxy-api", Span.SPAN_KIND_SERVER)
    called = {"http.request.method": "POST", "http.route": path, "http.response.status_code": 200}
    assert served.attributes == called
    envoy = {span.span_id for span in trace_collector.trace(trace) if span.service == "memproxy-envoy"}
    assert served.parent_id in (envoy if port == "proxy" else {PARENT})
    assert (recall.parent_id, embed.parent_id) == (served.span_id, recall.span_id)


def test_nothing_exported_holds_words_names_or_addresses(
    shared_product: Product, trace_collector: TraceCollector
) -> None:
    """After all chats above, each of which named the user and the marker in several places; and unknown paths."""
    called, trace = uuid.uuid4().hex, uuid.uuid4().hex
    for path in (f"/v1/memory/{MARKER}", f"/v1/{MARKER}/{MARKER}"):
        url, user = f"{shared_product.api}{path}", {"user_id": USER}
        httpx.get(url, params=user, headers=parent_of(called), timeout=30)
    chat(shared_product, f"What do I say of {MARKER}?", trace)
    eventually(lambda: len(trace_collector.trace(called)) == 2)
    unmatched = whole_trace(trace_collector, called, names=("GET unmatched",))["GET unmatched"]
    assert "http.route" not in unmatched.attributes
    whole_trace(trace_collector, trace, names=("ingress", *CLIENT_PARTS))
    exported = b"".join(trace_collector.received)
    assert [word for word in (USER, MARKER, "parrot", "127.0.0.1", "user_id=") if word.encode() in exported] == []
    values = {key for span in trace_collector.spans() for key in span.attributes if key.startswith("memproxy.")}
    assert values >= {"memproxy.status", "memproxy.receipt_id"}


@pytest.mark.parametrize("ratio", [0.0, 1.0])
@pytest.mark.full("an Envoy for each share")
async def test_a_client_decides(upstream: RecordingUpstream, trace_collector: TraceCollector, ratio: float) -> None:
    tracing = TracingSettings(endpoint=trace_collector.url, sample_ratio=ratio)
    async with running_stack(upstream.url, tracing=tracing) as stack:
        for flag in ("00", "01"):
            trace, body = uuid.uuid4().hex, {"model": "m", "messages": [{"role": "user", "content": "Hello"}]}
            assert (await stack.chat(body, **parent_of(trace, flag=flag))).status_code == 200
            asked = upstream.last_chat().headers["traceparent"]
            assert (asked[:36], asked[-2:]) == (f"00-{trace}-", flag)
