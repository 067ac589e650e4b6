"""How late a streamed chunk arrives after the upstream sent it, beside a bare Envoy in the same run.

`python bench/stream.py [STREAMS]`; bars: p50 < 0.6 ms, p99 < 3 ms.
"""

from __future__ import annotations

import json
import re
import socket
import sys
import time

from rich.progress import track
from rig import percentiles, report, running_rig

BARS_MS = {"p50": 0.6, "p99": 3.0}
_SENT = re.compile(rb'"sent":(\d+)')


def delays(port: int, body: bytes) -> list[float]:
    """Milliseconds between sending and arrival of every chunk of one stream, on a connection of its own."""
    head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: bench\r\ncontent-type: application/json\r\n"
    head += b"content-length: %d\r\n\r\n"
    found: list[float] = []
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(head % len(body) + body)
        tail = b""
        while b"[DONE]" not in tail:
            data = connection.recv(65536)
            arrived = time.time_ns()  # the clock that the upstream stamps with
            if not data:
                raise RuntimeError("the stream ended early")
            found += [(arrived - int(sent)) / 1e6 for sent in _SENT.findall(data)]
            tail = tail[-16:] + data
    return found


def main(streams: int) -> int:
    chat = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "Tell me about my garden."}]}
    body = json.dumps({**chat, "memory_context": {"user_id": "bench"}}, separators=(",", ":")).encode()
    times: dict[str, list[float]] = {"bare": [], "memproxy": []}
    with running_rig() as rig:
        ports = {"bare": rig.bare_port, "memproxy": rig.product.ports["proxy"]}
        for port in ports.values():
            delays(port, body)
        for _ in track(range(streams), description="streams"):
            for name, port in ports.items():
                times[name] += delays(port, body)
    result = {name: percentiles(values) for name, values in times.items()}
    rows = [(name, *figures.values()) for name, figures in result.items()]
    report(
        "stream",
        {"unit": "ms", "chunks": len(times["memproxy"]), **result, "bar": BARS_MS},
        rows,
        ["", "p50", "p95", "p99"],
    )
    return 0 if all(result["memproxy"][p] < bar for p, bar in BARS_MS.items()) else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 10))
