"""What the benches share: an upstream that costs nothing, a bare Envoy beside the product, percentiles, the report.

Timings on a shared machine are noise; differences are not. So every figure is taken against a bare Envoy of the same
configuration in the same run, the two taking turns.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests" / "support"))  # the product as tests start it

from product import Product, running_product  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.table import Table  # noqa: E402

from extproc.bootstrap import EnvoyPlan, render_bare  # noqa: E402

RESULTS = HERE / "results"
START_SECONDS_MAX = 10.0


@dataclass(frozen=True, slots=True)
class Rig:
    product: Product
    bare_port: int
    upstream_url: str


@contextmanager
def running_rig(*arguments: str) -> Iterator[Rig]:
    """The product and a bare Envoy, both in front of the same upstream; everything is stopped at the end."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        upstream_port = free_port()
        stack.enter_context(running(sys.executable, str(HERE / "upstream.py"), str(upstream_port)))
        upstream_url = f"http://127.0.0.1:{upstream_port}"
        bare_port = free_port()
        plan = EnvoyPlan(upstream_url, (folder / "none.sock",), port=bare_port, admin_port=free_port())
        bootstrap = folder / "bare.json"
        bootstrap.write_bytes(render_bare(plan))
        envoy = str(Path(sys.executable).parent / "envoy")
        options = ("--disable-hot-restart", "--concurrency", "2", "--log-level", "error")
        stack.enter_context(running(envoy, "-c", str(bootstrap), *options))
        product = stack.enter_context(running_product(folder / "data", *arguments, upstream=upstream_url))
        for port in (upstream_port, bare_port):
            _await_port(port)
        yield Rig(product, bare_port, upstream_url)


@contextmanager
def running(*command: str) -> Iterator[None]:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.terminate()
        process.wait(timeout=10)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _await_port(port: int) -> None:
    deadline = time.monotonic() + START_SECONDS_MAX
    while True:
        try:
            connection = HTTPConnection("127.0.0.1", port, timeout=1)
            connection.request("GET", "/v1/models")
            connection.getresponse().read()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            return


class Client:
    """One kept-alive connection; the cheapest honest client that Python has."""

    def __init__(self, port: int) -> None:
        self._connection = HTTPConnection("127.0.0.1", port, timeout=30)

    def post(self, body: bytes) -> tuple[float, Mapping[str, str]]:
        """Milliseconds from the request's first byte to the reply's last, and the reply's headers."""
        started = time.perf_counter()
        self._connection.request("POST", "/v1/chat/completions", body, {"content-type": "application/json"})
        reply = self._connection.getresponse()
        reply.read()
        took = (time.perf_counter() - started) * 1000
        if reply.status != 200:
            raise RuntimeError(f"the upstream answered {reply.status}")
        return took, {name.lower(): value for name, value in reply.getheaders()}


def percentiles(values: Sequence[float]) -> dict[str, float]:
    """p50, p95 and p99 of milliseconds, rounded to microseconds."""
    ordered = sorted(values)
    at = {p: ordered[min(len(ordered) - 1, int(len(ordered) * p / 100))] for p in (50, 95, 99)}
    return {f"p{p}": round(value, 3) for p, value in at.items()}


def report(name: str, result: Mapping[str, object], rows: Sequence[Sequence[object]], columns: Sequence[str]) -> None:
    """The JSON object on stdout and in `bench/results/`, the table on stderr."""
    RESULTS.mkdir(exist_ok=True)
    text = json.dumps(result, indent=2)
    (RESULTS / f"{name}.json").write_text(text + "\n")
    print(text)
    table = Table(*columns, title=name)
    for row in rows:
        table.add_row(*[f"{cell:.3f}" if isinstance(cell, float) else str(cell) for cell in row])
    Console(stderr=True).print(table)
