"""The contract of `Tracer`, on the one that does nothing and on OpenTelemetry's, with a collector that decodes."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator

import pytest
from structlog.testing import capture_logs
from trace_collector import TraceCollector, running_collector

from memory.adapters.otlp import QUEUE_SPANS_MAX, OtlpTracer, span_id_of
from memory.runtime.tracing import NO_TRACER, ServedCall, SpanName, StageTiming, Tracer, TurnTrace

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = "b7ad6b7169203331"
SAMPLED, NOT_SAMPLED = f"00-{TRACE}-{PARENT}-01", f"00-{TRACE}-{PARENT}-00"


@pytest.fixture(params=["none", "OTLP"])
async def tracer(request: pytest.FixtureRequest) -> AsyncIterator[Tracer]:
    if request.param == "none":
        yield NO_TRACER
        return
    with running_collector() as collector:
        async with exporting(collector) as tracer:
            yield tracer


@pytest.fixture
async def collector() -> AsyncIterator[TraceCollector]:
    with running_collector() as running:
        yield running


def exporting(collector: TraceCollector, *, sample_ratio: float = 1.0) -> OtlpTracer:
    return OtlpTracer(collector.url, service="test", sample_ratio=sample_ratio)


@pytest.mark.parametrize("parent", ["", "nonsense", f"00-{'0' * 32}-{PARENT}-01", SAMPLED, NOT_SAMPLED])
async def test_what_is_traced_runs_with_any_parent_and_its_errors_pass(tracer: Tracer, parent: str) -> None:
    tracer.note(status="used")  # outside of every span
    tracer.stages([StageTiming("embed", 1.0, 0.5)])
    links = [TurnTrace("t", "no trace")]
    with tracer.span(SpanName.INJECT, parent=parent), tracer.span(SpanName.LEARN, links=links):
        tracer.note(status="used", reason="What they said", content="secret", memories=3)
    with tracer.served(parent=parent) as name:
        name(ServedCall("GET", "/v1/memory", 200))
    for traced in (tracer.span(SpanName.LEARN), tracer.served(parent=parent)):
        with pytest.raises(LookupError), traced:
            raise LookupError
    assert tracer.trace_id() == ""


async def test_served_calls_are_named_by_their_routes_inside_their_parents(collector: TraceCollector) -> None:
    route = "/v1/memory/{memory_id:str}"
    async with exporting(collector, sample_ratio=0.0) as tracer:
        for call in (ServedCall("GET", route, 200), ServedCall("SECRET", "", 404), ServedCall("PUT", "", 503)):
            with tracer.served(parent=SAMPLED) as name:
                with tracer.span(SpanName.RECALL):
                    pass
                name(call)
    spans = {span.name: span for span in collector.trace(TRACE)}
    found, unknown, failed = (spans[name] for name in (f"GET {route}", "HTTP unmatched", "PUT unmatched"))
    assert {span.parent_id for span in (found, unknown, failed)} == {PARENT}
    assert found.attributes == {"http.request.method": "GET", "http.route": route, "http.response.status_code": 200}
    assert unknown.attributes == {"http.request.method": "_OTHER", "http.response.status_code": 404}
    assert failed.attributes["error.type"] == "503"
    inner = {span.parent_id for span in collector.trace(TRACE) if span.name == "memory.recall"}
    assert inner == {span.span_id for span in (found, unknown, failed)}


async def test_spans_have_their_parents_stages_and_attributes(collector: TraceCollector) -> None:
    async with OtlpTracer(f"{collector.url}/", service="memproxy-test", sample_ratio=0.0) as tracer:
        with tracer.span(SpanName.INJECT, parent=SAMPLED):
            assert tracer.trace_id() == TRACE
            with tracer.span(SpanName.RECALL):
                tracer.stages([StageTiming("embed", 1_700_000_000.0, 0.25)])
                tracer.note(status="used", reason="found", memories=2, compacted=False)
                tracer.note(reason="Ann likes tea", content="tea", receipt_id="x" * 65)
    spans = {span.name: span for span in collector.trace(TRACE)}
    outer, inner, stage = (spans[name] for name in ("memory.inject", "memory.recall", "recall.embed"))
    assert (outer.service, outer.parent_id) == ("memproxy-test", PARENT)
    assert (inner.parent_id, stage.parent_id) == (outer.span_id, inner.span_id)
    noted = {"status": "used", "reason": "found", "memories": 2, "compacted": False}
    assert inner.attributes == {f"memproxy.{name}": value for name, value in noted.items()}
    assert (stage.began, stage.ended) == (1_700_000_000_000_000_000, 1_700_000_000_250_000_000)


async def test_concurrent_tasks_nest_in_what_began_them(collector: TraceCollector) -> None:
    async with exporting(collector) as tracer:

        async def work(turn: str) -> None:
            with tracer.span(SpanName.OBSERVE, parent=SAMPLED, of_turn=turn):
                await asyncio.sleep(0)
                with tracer.span(SpanName.OPEN_TURN):
                    await asyncio.sleep(0)

        await asyncio.gather(*(work(f"t{i}") for i in range(5)))
    opened = [span for span in collector.trace(TRACE) if span.name == "turn.open"]
    assert sorted(span.parent_id for span in opened) == sorted(f"{span_id_of(f't{i}'):016x}" for i in range(5))
    assert len({span.span_id for span in opened}) == 5


async def test_a_window_links_to_the_observations_of_its_turns(collector: TraceCollector) -> None:
    traces = [TRACE, "a request id", "0" * 32, "", TRACE.upper(), "a" * 600]
    turns = [TurnTrace(f"t{number}", trace) for number, trace in enumerate(traces, start=1)]
    async with exporting(collector) as tracer:
        with tracer.span(SpanName.LEARN, links=turns):
            pass
    (span,) = collector.spans()
    assert span.links == tuple((TRACE, f"{span_id_of(turn):016x}") for turn in ("t1", "t5"))
    assert span.parent_id == ""


async def test_sampling_follows_the_parent_and_else_the_ratio(collector: TraceCollector) -> None:
    async with exporting(collector, sample_ratio=0.0) as tracer:
        with tracer.span(SpanName.LEARN):
            assert tracer.trace_id() == ""
        with tracer.span(SpanName.INJECT, parent=SAMPLED):
            pass
    async with exporting(collector) as tracer:
        with tracer.span(SpanName.INJECT, parent=NOT_SAMPLED):
            pass
    assert [span.name for span in collector.spans()] == ["memory.inject"]


async def test_an_error_shows_as_its_type_and_never_as_its_message(collector: TraceCollector) -> None:
    async with exporting(collector) as tracer:
        with pytest.raises(ValueError, match="secret"), tracer.span(SpanName.LEARN):
            raise ValueError("secret words of a user")
    assert b"ValueError" in b"".join(collector.received)
    assert b"secret" not in b"".join(collector.received)


async def test_a_collector_that_is_down_costs_one_line_until_it_is_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memory.adapters.otlp.SPARED_SECONDS", 0.1)
    with running_collector() as first:
        pass
    with capture_logs() as logs:
        async with asyncio.timeout(60), exporting(first) as tracer:
            for _ in range(3 * QUEUE_SPANS_MAX):
                with tracer.span(SpanName.RECALL):
                    pass
            while not logs:
                await asyncio.sleep(0.05)
            with running_collector(first.port) as collector:
                while not collector.received:
                    with tracer.span(SpanName.LEARN):
                        await asyncio.sleep(0.1)
                while len(logs) < 2:
                    await asyncio.sleep(0.05)
    dropped, again = "traces cannot be exported: spans are dropped", "traces are exported again"
    assert [line["event"] for line in logs[:2]] == [dropped, again]  # what comes at the end finds it gone


def test_nothing_of_opentelemetry_is_imported_while_traces_are_off() -> None:
    code = (
        "import sys, extproc.server, memory.processes.entrypoints;"
        "print([name for name in sys.modules if name.startswith('opentelemetry.sdk') or 'otlp' in name])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"
