"""Compose and Kubernetes files start parts that exist, with settings that exist, and mount what is there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from typer.main import get_command

from extproc.cli import memproxy
from extproc.health import LIVE
from extproc.supervisor.bootstrap import template
from extproc.supervisor.process_specs import FILTER_STOP_SECONDS
from memory.settings import Settings, every_setting

ROOT = Path(__file__).resolve().parent.parent
KUBERNETES = ROOT / "deploy" / "kubernetes"
KUBECTL = Path(sys.executable).with_name("kubectl")
KUBERNETES_VERSION = "1.32"
COMMANDS: dict[str, Any] = get_command(memproxy).commands
SETTINGS = {doc.environment for doc in every_setting()}


def content_of(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return content


def compose() -> dict[str, Any]:
    return content_of(ROOT / "docker-compose.yml")


def ours() -> dict[str, dict[str, Any]]:
    """The services that run our image."""
    services = compose()["services"].items()
    return {name: service for name, service in services if service["image"].startswith("memproxy")}


def manifests() -> list[dict[str, Any]]:
    files = [KUBERNETES / name for name in content_of(KUBERNETES / "kustomization.yaml")["resources"]]
    return [one for file in files for one in yaml.safe_load_all(file.read_text(encoding="utf-8")) if one]


def of_kind(*kinds: str) -> list[dict[str, Any]]:
    return [one for one in manifests() if one["kind"] in kinds]


def containers() -> list[dict[str, Any]]:
    specs = [one["spec"]["template"]["spec"] for one in of_kind("Deployment")]
    return [one for spec in specs for one in [*spec.get("initContainers", []), *spec["containers"]]]


def is_understood(words: list[str]) -> bool:
    """The command line names a part, and options that it has."""
    command = COMMANDS.get(words[0])
    assert command is not None, words
    options = {option for parameter in command.params for option in parameter.opts}
    return all(word.partition("=")[0] in options for word in words[1:] if word.startswith("--"))


def test_compose_has_every_part_and_what_they_stand_on() -> None:
    parts = [service["command"][0] for service in ours().values()]
    assert sorted(parts) == ["api", "envoy", "filter", "filter", "model", "worker", "worker"]
    assert {"vllm", "milvus", "etcd", "minio", "postgres", "prometheus", "grafana"} <= set(compose()["services"])


def test_every_service_of_compose_says_when_it_works_and_what_it_may_use() -> None:
    services = compose()["services"]
    assert [name for name, one in services.items() if "healthcheck" not in one] == []
    assert [name for name, one in services.items() if not one["deploy"]["resources"].get("limits")] == []
    for service in services.values():
        assert set(service.get("depends_on", {})) <= set(services)


def of_gpu() -> dict[str, str]:
    """The variables that go with the profile `gpu`."""
    lines = (ROOT / "deploy" / "compose" / "gpu.env").read_text(encoding="utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def test_vllm_caches_prefixes_and_serves_learning_behind_chats() -> None:
    vllm = compose()["services"]["vllm"]
    assert {"--enable-prefix-caching", "--scheduling-policy", "priority"} <= set(vllm["command"])
    assert of_gpu()["MEMPROXY_UPSTREAM"] == f"http://vllm:{vllm['expose'][0]}"
    assert int(of_gpu()["MEMPROXY_MEMORY_EXTRACTION_PRIORITY"]) > 0, "chats have 0, and higher is later"


@pytest.mark.parametrize("name", sorted(ours()))
def test_health_checks_of_our_services_ask_what_they_serve(name: str) -> None:
    words = ours()[name]["healthcheck"]["test"]
    if words[0] == "CMD-SHELL":
        assert words[1] == "ls /run/memproxy/warm-*"  # written by memory/processes/entrypoints.py
        return
    assert words[1] == "memproxy"
    assert is_understood(words[2:])
    port = port_of(name)
    assert words[3].startswith((f"http://127.0.0.1:{port}/", f"grpc:127.0.0.1:{port}"))


def port_of(name: str) -> int:
    """Where a service says that it works: as its command names it, or as the settings do."""
    command = ours()[name]["command"]
    for option in ("--listen", "--port"):
        if option in command:
            return int(command[command.index(option) + 1].rpartition(":")[2])
    return Settings().api_port if name == "api" else int(ours()[name]["environment"]["MEMPROXY_ENVOY_ADMIN_PORT"])


@pytest.mark.parametrize("name", sorted(ours()))
def test_every_service_of_compose_is_started_with_words_and_settings_that_exist(name: str) -> None:
    service = ours()[name]
    assert is_understood(service["command"])
    variables = {word for word in service.get("environment", {}) if word.startswith("MEMPROXY_")}
    assert variables or name == "model"
    assert variables - SETTINGS == set()


def test_envoy_and_the_filters_of_compose_mean_the_same_addresses() -> None:
    services = ours()
    filters = {name: one["command"] for name, one in services.items() if one["command"][0] == "filter"}
    served = {f"{name}:{words[-1].rpartition(':')[2]}" for name, words in filters.items()}
    asked = {word.partition("=")[2] for word in services["envoy"]["command"] if word.startswith("--filter=")}
    assert asked == served
    assert services["envoy"]["environment"]["MEMPROXY_FILTERS"] == str(len(served))


def test_a_stopping_part_is_given_longer_than_it_waits() -> None:
    for name, service in ours().items():
        if service["command"][0] == "filter":
            waits = float(service["environment"]["MEMPROXY_DRAIN_SECONDS"]) + FILTER_STOP_SECONDS
            assert float(service["stop_grace_period"].removesuffix("s")) >= waits, name
    [settings] = of_kind("ConfigMap")
    [filter_] = [one for one in of_kind("Deployment") if one["metadata"]["name"] == "memproxy-filter"]
    waits = float(settings["data"]["MEMPROXY_DRAIN_SECONDS"]) + FILTER_STOP_SECONDS
    assert filter_["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] >= waits


def composed(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """What compose makes of the file."""
    path = os.environ["PATH"]  # noqa: TID251 - where docker-compose is
    environment = {"PATH": path, **variables}
    return subprocess.run(["docker-compose", *words], capture_output=True, text=True, cwd=ROOT, env=environment)


@pytest.mark.skipif(shutil.which("docker-compose") is None, reason="docker-compose is not installed: apt install it")
def test_compose_itself_understands_the_file_and_with_gpu_all_parts_use_vllm_and_learn_behind_chats() -> None:
    secrets = {"MEMPROXY_EDGE_SECRET": "x", "MEMPROXY_DATABASE_PASSWORD": "y"}
    shown = composed("--env-file", "deploy/compose/gpu.env", "--profile", "gpu", "config", **secrets)
    assert shown.returncode == 0, shown.stderr
    services = yaml.safe_load(shown.stdout)["services"]
    assert sorted(services) == sorted(compose()["services"])
    for name in ours().keys() - {"model"}:
        assert of_gpu().items() <= services[name]["environment"].items(), name
    assert "MEMPROXY_EDGE_SECRET" in composed("config").stderr, "a secret that is not set is found at the start"


def test_compose_mounts_files_that_are_there_and_volumes_that_it_declares() -> None:
    content = compose()
    sources = [v.partition(":")[0] for service in content["services"].values() for v in service.get("volumes", [])]
    assert [source for source in sources if source.startswith("./") and not (ROOT / source).exists()] == []
    assert {source for source in sources if not source.startswith("./")} == set(content["volumes"])


def test_compose_publishes_on_loopback_only() -> None:
    ports = [port for service in compose()["services"].values() for port in service.get("ports", [])]
    assert ports
    assert [port for port in ports if not port.startswith("127.0.0.1:")] == []


def test_prometheus_asks_services_that_compose_has() -> None:
    scrape = content_of(ROOT / "envoy" / "prometheus.yml")["scrape_configs"]
    hosts = {t.partition(":")[0] for job in scrape for group in job["static_configs"] for t in group["targets"]}
    assert hosts <= set(compose()["services"])


def test_no_image_floats() -> None:
    images = [one["image"] for one in (*compose()["services"].values(), *containers())]
    foreign = [image for image in images if not image.startswith("memproxy")]
    assert [image for image in foreign if not re.search(r":(v|RELEASE\.)?\d", image)] == []


def test_every_container_of_the_kubernetes_example_is_started_with_words_and_settings_that_exist() -> None:
    assert {one["args"][0] for one in containers()} == {"envoy", "filter", "worker", "api"}
    for one in containers():
        assert is_understood(one["args"])
        assert {entry["name"] for entry in one.get("env", [])} <= SETTINGS
    [config] = of_kind("ConfigMap")
    assert set(config["data"]) <= SETTINGS


def test_the_manifests_are_valid_for_kubernetes() -> None:
    for one in manifests():
        kubernetes_validate.validate(one, KUBERNETES_VERSION, strict=True)


def test_the_kustomization_builds_and_no_pod_is_bound_to_a_node() -> None:
    built = subprocess.run([KUBECTL, "kustomize", str(KUBERNETES)], capture_output=True, text=True, check=True)
    pods = [one["spec"]["template"]["spec"] for one in yaml.safe_load_all(built.stdout) if one["kind"] == "Deployment"]
    assert len(pods) == len(of_kind("Deployment"))
    assert not any("affinity" in pod for pod in pods)


def test_one_line_sets_the_image_of_all_parts(tmp_path: Path) -> None:
    shutil.copytree(KUBERNETES, tmp_path, dirs_exist_ok=True)
    file = tmp_path / "kustomization.yaml"
    content = content_of(file)
    [image] = content["images"]
    image |= {"newName": "registry.example.com/team/memproxy", "newTag": "9"}
    file.write_text(yaml.safe_dump(content))
    built = subprocess.run([KUBECTL, "kustomize", str(tmp_path)], capture_output=True, text=True, check=True).stdout
    images = re.findall(r"image: (.*)", built)
    assert images == ["registry.example.com/team/memproxy:9"] * len(of_kind("Deployment"))


def test_every_pod_shows_its_metrics_to_whoever_monitors() -> None:
    [config] = of_kind("ConfigMap")
    assert config["data"]["MEMPROXY_METRICS_HOST"] == "0.0.0.0"
    reached = {
        one["spec"]["podSelector"]["matchLabels"]["app"]
        for one in of_kind("NetworkPolicy")
        if any({"protocol": "TCP", "port": "metrics"} in rule["ports"] for rule in one["spec"]["ingress"])
    }
    for one in of_kind("Deployment"):
        [container] = one["spec"]["template"]["spec"]["containers"]
        assert {"name": "metrics", "containerPort": Settings().metrics_port} in container["ports"]
        assert one["metadata"]["name"] in reached


def test_what_must_survive_is_on_servers_that_every_node_reaches() -> None:
    for one in of_kind("Deployment"):
        assert all("emptyDir" in volume for volume in one["spec"]["template"]["spec"]["volumes"]), one["metadata"]
    [config] = of_kind("ConfigMap")
    assert {"MEMPROXY_DATABASE_URL", "MEMPROXY_MILVUS_URI"} <= set(config["data"])


def test_all_parts_of_compose_are_told_the_database_that_it_starts() -> None:
    own = compose()["services"]["postgres"]["environment"]
    parts = {name: service["environment"] for name, service in ours().items() if "environment" in service}
    assert parts
    for name, settings in parts.items():
        assert settings["MEMPROXY_DATABASE_URL"] == f"postgresql://postgres:5432/{own['POSTGRES_DB']}", name
        assert settings["MEMPROXY_MEMORY_DATABASE_USERNAME"] == own["POSTGRES_USER"], name
        assert settings["MEMPROXY_MEMORY_DATABASE_PASSWORD"] == own["POSTGRES_PASSWORD"], name


def test_services_policies_and_budgets_select_pods_that_exist_and_ports_that_they_have() -> None:
    pods = {one["spec"]["selector"]["matchLabels"]["app"]: one for one in of_kind("Deployment")}
    for one in of_kind("Deployment"):
        assert one["spec"]["template"]["metadata"]["labels"] == one["spec"]["selector"]["matchLabels"]
        assert one["metadata"]["name"] in pods
    selected = [(one["spec"]["selector"]["app"], one["spec"]["ports"], "targetPort") for one in of_kind("Service")]
    selected += [
        (one["spec"]["podSelector"]["matchLabels"]["app"], rule["ports"], "port")
        for one in of_kind("NetworkPolicy")
        for rule in one["spec"]["ingress"]
    ]
    for app, ports, key in selected:
        [container] = pods[app]["spec"]["template"]["spec"]["containers"]
        assert {port[key] for port in ports} <= {port["name"] for port in container["ports"]}, app
    for one in of_kind("PodDisruptionBudget"):
        assert one["spec"]["selector"]["matchLabels"]["app"] in pods
    [scaler] = of_kind("HorizontalPodAutoscaler")
    assert scaler["spec"]["scaleTargetRef"]["name"] in pods
    [config] = of_kind("ConfigMap")
    assert config["data"]["MEMPROXY_FILTERS"] == str(scaler["spec"]["maxReplicas"])


def test_no_container_of_the_kubernetes_example_is_root_or_writes_outside_its_volumes() -> None:
    for one in of_kind("Deployment"):
        assert one["spec"]["template"]["spec"]["securityContext"]["runAsNonRoot"]
    for container in containers():
        context = container["securityContext"]
        assert context["readOnlyRootFilesystem"]
        assert not context["allowPrivilegeEscalation"]
        assert context["capabilities"] == {"drop": ["ALL"]}
        assert {"startupProbe", "readinessProbe"} & set(container)


def test_filters_are_asked_by_the_names_that_their_health_service_knows() -> None:
    filter_, envoy = (next(one for one in containers() if one["name"] == name) for name in ("filter", "envoy"))
    port = int(filter_["args"][-1].rpartition(":")[2])
    assert filter_["readinessProbe"]["grpc"] == {"port": port}
    assert filter_["livenessProbe"]["grpc"] == filter_["startupProbe"]["grpc"] == {"port": port, "service": LIVE}
    [service] = [one for one in of_kind("Service") if one["spec"].get("clusterIP") == "None"]
    assert f"--filter={service['metadata']['name']}:{service['spec']['ports'][0]['port']}" in envoy["args"]


def test_the_dockerfile_copies_what_is_there() -> None:
    lines = (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines()
    copies = [line.split() for line in lines if line.startswith("COPY ") and "--from" not in line]
    copied = [word for words in copies for word in words[1:-1]]
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert copied
    assert [name for name in copied if not (ROOT / name).exists()] == []
    assert [name for name in copied if f"!{name}" not in ignored] == []


def test_envoy_gateway_observes_and_asks_for_health_as_our_own_envoy_does() -> None:
    own = content_of(template())["static_resources"]
    manager = own["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"]
    [observe] = [one["typed_config"] for one in manager["http_filters"] if one["name"] == "memory.observe"]
    [inject] = [one["typed_config"] for one in manager["http_filters"] if one["name"] == "memory.inject"]
    [cluster] = [one for one in own["clusters"] if one["name"] == "memory_observe"]
    file = ROOT / "deploy" / "envoy-gateway" / "memproxy.yaml"
    policy, patch, network = yaml.safe_load_all(file.read_text(encoding="utf-8"))
    patched, added = (one["operation"]["value"] for one in patch["spec"]["jsonPatches"])
    for key in ("observability_mode", "failure_mode_allow", "deferred_close_timeout", "processing_mode"):
        assert patched["typed_config"][key] == observe[key]
    assert patched["typed_config"]["metadata_options"] == observe["metadata_options"]
    assert patched["typed_config"]["grpc_service"]["initial_metadata"] == [{"key": "x-role", "value": "observe"}]
    assert added["health_checks"] == cluster["health_checks"]
    assert added["common_lb_config"] == cluster["common_lb_config"]
    [extension] = policy["spec"]["extProc"]
    assert extension["failOpen"] is inject["failure_mode_allow"] is True
    assert extension["messageTimeout"] == inject["message_timeout"]
    assert extension["metadata"]["writableNamespaces"] == inject["metadata_options"]["receiving_namespaces"]["untyped"]
    [service] = [one for one in of_kind("Service") if one["metadata"]["name"] == "memproxy-filter"]
    [backend] = extension["backendRefs"]
    assert (backend["name"], backend["port"]) == (service["metadata"]["name"], service["spec"]["ports"][0]["port"])
    assert network["spec"]["podSelector"]["matchLabels"] == service["spec"]["selector"]
