"""One metrics page for all parts: the counters of our processes, the supervisor's own, and Envoy's.

Processes store their numbers in files (prometheus_client's multiprocess mode), which are summed at every scrape. Binds
the loopback address only, and never waits for a part that does not answer.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias
from wsgiref.simple_server import WSGIRequestHandler, make_server

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.exposition import ThreadingWSGIServer
from prometheus_client.metrics import MetricWrapperBase
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

METRICS_HOST = "127.0.0.1"
StartResponse: TypeAlias = Callable[[str, list[tuple[str, str]]], Any]
Application: TypeAlias = Callable[[dict[str, Any], StartResponse], list[bytes]]


def all_metrics(folder: Path, own: Iterable[MetricWrapperBase]) -> CollectorRegistry:
    """What the processes have stored there, and our own, which no process has."""
    registry = CollectorRegistry()
    MultiProcessCollector(registry, path=str(folder))  # type: ignore[no-untyped-call]
    for metric in own:
        registry.register(metric)
    return registry


def forget_process(folder: Path, pid: int) -> None:
    """After a part died: drop its gauges of work in progress, keep its counters."""
    mark_process_dead(pid, path=str(folder))  # type: ignore[no-untyped-call]


@contextmanager
def metrics_served(port: int, registry: CollectorRegistry, *, envoy_page: Callable[[], bytes]) -> Iterator[int]:
    """Serves `/metrics` from a thread while open, one thread per scrape: one that hangs blocks neither the next one nor
    our exit. `envoy_page` returns Envoy's page, or b"" if it is unavailable. Yields the port.
    """
    server = make_server(METRICS_HOST, port, _page(registry, envoy_page), ThreadingWSGIServer, _Quiet)
    serving = threading.Thread(target=server.serve_forever, name="metrics", daemon=True)
    serving.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        serving.join()


def _page(registry: CollectorRegistry, envoy_page: Callable[[], bytes]) -> Application:
    def application(environment: dict[str, Any], start: StartResponse) -> list[bytes]:
        if environment["PATH_INFO"] != "/metrics":
            start("404 Not Found", [("Content-Type", "text/plain")])
            return [b"metrics are at /metrics\n"]
        start("200 OK", [("Content-Type", CONTENT_TYPE_LATEST)])
        return [generate_latest(registry), envoy_page()]

    return application


class _Quiet(WSGIRequestHandler):
    timeout = 5  # seconds for a client that connects and says nothing

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it so
        return
