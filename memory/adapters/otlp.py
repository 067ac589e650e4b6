"""Traces over OTLP/HTTP, on OpenTelemetry's SDK. Imported only where traces are switched on.

Spans are exported by a thread, from a bounded queue: what does not fit is dropped. A collector that is down costs one
log line, and a short attempt every few seconds.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from functools import partial
from types import TracebackType
from typing import Self

import structlog
from opentelemetry import context as contexts
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import ParentBasedTraceIdRatio
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from memory.runtime.tracing import AttributeValue, ServedCall, SpanName, StageTiming, TurnTrace, safe_attributes

QUEUE_SPANS_MAX = 4_096  # about 4 MB; a chat has ten spans
BATCH_SPANS_MAX = 512
PAUSE_MILLISECONDS = 1_000  # between two exports
EXPORT_SECONDS_MAX = 2.0  # of one export: less than a part has to end
SPARED_SECONDS = 10.0  # after a failed export nothing is sent for so long
LINKS_MAX = 32  # of a window
TRACE_ID_DIGITS = 32

log = structlog.get_logger(__name__)


class OtlpTracer:
    """The tracer of one process. Open with `async with`; what is queued at the end is sent if the collector works."""

    def __init__(self, endpoint: str, *, service: str, sample_ratio: float) -> None:
        """`endpoint`: base URL of the collector, without `/v1/traces`. `sample_ratio`: of traces that begin here;
        others are exported if their parent is.
        """
        for name in ("opentelemetry.sdk", "opentelemetry.exporter"):
            # a line for each batch; we write one for each outage
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
        exporter = OTLPSpanExporter(
            endpoint=f"{endpoint.rstrip('/')}/v1/traces", timeout=EXPORT_SECONDS_MAX, compression=Compression.Gzip
        )
        self._provider = TracerProvider(
            sampler=ParentBasedTraceIdRatio(sample_ratio),
            resource=Resource({"service.name": service}),  # nothing of the machine, its user or its command line
            id_generator=_TurnSpanIds(),
            span_limits=SpanLimits(max_links=LINKS_MAX),
            shutdown_on_exit=False,
        )
        self._provider.add_span_processor(
            BatchSpanProcessor(
                _PatientExporter(exporter, endpoint),
                max_queue_size=QUEUE_SPANS_MAX,  # past it the oldest give way
                max_export_batch_size=BATCH_SPANS_MAX,
                schedule_delay_millis=PAUSE_MILLISECONDS,
            )
        )
        self._tracer = self._provider.get_tracer("memproxy")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self._provider.shutdown)

    @contextmanager
    def span(
        self, name: SpanName, *, parent: str = "", of_turn: str = "", links: Sequence[TurnTrace] = ()
    ) -> Iterator[None]:
        with _given_span_id(span_id_of(of_turn) if of_turn else None):
            span = self._tracer.start_span(
                name,
                context=_remote(parent) if parent else None,
                links=[link for one in links if (link := _link(one)) is not None],
                record_exception=False,  # messages of errors may hold content
                set_status_on_exception=False,
            )
        with _current(span):
            yield

    @contextmanager
    def served(self, *, parent: str = "") -> Iterator[Callable[[ServedCall], None]]:
        span = self._tracer.start_span(
            "HTTP", context=_remote(parent), kind=trace.SpanKind.SERVER, record_exception=False
        )
        with _current(span):
            yield partial(_name, span)

    def note(self, **attributes: AttributeValue) -> None:
        named = {f"memproxy.{name}": value for name, value in safe_attributes(attributes).items()}
        trace.get_current_span().set_attributes(named)

    def stages(self, stages: Sequence[StageTiming]) -> None:
        if not trace.get_current_span().is_recording():
            return
        for stage in stages:
            began = int(stage.began_at * 1e9)
            span = self._tracer.start_span(f"recall.{stage.name}", start_time=began)
            span.end(began + int(stage.took * 1e9))

    def trace_id(self) -> str:
        found = trace.get_current_span().get_span_context()
        return f"{found.trace_id:032x}" if found.is_valid and found.trace_flags.sampled else ""


@contextmanager
def _current(span: trace.Span) -> Iterator[None]:
    """Make it the current span, until it ends with the body."""
    current = trace.use_span(span, end_on_exit=True, record_exception=False, set_status_on_exception=False)
    with current, ExitStack() as body:
        body.push(partial(_mark, span))
        yield


def _name(span: trace.Span, call: ServedCall) -> None:
    span.update_name(call.name())
    span.set_attributes(call.attributes())
    if call.is_error():
        span.set_status(trace.StatusCode.ERROR)


def _mark(
    span: trace.Span, kind: type[BaseException] | None, error: BaseException | None, trace_: TracebackType | None
) -> None:
    """Show an error on the span, by its type alone."""
    if kind is not None:
        span.set_status(trace.StatusCode.ERROR, kind.__name__)


def span_id_of(turn_id: str) -> int:
    """The id of the span in which this turn was observed: derived, so that a worker can link to it."""
    return int.from_bytes(hashlib.sha256(turn_id.encode()).digest()[:8], "big") or 1


def _link(turn: TurnTrace) -> trace.Link | None:
    if len(turn.trace_id) != TRACE_ID_DIGITS:
        return None
    observed = _remote(f"00-{turn.trace_id.lower()}-{span_id_of(turn.turn_id):016x}-01")
    linked = trace.get_current_span(observed).get_span_context()
    return trace.Link(linked) if linked.is_valid else None


def _remote(traceparent: str) -> contexts.Context:
    """A context with that parent alone; without one if it is malformed."""
    return TraceContextTextMapPropagator().extract({"traceparent": traceparent}, contexts.Context())


_next_span_id: ContextVar[int | None] = ContextVar("next_span_id", default=None)


@contextmanager
def _given_span_id(span_id: int | None) -> Iterator[None]:
    token = _next_span_id.set(span_id)
    try:
        yield
    finally:
        _next_span_id.reset(token)


class _TurnSpanIds(RandomIdGenerator):
    def generate_span_id(self) -> int:
        given = _next_span_id.get()
        return super().generate_span_id() if given is None else given


class _PatientExporter(SpanExporter):
    """One log line when the collector stops accepting spans, and one when it does again; few attempts in between."""

    def __init__(self, exporter: SpanExporter, endpoint: str) -> None:
        self._exporter = exporter
        self._endpoint = endpoint
        self._is_failing = False
        self._spared_until = 0.0

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        if self._is_failing and time.monotonic() < self._spared_until:
            return SpanExportResult.FAILURE
        result = self._exporter.export(spans)
        is_failing = result is not SpanExportResult.SUCCESS
        if is_failing and not self._is_failing:
            log.warning("traces cannot be exported: spans are dropped", endpoint=self._endpoint)
        elif self._is_failing and not is_failing:
            log.warning("traces are exported again", endpoint=self._endpoint)
        self._is_failing = is_failing
        self._spared_until = time.monotonic() + SPARED_SECONDS
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()
