"""Compose and Kubernetes files start parts that exist, with settings that exist, and mount what is there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command

from extproc.cli import memproxy
from memory.settings import every_setting

ROOT = Path(__file__).resolve().parent.parent
COMMANDS: dict[str, Any] = get_command(memproxy).commands
SETTINGS = {doc.environment for doc in every_setting()}


def compose() -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
    return content


def ours() -> dict[str, dict[str, Any]]:
    return {name: service for name, service in compose()["services"].items() if service.get("image") == "memproxy"}


def manifests() -> list[dict[str, Any]]:
    files = sorted((ROOT / "deploy").glob("**/*.yaml"))
    return [one for file in files for one in yaml.safe_load_all(file.read_text(encoding="utf-8")) if one]


def containers() -> list[dict[str, Any]]:
    specs = [one["spec"]["template"]["spec"] for one in manifests() if one["kind"] in ("Deployment", "StatefulSet")]
    return [one for spec in specs for one in [*spec.get("initContainers", []), *spec["containers"]]]


def is_understood(words: list[str]) -> bool:
    """The command line names a part, and options that it has."""
    command = COMMANDS.get(words[0])
    assert command is not None, words
    options = {option for parameter in command.params for option in parameter.opts}
    return all(word.partition("=")[0] in options for word in words[1:] if word.startswith("--"))


def test_compose_has_every_part_and_what_they_stand_on() -> None:
    services = compose()["services"]
    parts = [service["command"][0] for service in ours().values()]
    assert sorted(parts) == ["api", "envoy", "filter", "filter", "worker", "worker"]
    assert {"vllm", "milvus", "prometheus", "grafana"} <= set(services)


@pytest.mark.parametrize("name", sorted(ours()))
def test_every_service_of_compose_is_started_with_words_and_settings_that_exist(name: str) -> None:
    service = ours()[name]
    assert is_understood(service["command"])
    variables = {word for word in service["environment"] if word.startswith("MEMPROXY_")}
    assert variables
    assert variables - SETTINGS == set()


def test_envoy_and_the_filters_of_compose_mean_the_same_sockets() -> None:
    services = ours()
    served = {
        words[words.index("--socket") + 1]
        for words in (service["command"] for service in services.values())
        if words[0] == "filter"
    }
    asked = {word.partition("=")[2] for word in services["envoy"]["command"] if word.startswith("--socket=")}
    assert asked == served


def test_compose_mounts_files_that_are_there_and_volumes_that_it_declares() -> None:
    content = compose()
    sources = [v.partition(":")[0] for service in content["services"].values() for v in service.get("volumes", [])]
    assert [source for source in sources if source.startswith("./") and not (ROOT / source).exists()] == []
    assert {source for source in sources if not source.startswith("./")} == set(content["volumes"])
    used = {c["source"] for service in content["services"].values() for c in service.get("configs", [])}
    assert used == set(content["configs"])


def test_compose_publishes_on_loopback_only() -> None:
    ports = [port for service in compose()["services"].values() for port in service.get("ports", [])]
    assert ports
    assert [port for port in ports if not port.startswith("127.0.0.1:")] == []


def test_prometheus_asks_services_that_compose_has() -> None:
    scrape = yaml.safe_load((ROOT / "envoy" / "prometheus.yml").read_text(encoding="utf-8"))["scrape_configs"]
    hosts = {t.partition(":")[0] for job in scrape for group in job["static_configs"] for t in group["targets"]}
    assert hosts - {"127.0.0.1"} <= set(compose()["services"])


def test_no_image_floats() -> None:
    images = [s["image"] for s in compose()["services"].values()] + [c["image"] for c in containers()]
    assert [image for image in images if not image.startswith("memproxy") and not re.search(r":v?\d", image)] == []


def test_every_container_of_the_kubernetes_example_is_started_with_words_and_settings_that_exist() -> None:
    of_ours = [one for one in containers() if one["image"].startswith("memproxy")]
    assert {one["args"][0] for one in of_ours} == {"envoy", "filter", "worker", "api"}
    for one in of_ours:
        assert is_understood(one["args"])
        names = {entry["name"] for entry in one.get("env", [])} & SETTINGS
        assert {e["name"] for e in one.get("env", []) if e["name"].startswith("MEMPROXY_")} == names
    for config in (one for one in manifests() if one["kind"] == "ConfigMap"):
        assert {key for key in config["data"] if key.startswith("MEMPROXY_")} <= SETTINGS


def test_the_dockerfile_copies_what_is_there() -> None:
    lines = (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines()
    copied = [
        word for line in lines if line.startswith("COPY ") and "--from" not in line for word in line.split()[1:-1]
    ]
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert copied
    assert [name for name in copied if not (ROOT / name).exists()] == []
    assert [name for name in copied if f"!{name}" not in ignored] == []
