"""A collector of OpenTelemetry spans: OTLP over HTTP on a free port, decoded by the protocol's own types."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, Span
from served_app import served
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route


@dataclass(frozen=True, slots=True)
class CollectedSpan:
    """`service`: of the resource. Ids in hexadecimal."""

    service: str
    name: str
    trace_id: str
    span_id: str
    parent_id: str
    links: tuple[tuple[str, str], ...]
    attributes: dict[str, str | int | float | bool]
    kind: int
    began: int
    ended: int

    def attribute(self, name: str) -> str | int | float | bool | None:
        return self.attributes.get(f"memproxy.{name}")


@dataclass
class TraceCollector:
    """`received`: the bodies as they came, unpacked; `collected`: their spans."""

    port: int = 0
    received: list[bytes] = field(default_factory=list)
    collected: list[CollectedSpan] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def spans(self) -> list[CollectedSpan]:
        """So far."""
        return list(self.collected)

    def trace(self, trace_id: str) -> list[CollectedSpan]:
        return [span for span in self.collected if span.trace_id == trace_id]

    def receive(self, body: bytes) -> None:
        self.received.append(body)
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            service = _service_of(resource)
            self.collected += [_collected(service, span) for scope in resource.scope_spans for span in scope.spans]


def _service_of(resource: ResourceSpans) -> str:
    values = {one.key: one.value.string_value for one in resource.resource.attributes}
    return values.get("service.name", "")


def _collected(service: str, span: Span) -> CollectedSpan:
    return CollectedSpan(
        service=service,
        name=span.name,
        trace_id=span.trace_id.hex(),
        span_id=span.span_id.hex(),
        parent_id=span.parent_span_id.hex(),
        links=tuple((link.trace_id.hex(), link.span_id.hex()) for link in span.links),
        attributes={
            one.key: getattr(one.value, one.value.WhichOneof("value") or "string_value") for one in span.attributes
        },
        kind=span.kind,
        began=span.start_time_unix_nano,
        ended=span.end_time_unix_nano,
    )


@contextmanager
def running_collector(port: int = 0) -> Iterator[TraceCollector]:
    collector = TraceCollector()

    async def receive(request: Request) -> Response:
        body = await request.body()
        collector.receive(gzip.decompress(body) if request.headers.get("content-encoding") == "gzip" else body)
        return Response()

    with served(Starlette(routes=[Route("/v1/traces", receive, methods=["POST"])]), port=port) as collector.port:
        yield collector
