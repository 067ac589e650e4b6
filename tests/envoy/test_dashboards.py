"""Alerts fire on what they are for; dashboards and rules ask what a real product exports, and get figures."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from product import Product, eventually
from prometheus_server import (
    DASHBOARDS,
    ROOT,
    PrometheusServer,
    is_installed,
    panels_of,
    running_prometheus,
    substituted,
)
from svg_pictures import Picture
from typer.main import get_command

from extproc.cli import memproxy
from memory.settings import every_setting

RULES = [ROOT / "envoy" / name for name in ("alerts.yml", "recording.yml")]
# With the first answer of its class, and with the first call with a token, which settings name.
EXPORTED_LATER = {"envoy_cluster_upstream_rq_xx", "memproxy_service_token_calls_total"}
# Figures of what no short run does: rounds of upkeep come once in hours.
WITHOUT_FIGURES = {"memproxy_upkeep_seconds_bucket"}
RANGES = re.compile(r"\[([^\]]+)\]")


def named_metrics(text: str) -> set[str]:
    """Names of ours and of Envoy's in an expression; not those of labels."""
    labels = set(re.findall(r"\b(envoy_[a-z0-9_]+)\s*(?:=~?|!=|\))", text))
    return set(re.findall(r"(?<![:\w])((?:memproxy|envoy)_[a-z0-9_]+)", text)) - labels


def questions_of(file: Path) -> list[str]:
    if file.suffix == ".json":
        return [target["expr"] for panel in panels_of(file) for target in panel["targets"]]
    return [rule["expr"] for rule in rules_in(file)]


def rules_in(file: Path) -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(file.read_text())["groups"] for rule in group["rules"]]


@pytest.fixture(scope="module")
def busy(shared_product: Product, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrometheusServer]:
    """A Prometheus that has seen a chat with a note and one without, learning, and calls of the API."""
    if not is_installed():
        pytest.skip("PROMETHEUS IS MISSING: install Debian's package `prometheus`, as .ci/run does")
    with running_prometheus(tmp_path_factory.mktemp("prom"), metrics_port=shared_product.ports["metrics"]) as server:
        eventually(lambda: server.now("memproxy_part_up"))
        use(shared_product)
        yield server


def use(product: Product) -> None:
    """What a user does, a new one each time."""
    number = uuid.uuid4().hex
    user = f"dashboards-{number}"
    product.chat(f"My cat is called Miu, and its chip has the number {number}.", user)
    product.flush(user)
    product.ask(f"What is my cat with the chip {number} called?", user)
    product.memories(user)
    httpx.post(f"{product.url}/v1/chat/completions", content=b"{", timeout=30)


@pytest.mark.parametrize("file", [*RULES, *DASHBOARDS], ids=lambda path: path.name)
def test_every_metric_that_is_asked_for_is_exported(shared_product: Product, file: Path) -> None:
    use(shared_product)
    asked = named_metrics(" ".join(questions_of(file)))
    assert len(asked) > 5

    def missing() -> set[str]:
        page = httpx.get(f"http://127.0.0.1:{shared_product.ports['metrics']}/metrics", timeout=30).text
        return asked - set(re.findall(r"^([a-z]\w+)", page, re.MULTILINE)) - EXPORTED_LATER

    eventually(lambda: not missing())


@pytest.mark.full("a real Prometheus scrapes a real product")
@pytest.mark.parametrize("file", DASHBOARDS, ids=lambda path: path.name)
def test_every_panel_shows_figures(busy: PrometheusServer, shared_product: Product, file: Path) -> None:
    """Each of its expressions gives at least one series, and each but a few a number.

    A rate needs something to happen between two scrapes, after its series has been seen.
    """
    asked = {
        target["expr"]: panel["title"]
        for panel in panels_of(file)
        for target in panel["targets"]
        if not named_metrics(target["expr"]) & EXPORTED_LATER
    }

    def empty() -> dict[str, str]:
        left = {}
        for expression, title in asked.items():
            # What happened in the fixture is over: a minute's rate still shows it.
            series = busy.now(RANGES.sub("[1m]", substituted(expression)))
            needs_number = not named_metrics(expression) & WITHOUT_FIGURES
            if not series or (needs_number and not any(one.points for one in series)):
                left[expression] = title
        return left

    def is_full_after_use() -> bool:
        use(shared_product)
        return not empty()

    with suppress(AssertionError):  # what is still missing then says more
        eventually(is_full_after_use, every=1.0)
    assert empty() == {}


@pytest.mark.slow("a real Prometheus scrapes a real product")
def test_every_rule_is_evaluated_without_an_error(busy: PrometheusServer) -> None:
    expected = {rule.get("record") or rule.get("alert") for file in RULES for rule in rules_in(file)}

    def evaluated() -> list[dict[str, Any]]:
        groups = httpx.get(f"http://127.0.0.1:{busy.port}/api/v1/rules", timeout=30).json()["data"]["groups"]
        rules = [rule for group in groups for rule in group["rules"]]
        return rules if all(rule["health"] != "unknown" for rule in rules) else []

    rules = eventually(evaluated)
    assert {rule["name"] for rule in rules} == expected
    assert [rule for rule in rules if rule["health"] != "ok"] == []
    for name in ("memproxy:requests:rate5m", "memproxy:recall_seconds:p99_rate5m", "memproxy:queue_turns:max"):
        assert eventually(lambda name=name: busy.now(name))


def test_every_alert_and_every_recorded_figure_has_a_test_in_which_it_is_seen() -> None:
    tests = yaml.safe_load((ROOT / "tests" / "data" / "alerts.test.yml").read_text())["tests"]
    fired = {one["alertname"] for test in tests for one in test["alert_rule_test"] if one["exp_alerts"]}
    assert {rule["alert"] for rule in rules_in(RULES[0])} - fired == set()
    shown = (ROOT / "tests" / "data" / "recording.test.yml").read_text()
    assert [rule["record"] for rule in rules_in(RULES[1]) if f"expr: round({rule['record']}," not in shown] == []


@pytest.mark.parametrize("file", DASHBOARDS, ids=lambda path: path.name)
def test_the_picture_in_the_documentation_shows_every_panel_in_its_place_with_figures(file: Path) -> None:
    picture = Picture((ROOT / "docs" / "images" / f"dashboard-{file.stem}.svg").read_text(encoding="utf-8"))
    dashboard, again = json.loads(file.read_text(encoding="utf-8")), "make it again: python bench/dashboards.py"
    assert picture.title == dashboard["title"]
    assert picture.foreign_parts == []
    rows = {panel["title"] for panel in dashboard["panels"] if panel["type"] == "row"}
    assert rows <= {text.words for text in picture.texts if text.is_bold}, again
    panels = sorted(panels_of(file), key=lambda panel: (panel["gridPos"]["y"], panel["gridPos"]["x"]))
    shown = [[text for text in picture.texts if frame.holds(text)] for frame in picture.frames]
    titles = [(texts[0].words, texts[0].is_bold) for texts in shown]
    assert titles == [(panel["title"], True) for panel in panels], again
    for panel, texts in zip(panels, shown, strict=True):
        is_empty = "No data" in {text.words for text in texts}
        asked = named_metrics(" ".join(target["expr"] for target in panel["targets"]))
        assert not is_empty or asked & WITHOUT_FIGURES, f"{panel['title']}: {again}"


def promtool(*words: str) -> subprocess.CompletedProcess[str]:
    """Its outcome. Where it is missing the test is skipped, which `pytest -ra` says at the end of the run."""
    program = shutil.which("promtool")
    if not program:
        pytest.skip("PROMTOOL IS MISSING: install Debian's package `prometheus`, as .ci/run does")
    return subprocess.run([program, *words], capture_output=True, text=True, check=False, cwd=ROOT / "tests" / "data")


@pytest.mark.full("another run of promtool")
@pytest.mark.parametrize("folder", ["envoy", "deploy/kubernetes"])
def test_prometheus_accepts_its_configuration(folder: str, tmp_path: Path) -> None:
    for file in RULES:
        shutil.copy(file, tmp_path)
    text = (ROOT / folder / "prometheus.yml").read_text()  # Debian's Prometheus knows no Kubernetes
    (tmp_path / "prometheus.yml").write_text(text.replace("kubernetes_sd_configs: [{role: pod}]", "static_configs: []"))
    checked = promtool("check", "config", str(tmp_path / "prometheus.yml"))
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_alerts_fire_on_a_bad_day_and_stay_silent_on_an_ordinary_one(tmp_path: Path) -> None:
    """And recorded figures are what they say. Runbooks are left out: promtool would have each of them said twice."""
    alerts = yaml.safe_load(RULES[0].read_text())
    for rule in (rule for group in alerts["groups"] for rule in group["rules"]):
        del rule["annotations"]["runbook"]
    (tmp_path / RULES[0].name).write_text(yaml.safe_dump(alerts))
    shutil.copy(RULES[1], tmp_path)
    for name in ("alerts.test.yml", "recording.test.yml"):
        text = (ROOT / "tests" / "data" / name).read_text()
        (tmp_path / name).write_text(text.replace("../../envoy/", ""))
    tested = promtool("test", "rules", *(str(tmp_path / name) for name in ("alerts.test.yml", "recording.test.yml")))
    assert tested.returncode == 0, tested.stdout + tested.stderr


def test_every_alert_says_what_to_do_with_commands_and_settings_that_exist() -> None:
    commands, settings = get_command(memproxy).commands, {doc.path for doc in every_setting()}
    for rule in rules_in(RULES[0]):
        runbook = rule["annotations"]["runbook"]
        assert len(runbook) > 40, rule["alert"]
        assert set(re.findall(r"\bmemproxy ([a-z]+)", runbook)) - {"passes"} <= set(commands), rule["alert"]
        assert set(re.findall(r"\bmemory(?:\.[a-z_]+)+", runbook)) <= settings, rule["alert"]


@pytest.mark.full("another run of promtool")
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
    asked = map(substituted, questions_of(file))
    rules = {"groups": [{"name": "d", "rules": [{"record": f"r{i}", "expr": e} for i, e in enumerate(asked)]}]}
    (tmp_path / "rules.yml").write_text(yaml.safe_dump(rules))
    checked = promtool("check", "rules", str(tmp_path / "rules.yml"))
    assert checked.returncode == 0, checked.stdout + checked.stderr
