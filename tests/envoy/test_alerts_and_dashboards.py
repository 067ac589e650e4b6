"""Alerts fire on what they are for, and every name of Envoy's that is watched is one that the real Envoy gives."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest
import yaml

from extproc.supervisor.bootstrap import BootstrapValues, render
from extproc.supervisor.locks_and_ports import reserve_port

ROOT = Path(__file__).resolve().parents[2]
RULES = [ROOT / "envoy" / name for name in ("alerts.yml", "recording.yml")]
DASHBOARDS = sorted((ROOT / "envoy" / "grafana").glob("*.json"))
# Envoy names a status class once the first answer of it has come.
AFTER_TRAFFIC = {"envoy_cluster_upstream_rq_xx"}


def promtool(*words: str) -> subprocess.CompletedProcess[str]:
    """Its outcome. Where it is missing the test is skipped, which `pytest -ra` says at the end of the run."""
    program = shutil.which("promtool")
    if not program:
        pytest.skip("PROMTOOL IS MISSING: install Debian's package `prometheus`, as .ci/run does")
    return subprocess.run([program, *words], capture_output=True, text=True, check=False, cwd=ROOT / "tests" / "data")


def test_prometheus_accepts_its_configuration() -> None:
    checked = promtool("check", "config", str(ROOT / "envoy" / "prometheus.yml"))
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_alerts_fire_on_a_bad_day_and_stay_silent_on_an_ordinary_one() -> None:
    """And recorded figures are what they say."""
    tested = promtool("test", "rules", "alerts.test.yml", "recording.test.yml")
    assert tested.returncode == 0, tested.stdout + tested.stderr


@pytest.fixture(scope="module")
def envoy_names(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """Every metric that Envoy shows with our configuration, before any request."""
    folder = tmp_path_factory.mktemp("envoy")
    with (
        reserve_port("127.0.0.1", 0, setting="port") as proxy,
        reserve_port("127.0.0.1", 0, setting="admin") as admin,
    ):
        port = admin.getsockname()[1]
        plan = BootstrapValues(
            upstream="http://127.0.0.1:9",
            filter_sockets=(folder / "filter.sock",),
            port=proxy.getsockname()[1],
            admin_port=port,
            api_port=9,
        )
        (folder / "envoy.json").write_bytes(render(plan))
        words = [
            str(Path(sys.executable).with_name("envoy")),
            "-c",
            str(folder / "envoy.json"),
            "--disable-hot-restart",
        ]
        with subprocess.Popen([*words, "--concurrency", "1", "--log-level", "error"]) as envoy:
            try:
                return set(re.findall(r"^(envoy_\w+)", page(port), re.MULTILINE))
            finally:
                envoy.terminate()


def page(port: int) -> str:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            return httpx.get(f"http://127.0.0.1:{port}/stats/prometheus").text
        except httpx.TransportError:
            time.sleep(0.1)
    raise AssertionError("Envoy did not answer")


@pytest.mark.parametrize("file", [*RULES, *DASHBOARDS], ids=lambda path: path.name)
def test_every_watched_metric_of_envoy_exists(envoy_names: set[str], file: Path) -> None:
    watched = set(re.findall(r"\benvoy_[a-z0-9_]+\b", file.read_text()))
    labels = set(re.findall(r"\b(envoy_[a-z0-9_]+)\s*(?:=~?|!=|\))", file.read_text())) | {"envoy_response_code_class"}
    missing = watched - labels - envoy_names - AFTER_TRAFFIC
    assert {name for name in missing if not name.startswith(("envoy_cluster_name", "envoy_http_conn_manager"))} == set()


@pytest.mark.parametrize("file", DASHBOARDS, ids=lambda path: path.name)
def test_panels_do_not_overlap_and_each_asks_something_that_prometheus_understands(file: Path, tmp_path: Path) -> None:
    panels = json.loads(file.read_text())["panels"]
    cells = [
        (x, y)
        for panel in panels
        for place in [panel["gridPos"]]
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(cells) == len(set(cells))
    questions = [
        t["expr"].replace("$__rate_interval", "1m").replace("$job", ".*").replace("$instance", ".*")
        for p in panels
        for t in p.get("targets", [])
    ]
    rules = {"groups": [{"name": "d", "rules": [{"record": f"r{i}", "expr": e} for i, e in enumerate(questions)]}]}
    (tmp_path / "rules.yml").write_text(yaml.safe_dump(rules))
    checked = promtool("check", "rules", str(tmp_path / "rules.yml"))
    assert checked.returncode == 0, checked.stdout + checked.stderr
