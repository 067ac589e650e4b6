"""Measures the delay of streamed chunks from the upstream, compared with a bare Envoy in the same run.

`python bench/stream.py [STREAMS]`. Bare Envoy and product take turns, stream by stream.
"""

from __future__ import annotations

import json
import re
import socket
import sys
import time
from collections import Counter

from report import Bar, Report, Sheet, added, bench_parser, percentiles
from rich.progress import Progress
from rig import running_rig

BARS = (
    Bar("delay p50", "ms", at_most=0.6),
    Bar("delay p99", "ms", at_most=3.0),
    Bar("added p99", "ms", at_most=1.0),
    Bar("streams that broke off", at_most=0),
)
STREAM_SECONDS_MAX = 30.0
_SENT = re.compile(rb'"sent":(\d+)')


def delays(port: int, body: bytes, failures: Counter[str]) -> list[float] | None:
    """Milliseconds between sending and arrival of every chunk of one stream, on a connection of its own."""
    try:
        return _delays(port, body)
    except OSError as error:
        failures[f"stream: {type(error).__name__}"] += 1
        return None


def _delays(port: int, body: bytes) -> list[float]:
    head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    head += b"content-length: %d\r\n\r\n"
    found: list[float] = []
    with socket.create_connection(("127.0.0.1", port), timeout=STREAM_SECONDS_MAX) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(head % len(body) + body)
        tail = b""
        while b"[DONE]" not in tail:
            data = connection.recv(65536)
            arrived = time.time_ns()  # the clock that the upstream stamps with
            if not data or not (found or tail or data.startswith(b"HTTP/1.1 200")):
                raise ConnectionError("broken off, or refused")
            found += [(arrived - int(sent)) / 1e6 for sent in _SENT.findall(data)]
            tail = tail[-16:] + data
    return found


def main() -> int:
    parser = bench_parser("stream", __doc__)
    parser.add_argument("streams", nargs="?", type=int, default=10)
    options = parser.parse_args()
    report = Report("stream", BARS, options.json)
    chat = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "Tell me about my garden."}]}
    body = json.dumps({**chat, "memory_context": {"user_id": "bench"}}, separators=(",", ":")).encode()
    times: dict[str, list[float]] = {"bare": [], "memproxy": []}
    broken = 0
    with running_rig() as rig, Progress(transient=True) as progress:
        ports = {"bare": rig.bare_port, "memproxy": rig.port}
        for port in ports.values():
            delays(port, body, report.failures)
        for _ in progress.track(range(options.streams), description="streams"):
            for name, port in ports.items():
                found = delays(port, body, report.failures)
                times[name] += found or []
                broken += found is None
    bare, ours = percentiles(times["bare"]), percentiles(times["memproxy"])
    more = added(ours, bare)
    figures = {
        "delay p50": ours["p50"],
        "delay p99": ours["p99"],
        "added p99": more["p99"],
        "streams that broke off": broken,
    }
    rows = [(name, *one.values()) for name, one in (("bare", bare), ("memproxy", ours), ("added", more))]
    result = {"unit": "ms", "chunks": len(times["memproxy"]), "bare": bare, "memproxy": ours, "added": more}
    return report.finish(result, [Sheet("delay of a chunk, ms", ("", "p50", "p95", "p99"), rows)], figures)


if __name__ == "__main__":
    sys.exit(main())
