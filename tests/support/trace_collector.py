"""A collector of OpenTelemetry spans: OTLP over HTTP on a free port, decoded by the protocol's own types."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span


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
    """`received`: the bodies as they came, unpacked."""

    port: int = 0
    received: list[bytes] = field(default_factory=list)
    is_gone: bool = False
    decoded: list[CollectedSpan] = field(default_factory=list)
    decoded_bodies: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def spans(self) -> list[CollectedSpan]:
        """So far; each body is decoded once."""
        new = self.received[self.decoded_bodies :]
        self.decoded_bodies += len(new)
        self.decoded += [
            _collected(service_of(resource.resource.attributes), span)
            for body in new
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]
        return self.decoded

    def trace(self, trace_id: str) -> list[CollectedSpan]:
        return [span for span in self.spans() if span.trace_id == trace_id]


def service_of(attributes: object) -> str:
    values = {one.key: one.value.string_value for one in attributes}  # type: ignore[attr-defined]
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

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:  # the base class names it so
            body = self._chunks() if "chunked" in self.headers.get("transfer-encoding", "") else self._whole()
            if collector.is_gone:  # a connection that was open before
                self.close_connection = True
                return
            assert self.path == "/v1/traces", self.path
            is_packed = self.headers.get("content-encoding") == "gzip"
            collector.received.append(gzip.decompress(body) if is_packed else body)
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def _whole(self) -> bytes:
            return self.rfile.read(int(self.headers["content-length"]))

        def _chunks(self) -> bytes:
            body = b""
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return body

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it so
            return

    with ThreadingHTTPServer(("127.0.0.1", port), Handler) as server:
        server.daemon_threads = True
        collector.port = int(server.server_address[1])
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield collector
        finally:
            collector.is_gone = True
            server.shutdown()
            thread.join()
