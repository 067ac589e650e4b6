"""Added time of a request, against a bare Envoy in the same run: without identity, skipped, searched.

`python bench/latency.py [REQUESTS]`; bars: p50 without identity +2 ms, skipped +3 ms; the searched path is reported.
"""

from __future__ import annotations

import json
import sys

import httpx
from rich.progress import track
from rig import Client, percentiles, report, running_rig

BARS_MS = {"no identity": 2.0, "skipped": 3.0}
MEMORIES = 100  # of the user whose requests are searched
WARM_UP = 50


def bodies() -> dict[str, bytes]:
    """One request body for each path; a few hundred bytes, like a short chat."""
    context = {"memory_context": {"user_id": "bench", "session_id": "s"}}
    history = [
        {"role": "system", "content": "You are a helpful assistant. " * 8},
        {"role": "user", "content": "Good morning, let us talk about the garden today."},
        {"role": "assistant", "content": "Gladly. What would you like to know about the garden?"},
    ]

    def body(text: str, more: dict[str, object]) -> bytes:
        messages = [*history, {"role": "user", "content": text}]
        return json.dumps({"model": "m", "messages": messages, **more}).encode()

    return {
        "no identity": body("Where did I plant the quince tree?", {}),
        "skipped": body("Thank you very much!", context),
        "searched": body("Where did I plant the quince tree?", context),
    }


def main(requests: int) -> int:
    with running_rig() as rig:
        fill(f"{rig.product.api}/v1/memory")
        bare, ours = Client(rig.bare_port), Client(rig.product.ports["proxy"])
        paths: dict[str, dict[str, list[float]]] = {}
        expected = {"no identity": None, "skipped": "skipped", "searched": "used"}
        for path, body in bodies().items():
            for _ in range(WARM_UP):
                bare.post(body), ours.post(body)
            times: dict[str, list[float]] = {"bare": [], "memproxy": []}
            for _ in track(range(requests), description=path, console=None):
                times["bare"].append(bare.post(body)[0])
                took, headers = ours.post(body)
                times["memproxy"].append(took)
                if headers.get("x-memory-status") != expected[path]:
                    raise RuntimeError(f"{path}: status {headers.get('x-memory-status')!r}")
            paths[path] = times
    result = {path: summary(times, BARS_MS.get(path)) for path, times in paths.items()}
    rows = [
        (p, r["bare"]["p50"], r["memproxy"]["p50"], r["added_p50"], r["added_p99"], r["bar"]) for p, r in result.items()
    ]
    report(
        "latency",
        {"unit": "ms", "requests": requests, **result},
        rows,
        ["path", "bare p50", "ours p50", "+p50", "+p99", "bar"],
    )
    return 0 if all(r["bar"] is None or r["added_p50"] <= r["bar"] for r in result.values()) else 1


def summary(times: dict[str, list[float]], bar: float | None) -> dict[str, object]:
    bare, ours = percentiles(times["bare"]), percentiles(times["memproxy"])
    return {
        "bare": bare,
        "memproxy": ours,
        "added_p50": round(ours["p50"] - bare["p50"], 3),
        "added_p99": round(ours["p99"] - bare["p99"], 3),
        "bar": bar,
    }


def fill(url: str) -> None:
    memories = [{"content": f"I planted tree number {i} in row {i % 10} of the garden."} for i in range(MEMORIES - 1)]
    memories.append({"content": "I planted the quince tree behind the shed."})
    httpx.post(url, params={"user_id": "bench"}, json={"memories": memories}, timeout=60).raise_for_status()


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 500))
