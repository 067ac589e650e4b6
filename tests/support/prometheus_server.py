"""A real Prometheus that scrapes a running product every second, and our dashboards' panels as it understands them."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import yaml
from served_app import free_port

ROOT = Path(__file__).resolve().parents[2]
DASHBOARDS = tuple(sorted((ROOT / "envoy" / "grafana").glob("*.json")))
RATE_INTERVAL = "10s"  # what Grafana makes of a scrape interval of 1 s, and a little more for a busy machine
READY_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Series:
    """`points`: Unix seconds and values, without those that are no number."""

    labels: dict[str, str]
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class PrometheusServer:
    port: int

    def now(self, expression: str) -> list[Series]:
        """The instant value of each series; a value that is no number is left out, not its series."""
        found = self._ask("query", query=expression)["result"]
        return [Series(one["metric"], _numbers([one["value"]])) for one in found]

    def over(self, expression: str, *, start: float, end: float, step: float) -> list[Series]:
        asked = {"query": expression, "start": str(start), "end": str(end), "step": str(step)}
        return [Series(one["metric"], _numbers(one["values"])) for one in self._ask("query_range", **asked)["result"]]

    def _ask(self, call: str, **query: str) -> dict[str, Any]:
        answer = httpx.get(f"http://127.0.0.1:{self.port}/api/v1/{call}", params=query, timeout=30, trust_env=False)
        body = answer.json()
        assert body["status"] == "success", f"{query['query']}: {body.get('error')}"
        content: dict[str, Any] = body["data"]
        return content


def _numbers(values: list[list[Any]]) -> tuple[tuple[float, float], ...]:
    points = ((float(at), float(value)) for at, value in values)
    return tuple((at, value) for at, value in points if math.isfinite(value))


def panels_of(dashboard: Path) -> list[dict[str, Any]]:
    """Without rows."""
    panels = json.loads(dashboard.read_text(encoding="utf-8"))["panels"]
    return [panel for panel in panels if panel["type"] != "row"]


def substituted(expression: str) -> str:
    """The expression with what Grafana puts in for its variables: all jobs and instances."""
    return expression.replace("$__rate_interval", RATE_INTERVAL).replace("$job", ".*").replace("$instance", ".*")


def is_installed() -> bool:
    return shutil.which("prometheus") is not None


@contextmanager
def running_prometheus(folder: Path, *, metrics_port: int) -> Iterator[PrometheusServer]:
    """With our rules. `metrics_port`: of the product."""
    port = free_port()
    folder.mkdir(parents=True, exist_ok=True)
    settings = yaml.safe_load((ROOT / "envoy" / "prometheus.yml").read_text(encoding="utf-8"))
    settings["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    settings["rule_files"] = [str(ROOT / "envoy" / name) for name in settings["rule_files"]]
    settings["scrape_configs"] = [
        {"job_name": "memproxy", "static_configs": [{"targets": [f"127.0.0.1:{metrics_port}"]}]}
    ]
    (folder / "prometheus.yml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    words = [
        "prometheus",
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--log.level=error",
    ]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL) as process:
        try:
            _await_ready(port)
            yield PrometheusServer(port)
        finally:
            process.terminate()


def _await_ready(port: int) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline:
        try:
            if httpx.get(f"http://127.0.0.1:{port}/-/ready", trust_env=False).status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.1)
    raise AssertionError("Prometheus did not answer")
