"""One metrics page for all parts: the counters of our processes, the supervisor's own, and Envoy's.

Processes store their numbers in files (prometheus_client's multiprocess mode), which are summed at every scrape. Binds
the loopback address only, and never waits for a part that does not answer.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from socketserver import ThreadingMixIn
from typing import Any, Protocol, Self, TypeAlias
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

METRICS_HOST = "127.0.0.1"
StartResponse: TypeAlias = Callable[[str, list[tuple[str, str]]], Any]
Application: TypeAlias = Callable[[dict[str, Any], StartResponse], list[bytes]]


class MetricsSource(Protocol):
    def collect(self) -> Iterable[Metric]: ...


class AggregatedMetrics:
    """The metric families of all processes and our own, merged, since a family may appear only once on a page."""

    def __init__(self, folder: Path, own: Iterable[MetricsSource]) -> None:
        self._files = MultiProcessCollector(None, path=str(folder))  # type: ignore[no-untyped-call]
        self._own = tuple(own)

    def collect(self) -> Iterator[Metric]:
        families = {family.name: family for family in self._files.collect()}  # type: ignore[no-untyped-call]
        for family in (family for metric in self._own for family in metric.collect()):
            if family.name in families:
                families[family.name].samples.extend(family.samples)
            else:
                families[family.name] = family
        yield from families.values()


def forget_process(folder: Path, pid: int) -> None:
    """After a part died: drop its gauges of work in progress, keep its counters."""
    mark_process_dead(pid, path=str(folder))  # type: ignore[no-untyped-call]


class MetricsEndpoint:
    """Serves `/metrics` from a thread while open. `envoy_page` returns Envoy's page, or b"" if it is unavailable."""

    def __init__(self, port: int, collector: MetricsSource, *, envoy_page: Callable[[], bytes]) -> None:
        registry = CollectorRegistry()
        registry.register(collector)
        self._server = make_server(METRICS_HOST, port, _page(registry, envoy_page), _Server, _Quiet)
        self._thread = threading.Thread(target=self._server.serve_forever, name="metrics", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def port(self) -> int:
        return int(self._server.server_port)


def _page(registry: CollectorRegistry, envoy_page: Callable[[], bytes]) -> Application:
    def application(environment: dict[str, Any], start: StartResponse) -> list[bytes]:
        if environment["PATH_INFO"] != "/metrics":
            start("404 Not Found", [("Content-Type", "text/plain")])
            return [b"metrics are at /metrics\n"]
        start("200 OK", [("Content-Type", CONTENT_TYPE_LATEST)])
        return [generate_latest(registry), envoy_page()]

    return application


class _Server(ThreadingMixIn, WSGIServer):
    """One thread per scrape: one that hangs must block neither the next one nor our exit."""

    daemon_threads = True
    block_on_close = False


class _Quiet(WSGIRequestHandler):
    timeout = 5  # seconds for a client that connects and says nothing

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it so
        return
