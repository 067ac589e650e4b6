"""Specifies the parts of a run: how each is started, and which probe shows that it works.

Nothing is started here. Secrets are passed in the environment, never in arguments, which every user of the machine can
read.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import msgspec

from extproc.addresses import HostAndPort, unix_target
from extproc.supervisor import probes
from extproc.supervisor.bootstrap import known_admin
from extproc.supervisor.locks_and_ports import CannotStart
from extproc.supervisor.processes import ProcessCommand
from memory.settings import Settings
from memory.settings.loader import child_environment

LOOPBACK = "127.0.0.1"
OUR_CLUSTERS = frozenset({"memory_inject", "memory_observe", "memory_api"})  # names as in envoy/envoy.yaml

# Lower priority on a busy machine: nobody waits for a worker, or for the demonstration model.
WORKER_NICENESS = 10
MODEL_NICENESS = 10

# Time between each part's stop signal and SIGKILL. Envoy has finished its requests before it is stopped.
ENVOY_STOP_SECONDS = 3.0
FILTER_STOP_SECONDS = 10.0  # until Envoy has heard of it, then the pending turns; and what it waits for replies
API_STOP_SECONDS = 10.0  # 2 s for open connections, 5 s for calls under way, then closes its files
MILVUS_STOP_SECONDS = 10.0  # it takes 5 s for active calls, then closes its files

# Warnings alone. Of spans not even these, a line for each batch while a collector is down: the filter writes one.
QUIET = ("--log-level", "warn", "--component-log-level", "tracing:critical")

Probe: TypeAlias = Callable[[], Awaitable[bool]]


@dataclass(frozen=True, slots=True)
class Ports:
    """Ports in use. `milvus`: of the server in use, ours or not; `model`: 0 with an upstream. None: a Unix socket."""

    proxy: int
    api: int
    envoy_admin: int | None
    metrics: int
    milvus: int | None
    model: int


@dataclass(frozen=True, slots=True)
class RunPaths:
    """The paths of one run. `folder`: short, 0700, temporary; `data`: persistent."""

    folder: Path
    data: Path

    @property
    def settings(self) -> Path:
        return self.folder / "settings.yaml"

    @property
    def envoy(self) -> Path:
        return self.folder / "envoy.json"

    @property
    def metrics(self) -> Path:
        return self.folder / "metrics"

    def warm_mark(self, pid: int) -> Path:
        """Exists once this process has searched successfully (created by memory/processes/entrypoints.py)."""
        return self.folder / f"warm-{pid}"

    def filter_socket(self, number: int) -> Path:
        return self.folder / f"filter-{number}.sock"

    def filter_sockets(self, count: int) -> tuple[Path, ...]:
        return tuple(self.filter_socket(number) for number in range(count))


def settings_of_run(settings: Settings, paths: RunPaths, ports: Ports) -> Settings:
    """The settings passed to the parts: ports resolved, paths absolute, and a new secret between Envoy and the API."""
    learn = settings.memory.learn
    if not settings.upstream and learn.reader == "auto":  # the small local model would only fail the exam
        learn = msgspec.structs.replace(learn, reader="trained")
    return msgspec.structs.replace(
        settings,
        memory=msgspec.structs.replace(settings.memory, learn=learn),
        upstream=settings.upstream or f"http://{LOOPBACK}:{ports.model}",
        upstream_keep_alive=settings.upstream_keep_alive and bool(settings.upstream),
        port=ports.proxy,
        api_port=ports.api,
        envoy_admin_port=ports.envoy_admin,
        metrics_port=ports.metrics,
        metrics_host="",  # one page for all parts
        milvus_uri=settings.store_uri or own_store_uri(paths.folder / "milvus.sock", ports.milvus),
        data_dir=str(paths.data),
        run_dir=str(paths.folder),
        ports_file="",
        edge_secret=secrets.token_urlsafe(32),
        token="",  # of whoever calls the commands; no part needs it
    )


@dataclass(frozen=True, slots=True)
class ProcessSpec(ProcessCommand):
    """One part. It works if it runs, `probe` says so and, if it `searches`, it has searched successfully."""

    probe: Probe | None = None  # of what listens
    searches: bool = False  # needs Milvus
    stage: int = 0  # of the shutdown: lower stages end before higher ones are stopped


def process_specs(settings: Settings, paths: RunPaths, ports: Ports, *, owns_store: bool) -> list[ProcessSpec]:
    """Every part of a run. `settings`: from `settings_of_run`. Raises `CannotStart` if a program is missing."""
    own = _environment(settings, paths)
    parts = [_envoy(settings, paths)]
    parts += [_filter(number, paths, own, settings.drain_seconds) for number in range(settings.filters)]
    parts += [_api(settings, paths, own), *_workers(settings, paths, own)]
    if ports.model:
        parts.append(_model(ports.model, own))
    if owns_store:
        parts.append(milvus_spec(settings))
    return parts


def _environment(settings: Settings, paths: RunPaths) -> dict[str, str]:
    extra = {
        "PROMETHEUS_MULTIPROC_DIR": str(paths.metrics),
        "HF_HUB_OFFLINE": "1",  # the model is packaged; a request to the hub would take seconds and reveal our use
        "TOKENIZERS_PARALLELISM": "false",
    }
    return _local(child_environment(settings, extra))


def _local(environment: dict[str, str]) -> dict[str, str]:
    """Unbuffered Python output, and no proxy between our own parts."""
    exempt = [environment.get("no_proxy", ""), LOOPBACK, "localhost"]
    hosts = ",".join(host for host in exempt if host)
    return {**environment, "PYTHONUNBUFFERED": "1", "no_proxy": hosts, "NO_PROXY": hosts}


def program(name: str) -> str:
    """The program next to the Python that runs us, or on the PATH."""
    beside = Path(sys.executable).with_name(name)
    found = str(beside) if os.access(beside, os.X_OK) else shutil.which(name)
    if found is None:
        raise CannotStart(f"the program `{name}` is neither beside {sys.executable} nor on the PATH: run `make setup`")
    return found


def _memproxy(paths: RunPaths, part: str, *more: str) -> tuple[str, ...]:
    return (program("memproxy"), part, "--config", str(paths.settings), *more)


def _envoy(settings: Settings, paths: RunPaths) -> ProcessSpec:
    return ProcessSpec(
        name="envoy",
        argv=(program("envoy"), *envoy_arguments(paths.envoy, envoy_threads(len(os.sched_getaffinity(0))))),
        environment=_local(child_environment(settings, {})),
        stop_seconds=ENVOY_STOP_SECONDS,
        probe=lambda: _envoy_works(settings),
    )


async def _envoy_works(settings: Settings) -> bool:
    """Envoy itself is live without its listener, so a request has to get through that."""
    return await probes.answers_http(proxy_address(settings), probes.LISTENER_PATH) and await probes.envoy_sees_all(
        envoy_admin(settings), endpoints_of=OUR_CLUSTERS
    )


def proxy_address(settings: Settings) -> tuple[str, int]:
    """Where this machine reaches Envoy's listener."""
    return {"0.0.0.0": LOOPBACK, "::": "::1"}.get(settings.host, settings.host), settings.port  # noqa: S104


def envoy_admin(settings: Settings) -> probes.Where:
    admin = known_admin(settings)
    return (LOOPBACK, admin) if isinstance(admin, int) else admin


def envoy_arguments(bootstrap_file: Path, threads: int) -> tuple[str, ...]:
    """Without hot restart: its shared memory is identified by a number, so that two Envoys on a machine would
    collide.
    """
    return ("-c", str(bootstrap_file), "--disable-hot-restart", "--concurrency", str(threads), *QUIET)


def envoy_threads(cores: int) -> int:
    """Half of the cores: an Envoy thread handles ten times as much as a filter, and the filters need the rest."""
    return max(1, cores // 2)


def _filter(number: int, paths: RunPaths, environment: dict[str, str], drain_seconds: float) -> ProcessSpec:
    path = paths.filter_socket(number)
    return ProcessSpec(
        name=f"filter-{number}",
        argv=_memproxy(paths, "filter", "--socket", str(path)),
        environment=environment,
        stop_seconds=FILTER_STOP_SECONDS + drain_seconds,
        probe=lambda: probes.filter_serves(unix_target(path)),
        searches=True,
        stage=1,
    )


def _api(settings: Settings, paths: RunPaths, environment: dict[str, str]) -> ProcessSpec:
    host = LOOPBACK if settings.api_host in ("0.0.0.0", "::") else settings.api_host  # noqa: S104 - where to ask it
    return ProcessSpec(
        name="api",
        argv=_memproxy(paths, "api"),
        environment=environment,
        stop_seconds=API_STOP_SECONDS,
        probe=lambda: probes.answers_http((host, settings.api_port), "/healthz"),
        searches=True,
        stage=1,
    )


def _workers(settings: Settings, paths: RunPaths, environment: dict[str, str]) -> list[ProcessSpec]:
    command = _memproxy(paths, "worker")
    return [
        ProcessSpec(
            f"worker-{number}", command, environment=environment, niceness=WORKER_NICENESS, searches=True, stage=2
        )
        for number in range(settings.workers)
    ]


def _model(port: int, environment: dict[str, str]) -> ProcessSpec:
    return ProcessSpec(
        name="model",
        argv=(program("memproxy"), "model", "--port", str(port)),
        environment=environment,
        niceness=MODEL_NICENESS,
        probe=lambda: probes.answers_http((LOOPBACK, port), "/health"),
        stage=3,
    )


def own_store_uri(socket: Path, port: int | None) -> str:
    """The address of our Milvus Lite: of that port, or without one of a Unix socket."""
    return unix_target(socket) if port is None else f"http://{LOOPBACK}:{port}"


def milvus_spec(settings: Settings) -> ProcessSpec:
    """Milvus Lite on the data directory, at the address of `milvus_uri`."""
    address = settings.milvus_uri.removeprefix("http://")
    words = ("milvus-lite", "server", "--data-dir", str(settings.milvus_dir), "--address", address)
    return ProcessSpec(
        name="milvus",
        argv=(program("memproxy"), *words),
        environment=_local(child_environment(msgspec.structs.replace(settings, edge_secret=""), {})),
        stop_signal=signal.SIGINT,  # the signal on which it closes its files
        stop_seconds=MILVUS_STOP_SECONDS,
        probe=lambda: probes.milvus_answers(settings.milvus_uri),
        stage=4,
    )


def ready_line(settings: Settings) -> str:
    """The only line of `up` on standard output."""
    return f"ready http://{HostAndPort(settings.host.strip('[]'), settings.port).target}"
