"""What the supervisor sees of its parts, and what is shown of them: probes, metrics, the plan of a run."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import httpx
import msgspec
import pytest
from prometheus_client import CollectorRegistry
from served_app import served
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from extproc.supervisor import probes, process_specs
from extproc.supervisor.locks_and_ports import reserve_port
from extproc.supervisor.metrics_endpoint import all_metrics, forget_process, metrics_served
from extproc.supervisor.probes import REFUSALS_MIN, SILENT_LOOKS_MIN, ListenerSign, ListenerWatch
from extproc.supervisor.process_specs import Ports, RunPaths
from memory.cli import main
from memory.runtime.metrics import Metrics
from memory.settings import Settings
from memory.settings.loader import from_process

PORTS = Ports(proxy=8080, api=8081, envoy_admin=9901, metrics=9464, milvus=19530, model=0)
COUNTING = """
import sys
from prometheus_client import REGISTRY
from memory.runtime.metrics import Metrics

metrics = Metrics(REGISTRY)
metrics.turns.labels("closed").inc(float(sys.argv[1]))
metrics.recall_in_flight.inc(2)
"""


def clusters(*hosts: dict[str, object], name: str = "memory_api") -> bytes:
    statuses = [{"health_status": host} for host in hosts]
    return json.dumps({"cluster_statuses": [{"name": name, "host_statuses": statuses}]}).encode()


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (clusters({"eds_health_status": "HEALTHY"}), True),
        (clusters({"eds_health_status": "HEALTHY"}, {"eds_health_status": "HEALTHY", "failed_active_hc": True}), False),
        (clusters({"eds_health_status": "HEALTHY", "pending_active_hc": True}), False),
        (clusters({"eds_health_status": "HEALTHY", "failed_outlier_check": True}), False),
        (clusters(), False),
        (clusters({"eds_health_status": "HEALTHY"}, name="other"), False),
    ],
)
def test_a_cluster_is_healthy_when_each_of_its_endpoints_is(answer: bytes, *, expected: bool) -> None:
    assert probes.all_are_healthy(answer, endpoints_of=frozenset({"memory_api"})) is expected


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://10.0.0.7:19531", ("10.0.0.7", 19531)),
        ("https://milvus.example", ("milvus.example", 443)),
        ("http://milvus.example", ("milvus.example", 80)),
        ("10.0.0.7:19531", ("10.0.0.7", 19531)),
        ("http://[::1]:19530", ("::1", 19530)),
        ("unix:/run/milvus.sock", Path("/run/milvus.sock")),
    ],
)
def test_an_address_is_read_from_whatever_names_it(url: str, expected: probes.Where) -> None:
    assert probes.address_of(url) == expected


async def test_a_part_that_is_away_or_silent_does_not_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # accepts, and never answers
        host, port = silent.getsockname()
        assert await probes.accepts_connections(host, port)
        monkeypatch.setattr(probes, "PROBE_SECONDS", 0.2)
        assert not await probes.filter_serves(f"unix:{tmp_path}/nobody.sock")
        assert await asyncio.to_thread(probes.seen_listener, (host, port)) is ListenerSign.IS_SILENT
        assert not await probes.answers_http((host, port), "/health")
        assert not await probes.milvus_answers(f"http://{host}:{port}")
        assert not await probes.envoy_sees_all((host, port), endpoints_of=frozenset())
        assert await probes.active_requests((host, port)) == 0
    assert not await probes.accepts_connections(host, port)
    assert await asyncio.to_thread(probes.seen_listener, (host, port)) is ListenerSign.REFUSES
    assert not await probes.milvus_answers(f"http://{host}:{port}")


async def test_a_part_that_says_it_is_unwell_does_not_work() -> None:
    async def unwell(_: Request) -> Response:
        return Response(status_code=503)

    with served(Starlette(routes=[Route("/health", unwell)])) as port:
        assert not await probes.answers_http(("127.0.0.1", port), "/health")
        assert await asyncio.to_thread(probes.seen_listener, ("127.0.0.1", port)) is ListenerSign.LIVES


LIVES, REFUSES, SILENT = ListenerSign.LIVES, ListenerSign.REFUSES, ListenerSign.IS_SILENT


@pytest.mark.parametrize(
    ("signs", "restarts"),
    [
        ([REFUSES] * REFUSALS_MIN, 1),
        ([REFUSES] * 2 * REFUSALS_MIN, 2),
        ([REFUSES, LIVES] * 5, 0),
        ([SILENT] * SILENT_LOOKS_MIN, 1),
        ([SILENT] * (SILENT_LOOKS_MIN - 1), 0),
        (([SILENT] * (SILENT_LOOKS_MIN - 1) + [LIVES]) * 3, 0),  # an overload that serves now and then
        ([SILENT, REFUSES] * SILENT_LOOKS_MIN, 0),
    ],
)
def test_envoy_is_restarted_once_its_listener_refuses_or_is_silent(signs: list[ListenerSign], restarts: int) -> None:
    watch = ListenerWatch()
    assert sum(watch.is_lost(sign, is_live=True) for sign in signs) == restarts


def test_an_envoy_that_is_starting_may_refuse_as_long_as_that_takes() -> None:
    watch = ListenerWatch()
    assert not any(watch.is_lost(REFUSES, is_live=False) for _ in range(100))
    assert [watch.is_lost(REFUSES, is_live=True) for _ in range(REFUSALS_MIN)] == [False] * (REFUSALS_MIN - 1) + [True]


def counted(folder: Path, turns: int) -> int:
    """A process that counts and ends; its pid."""
    words = [sys.executable, "-c", COUNTING, str(turns)]
    child = subprocess.Popen(words, env={"PROMETHEUS_MULTIPROC_DIR": str(folder)})
    assert child.wait(30) == 0
    return child.pid


def test_the_page_adds_up_all_processes_and_adds_what_the_supervisor_and_envoy_know(tmp_path: Path) -> None:
    first = counted(tmp_path, 3)
    counted(tmp_path, 4)
    own = Metrics(CollectorRegistry())
    own.part_up.labels("api").set(1)
    with metrics_served(0, all_metrics(tmp_path, (own.part_up,)), envoy_page=lambda: b"envoy_says 1\n") as port:
        url = f"http://127.0.0.1:{port}"
        assert httpx.get(f"{url}/other").status_code == 404
        lines = httpx.get(f"{url}/metrics").text.splitlines()
        assert 'memproxy_part_up{part="api"} 1.0' in lines
        assert 'memproxy_turns_total{status="closed"} 7.0' in lines
        assert sum(line.startswith("# TYPE memproxy_turns ") for line in lines) <= 1
        assert "memproxy_recall_in_flight 4.0" in lines
        assert "envoy_says 1" in lines

        forget_process(tmp_path, first)
        lines = httpx.get(f"{url}/metrics").text.splitlines()
        assert "memproxy_recall_in_flight 2.0" in lines  # what a dead process had under way is over
        assert 'memproxy_turns_total{status="closed"} 7.0' in lines  # what it counted happened


@pytest.mark.full("starts a worker")
def test_a_part_alone_as_in_a_container_shows_its_metrics_where_it_is_told_to(tmp_path: Path) -> None:
    with reserve_port("127.0.0.1", 0, setting="metrics_port") as reserved:
        port = reserved.getsockname()[1]
        environment = {
            "PATH": os.defpath,
            "MEMPROXY_DATA_DIR": str(tmp_path),
            "MEMPROXY_MODELS_DIR": str(from_process(None, {}).models_path),  # else it would make them ready first
            "MEMPROXY_RUN_DIR": str(tmp_path),
            "MEMPROXY_MILVUS_URI": "http://127.0.0.1:9",
            "MEMPROXY_METRICS_HOST": "127.0.0.1",
            "MEMPROXY_METRICS_PORT": str(port),
        }
        command = [Path(sys.executable).with_name("memproxy"), "worker"]
        worker = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
        try:
            until, page = time.monotonic() + 120, ""
            while "memproxy_turns" not in page and time.monotonic() < until:
                try:
                    page = httpx.get(f"http://127.0.0.1:{port}/metrics").text
                except httpx.TransportError:
                    time.sleep(0.2)
        finally:
            worker.terminate()
            worker.wait(60)
    assert "memproxy_turns" in page


def test_a_part_that_is_told_nothing_shows_its_metrics_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = list[tuple[str, int]]()

    async def ends(*_: object) -> None:
        pass

    monkeypatch.setattr(main, "_show_metrics", lambda *where: shown.append(where))
    for host in ("", "127.0.0.1"):
        main.run_part(ends, Settings(metrics_host=host, metrics_port=9464))
    assert shown == [("127.0.0.1", 9464)]


def planned(
    settings: Settings, tmp_path: Path, *, owns_store: bool = True, ports: Ports = PORTS
) -> dict[str, process_specs.ProcessSpec]:
    place = RunPaths(folder=tmp_path, data=tmp_path)
    told = process_specs.settings_of_run(settings, place, ports)
    return {one.name: one for one in process_specs.process_specs(told, place, ports, owns_store=owns_store)}


def test_there_are_as_many_filters_and_workers_as_asked_for_each_filter_on_its_own_socket(tmp_path: Path) -> None:
    plan = planned(Settings(upstream="http://127.0.0.1:8000", filters=3, workers=2), tmp_path)
    several = [name for name in plan if name.startswith(("filter", "worker"))]
    assert sorted(several) == ["filter-0", "filter-1", "filter-2", "worker-0", "worker-1"]
    assert len({plan[f"filter-{number}"].argv for number in range(3)}) == 3


def test_what_somebody_else_serves_is_not_started(tmp_path: Path) -> None:
    settings = Settings(upstream="http://127.0.0.1:8000", milvus_uri="http://127.0.0.1:19530")
    embedding = msgspec.structs.replace(settings.memory.embedding, endpoint="http://127.0.0.1:8001/v1")
    memory = msgspec.structs.replace(settings.memory, embedding=embedding)
    plan = planned(msgspec.structs.replace(settings, memory=memory), tmp_path, owns_store=False)
    assert set(plan) == {"envoy", "filter-0", "api", "worker-0"}
    assert "model" in planned(Settings(), tmp_path, ports=replace(PORTS, model=8000))


def test_the_secret_between_envoy_and_the_api_is_new_each_time_and_for_those_alone_who_need_it(tmp_path: Path) -> None:
    place = RunPaths(folder=tmp_path, data=tmp_path)
    secrets = {process_specs.settings_of_run(Settings(), place, PORTS).edge_secret for _ in range(3)}
    assert len(secrets) == 3
    plan = planned(Settings(), tmp_path)
    assert plan["envoy"].environment["MEMPROXY_EDGE_SECRET"]
    assert "MEMPROXY_EDGE_SECRET" not in plan["milvus"].environment
    assert plan["envoy"].environment["MEMPROXY_EDGE_SECRET"] not in repr(plan)


def test_no_part_gets_the_token_of_the_tools(tmp_path: Path) -> None:
    plan = planned(Settings(token="mpt_secret"), tmp_path)
    assert "mpt_secret" not in " ".join(value for part in plan.values() for value in part.environment.values())


def test_what_a_request_needs_is_stopped_before_what_it_stands_on(tmp_path: Path) -> None:
    plan = planned(Settings(), tmp_path, ports=replace(PORTS, model=8000))
    stages = {name: plan[name].stage for name in plan}
    assert stages["envoy"] < stages["filter-0"] <= stages["api"] < stages["worker-0"]
    assert stages["worker-0"] < stages["milvus"]
    assert stages["envoy"] < stages["model"]


def test_the_ready_line_is_a_url_also_with_an_ipv6_address(tmp_path: Path) -> None:
    told = process_specs.settings_of_run(Settings(host="::1"), RunPaths(tmp_path, tmp_path), PORTS)
    assert process_specs.ready_line(told) == "ready http://[::1]:8080"


@pytest.mark.parametrize(("cores", "threads"), [(1, 1), (2, 1), (8, 4)])
def test_envoy_takes_half_of_the_cores(cores: int, threads: int) -> None:
    assert process_specs.envoy_threads(cores) == threads
