"""Pictures of the dashboards, for the documentation: a real product under a small load, seen by a real Prometheus.

`python bench/dashboards.py [--seconds 75]` starts the product, Prometheus with our rules, and a load of users who tell
and ask things; then it asks Prometheus for each panel of `envoy/grafana/*.json`, as Grafana would, and draws them into
`docs/images/`. Needs Debian's package `prometheus`. Its figures are those of a machine that
does all of this at once.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import httpx
import rig  # noqa: F401  # makes tests/support importable
from panels import Line, drawn
from product import Product, running_product
from prometheus_server import DASHBOARDS, ROOT, PrometheusServer, running_prometheus, substituted
from upstream import RecordingUpstream, running_upstream

from memory.processes.composition import SYSTEM_CLOCK

IMAGES = ROOT / "docs" / "images"
IMAGE_BYTES_MAX = 300_000
USERS = 4
POINTS = 60  # of each line
SETTINGS = """\
memory:
  summaries: {enabled: true}
  compaction: {enabled: true, threshold_tokens: 1000}
  life: {every_hours: 0.001}  # so that a minute shows a round of upkeep
external_models:  # questions that need their conversation are put to the upstream
- {llm_provider: vllm, model_role: memory_rewrite, llm_model_name: m, llm_endpoint: {address: 127.0.0.1, port: PORT}}
"""
STATED = (
    "My cat is called Miu.",
    "I moved to Porto last month.",
    "I am allergic to peanuts, please remember that.",
    "My sister Ana works as a nurse in Lisbon.",
    "I prefer short answers.",
    "My budget for the trip to Hawaii is $10,000.",
    "I take my coffee without sugar.",
    "Actually, my cat is called Momo now.",
    "I work at a bakery on weekends.",
    "Forget that I moved to Porto.",
)
ASKED = (
    "What is my cat called?",
    "Where do I live?",
    "What should I not eat?",
    "What is my sister's job?",
    "How much may the trip cost?",
    "How do I like my coffee?",
    "What is the capital of France?",
    "And what about her?",
    "Thanks!",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=75.0, help="of load")
    parser.add_argument("--out", type=Path, default=IMAGES)
    chosen = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        upstream = stack.enter_context(running_upstream())
        (folder / "settings.yaml").write_text(SETTINGS.replace("PORT", str(upstream.port)), encoding="utf-8")
        product = stack.enter_context(
            running_product(folder / "data", upstream=upstream.url, config=folder / "settings.yaml", is_timed=True)
        )
        prometheus = stack.enter_context(running_prometheus(folder / "p", metrics_port=product.ports["metrics"]))
        warm_up(product)
        began = SYSTEM_CLOCK()
        load(product, upstream, seconds=chosen.seconds)
        ended = SYSTEM_CLOCK()
        chosen.out.mkdir(parents=True, exist_ok=True)
        for file in DASHBOARDS:
            target = chosen.out / f"dashboard-{file.stem}.svg"
            target.write_text(picture(prometheus, file, start=began, end=ended), encoding="utf-8")
            assert target.stat().st_size < IMAGE_BYTES_MAX, f"{target} has {target.stat().st_size} bytes"
            print(f"{target}: {target.stat().st_size} bytes")


# The load


def load(product: Product, upstream: RecordingUpstream, *, seconds: float) -> None:
    """Each user in a thread: tells and asks things in conversations, with pauses as people make them."""
    until = time.monotonic() + seconds
    over = threading.Event()
    with ThreadPoolExecutor(USERS + 1) as pool:
        users = [pool.submit(live, product, f"user-{number}", number, until) for number in range(USERS)]
        trouble = pool.submit(make_trouble, product, upstream, until, over)
        for one in users:
            one.result()
        over.set()
        trouble.result()


def warm_up(product: Product) -> None:
    """Until a chat has been learnt: how long the start takes is another question."""
    product.chat("I have a dog.", "warm-up")
    with suppress(httpx.TransportError):
        product.flush("warm-up")
    product.chat("What pet do I have?", "warm-up")


def live(product: Product, user: str, number: int, until: float) -> None:
    draw = random.Random(number)
    with httpx.Client(base_url=product.url, headers={"x-authz-user-id": user}, timeout=30) as client:
        while time.monotonic() < until:
            said: list[dict[str, str]] = []
            for words in conversation(draw):
                said.append({"role": "user", "content": words})
                body = {"model": "m", "messages": said, "stream": draw.random() < 0.5, "memory_context": {}}
                with suppress(httpx.TransportError):
                    client.post("/v1/chat/completions", json=body)
                said.append({"role": "assistant", "content": "Noted."})
                time.sleep(draw.uniform(0.3, 1.6))
                if time.monotonic() > until:
                    return
            with suppress(httpx.TransportError):
                client.post("/v1/memory/search", json={"query": draw.choice(ASKED)})
                client.get("/v1/memory")


def conversation(draw: random.Random) -> Iterator[str]:
    """What one user says; one in five conversations is long enough to be compacted."""
    is_long = draw.random() < 0.2
    for _ in range(draw.randint(2, 5)):
        yield draw.choice(STATED if draw.random() < 0.45 else ASKED)
        if is_long:
            yield f"Please check this text: {' '.join(draw.choice(STATED) for _ in range(40))}"


def make_trouble(product: Product, upstream: RecordingUpstream, until: float, over: threading.Event) -> None:
    """What also happens: bodies that are no chats, identities that are none, an upstream that fails for a moment."""
    with httpx.Client(base_url=product.url, timeout=30) as client:
        while time.monotonic() < until:
            over.wait(10.0)
            client.post("/v1/chat/completions", content=b"{")
            client.post("/v1/chat/completions", json={"messages": []}, headers={"x-authz-user-id": "\u200b".encode()})
            upstream.status = 500
            over.wait(0.1)
            upstream.status = 200


# The pictures


def picture(prometheus: PrometheusServer, file: Path, *, start: float, end: float) -> str:
    dashboard = json.loads(file.read_text(encoding="utf-8"))
    step = max(1.0, (end - start) / POINTS)
    panels = [
        (
            panel,
            [line for target in panel.get("targets", []) for line in lines_of(prometheus, target, start, end, step)],
        )
        for panel in dashboard["panels"]
    ]
    return drawn(dashboard["title"], panels, start=start, end=end)


def lines_of(prometheus: PrometheusServer, target: dict[str, Any], start: float, end: float, step: float) -> list[Line]:
    """Those that moved come first in a legend that has no room for all."""
    found = prometheus.over(substituted(target["expr"]), start=start, end=end, step=step)
    lines = [Line(named(target["legendFormat"], one.labels), one.points) for one in found]
    return sorted(lines, key=lambda line: -max((value for _, value in line.points), default=0.0))


def named(legend: str, labels: dict[str, str]) -> str:
    return re.sub(r"\{\{\s*(\w+)\s*\}\}", lambda match: labels.get(match[1], ""), legend).strip() or "value"


if __name__ == "__main__":
    main()
