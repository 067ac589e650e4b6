"""The supervisor behind `memproxy up`: the whole product on one machine, as one command.

Starts every part, announces `ready` once a chat would be recalled and learnt, restarts parts that die, and stops all in
an order in which nothing is lost. It handles no requests itself: if it hangs, chats continue. Nothing that it started
outlives it.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from prometheus_client import CollectorRegistry
from structlog.typing import FilteringBoundLogger

from extproc.supervisor import bootstrap, probes
from extproc.supervisor.locks_and_ports import CannotStart, data_directory, reserve_port, run_folder, wait_for_lock
from extproc.supervisor.log_lines import LogLines, supervisor_logger
from extproc.supervisor.metrics_endpoint import METRICS_HOST, all_metrics, forget_process, metrics_served
from extproc.supervisor.process_specs import (
    LOOPBACK,
    Ports,
    RunPaths,
    envoy_admin,
    process_specs,
    proxy_address,
    ready_line,
    settings_of_run,
)
from extproc.supervisor.processes import ChildProcess
from extproc.supervisor.rolling_restart import RESTART_SIGNAL, RollingRestart, publish
from memory.errors import BadSetting
from memory.runtime.metrics import Metrics
from memory.settings import Settings
from memory.settings.loader import dump

POLL_SECONDS = 0.1  # between two checks of starting parts
WATCH_SECONDS = 5.0  # between two checks of running parts
REMIND_SECONDS = 10.0  # how often a slow start logs what it waits for
START_SECONDS_MAX = 300.0  # for our own parts: the first start of the embedding model on a busy machine takes a minute
DEATHS_AT_START_MAX = 3  # a part that dies so often during the start will not recover
BAD_SETTING_CODE = 2  # exit code of our parts if a restart cannot help
DRAIN_SECONDS = 10.0  # for active requests when we are stopped; callers may wait 30 s
SECOND_THOUGHT_SECONDS = 1.0  # `timeout`, shells and process groups often send the same signal twice in a row
STDERR = 2


@dataclass(frozen=True, slots=True)
class Run:
    """One run before its parts start: the settings for the parts, and the claimed resources."""

    settings: Settings
    paths: RunPaths
    ports: Ports
    owns_store: bool
    ports_file: Path | None


def up(settings: Settings, *, announce: Callable[[str], None]) -> None:
    """Run the product until SIGTERM or SIGINT. `announce` gets the line for standard output.

    Call from the main thread. Raises `CannotStart` or `BadSetting` after stopping whatever was started.
    """
    as_json = settings.log_format == "json"
    log = LogLines(STDERR, as_json=as_json)
    try:
        with claimed(settings) as run:
            asyncio.run(Supervisor(run, log=log, logger=supervisor_logger(log, as_json=as_json)).run(announce))
    finally:
        log.close()


@contextmanager
def claimed(settings: Settings) -> Iterator[Run]:
    """Claim the data directory, the run's folder and the ports. Raises `CannotStart`."""
    owns_store = not settings.store_uri
    ports_file = Path(settings.ports_file).absolute() if settings.ports_file else None
    with ExitStack() as claims:
        data = claims.enter_context(data_directory(Path(settings.data_dir).absolute()))
        paths = RunPaths(folder=claims.enter_context(run_folder()), data=data)
        paths.metrics.mkdir()
        ports = _claim_ports(settings, claims, owns_store=owns_store)
        if ports_file is not None:  # now it is certain that the file is not another run's
            _forget_last_run(ports_file)
        told = settings_of_run(settings, paths, ports)
        told.milvus_uri_file.unlink(missing_ok=True)  # of a run that was killed
        if owns_store:
            wait_for_lock(told.milvus_dir / "LOCK")
            claims.callback(told.milvus_uri_file.unlink, missing_ok=True)
            told.milvus_uri_file.write_text(told.milvus_uri, encoding="ascii")  # for the operator's tools
        _write_private(paths.settings, dump(told).encode())
        yield Run(told, paths, ports, owns_store=owns_store, ports_file=ports_file)


def _claim_ports(settings: Settings, claims: ExitStack, *, owns_store: bool) -> Ports:
    held: dict[int, str] = {}

    def claim(setting: str, host: str, port: int) -> int:
        if port in held:
            raise CannotStart(f"{setting}: port {port} is already that of {held[port]}. Give another one, or 0")
        reserved: socket.socket = claims.enter_context(reserve_port(host, port, setting=setting))
        number = int(reserved.getsockname()[1])
        held[number] = setting
        return number

    def claim_if_given(setting: str, port: int | None) -> int | None:
        return None if port is None else claim(setting, LOOPBACK, port)

    store = probes.address_of(settings.store_uri)
    store_port = None if isinstance(store, Path) else store[1]
    return Ports(
        proxy=claim("port", settings.host, settings.port),
        api=claim("api_port", settings.api_host, settings.api_port),
        envoy_admin=claim_if_given("envoy_admin_port", settings.envoy_admin_port),
        metrics=claim("metrics_port", METRICS_HOST, settings.metrics_port),
        milvus=claim_if_given("milvus_port", settings.milvus_port) if owns_store else store_port,
        model=0 if settings.upstream else claim("model", LOOPBACK, 0),
    )


def _forget_last_run(ports_file: Path) -> None:
    try:
        ports_file.write_bytes(b"")  # an unwritable file is an error at the start, not at the end
        ports_file.unlink()
    except OSError as error:
        raise CannotStart(f"ports_file {ports_file} cannot be written: {error.strerror}. Name another file") from error


def _write_private(path: Path, content: bytes) -> None:
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:  # noqa: PTH123 - with a mode
        file.write(content)


class Supervisor:
    def __init__(self, run: Run, *, log: LogLines, logger: FilteringBoundLogger) -> None:
        self._run = run
        self._logger = logger
        self._metrics = Metrics(CollectorRegistry())
        planned = process_specs(run.settings, run.paths, run.ports, owns_store=run.owns_store)
        self._specs = {one.name: one for one in planned}
        self._parts = {one.name: ChildProcess(one, log=log, logger=logger, on_death=self._part_died) for one in planned}
        self._restart = RollingRestart(
            self._parts, missing=self._missing, forget=self._part_ended, data_dir=run.paths.data, logger=logger
        )
        self._listener = probes.ListenerWatch()
        self._stopping = asyncio.Event()
        self._asked_to_stop_at: float | None = None
        self._failure: CannotStart | BadSetting | None = None
        self._began_at = 0.0
        self._started: set[str] = set()

    async def run(self, announce: Callable[[str], None]) -> None:
        loop = asyncio.get_running_loop()
        self._began_at = loop.time()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            loop.add_signal_handler(number, self._stop)
        loop.add_signal_handler(RESTART_SIGNAL, self._restart.request)
        own = (self._metrics.part_up, self._metrics.part_start_seconds, self._metrics.part_restarts)
        registry = all_metrics(self._run.paths.metrics, own)
        with metrics_served(self._run.ports.metrics, registry, envoy_page=self._envoy_page):
            async with asyncio.TaskGroup() as tasks:
                life = tasks.create_task(self._live(tasks, announce))
                await self._stopping.wait()
                life.cancel()
                await self._shut_down()
        if self._failure is not None:
            raise self._failure

    def _stop(self) -> None:
        """The first call stops in order, another one a moment later at once."""
        now = asyncio.get_running_loop().time()
        if self._asked_to_stop_at is None:
            self._asked_to_stop_at = now
        elif now - self._asked_to_stop_at > SECOND_THOUGHT_SECONDS:
            for part in self._parts.values():
                part.kill()
        self._stopping.set()

    def _part_died(self, part: ChildProcess, pid: int) -> None:
        self._metrics.part_restarts.labels(part.name).inc()
        self._metrics.part_up.labels(part.name).set(0)
        self._part_ended(pid)

    def _part_ended(self, pid: int) -> None:
        if pid:
            forget_process(self._run.paths.metrics, pid)

    def _envoy_page(self) -> bytes:
        status, page = probes.ask_http_blocking(envoy_admin(self._run.settings), "/stats/prometheus")
        return page if status == 200 else b""

    async def _live(self, tasks: asyncio.TaskGroup, announce: Callable[[str], None]) -> None:
        try:
            await self._start(tasks)
        except (CannotStart, BadSetting) as failure:
            self._failure = failure
            self._stopping.set()
            return
        await self._warn_about_upstream()
        self._write_ports_file()
        announce(ready_line(self._run.settings))
        self._logger.info("ready", proxy=self._run.ports.proxy, api=self._run.ports.api)
        async with asyncio.TaskGroup() as living:
            living.create_task(self._restart.run())
            await self._watch()

    async def _start(self, tasks: asyncio.TaskGroup) -> None:
        """Return once a chat would be recalled and learnt. Raises `CannotStart`."""
        for name, part in self._parts.items():
            if name != "envoy":
                tasks.create_task(part.keep_running())
        await self._write_bootstrap()
        tasks.create_task(self._parts["envoy"].keep_running())
        await self._wait_until_ready()

    async def _write_bootstrap(self) -> None:
        settings = self._run.settings
        plan = bootstrap.EnvoyPlan(settings, self._run.paths.filter_sockets(settings.filters))
        _write_private(self._run.paths.envoy, await asyncio.to_thread(bootstrap.render_unchecked, plan))

    async def _wait_until_ready(self) -> None:
        loop = asyncio.get_running_loop()
        started = reminded = loop.time()
        while missing := await self._missing():
            self._note_started(set(missing))
            self._give_up_if_hopeless()
            now = loop.time()
            if now - started > START_SECONDS_MAX and missing != ["milvus"]:
                last_words = self._parts[missing[0]].last_words
                raise CannotStart(f"{missing[0]} not ready after {START_SECONDS_MAX:.0f} s. {last_words}")
            if now - reminded > REMIND_SECONDS:
                self._logger.info("still starting", waiting_for=", ".join(missing))
                reminded = now
            await asyncio.sleep(POLL_SECONDS)
        self._note_started(set())

    def _note_started(self, missing: set[str]) -> None:
        took = asyncio.get_running_loop().time() - self._began_at
        for name in self._parts.keys() - missing - self._started:
            self._started.add(name)
            self._metrics.part_start_seconds.labels(name).set(round(took, 2))
            self._metrics.part_restarts.labels(name)  # 0 from now on, so that the first restart shows as one
            self._logger.info("part works", part=name, after_seconds=round(took, 1))

    async def _missing(self) -> list[str]:
        """Names of the parts that do not work now, including an external Milvus."""
        names = [name for name, part in self._parts.items() if not await self._works(name, part)]
        if not self._run.owns_store and not await probes.milvus_answers(self._run.settings.milvus_uri):
            names.append("milvus")
        return names

    async def _works(self, name: str, part: ChildProcess) -> bool:
        spec = self._specs[name]
        if part.pid is None or (spec.searches and not self._run.paths.warm_mark(part.pid).exists()):
            return False
        return spec.probe is None or await spec.probe()

    def _give_up_if_hopeless(self) -> None:
        for name, part in self._parts.items():
            if part.exit_code == BAD_SETTING_CODE and name.partition("-")[0] not in ("envoy", "milvus"):
                raise CannotStart(f"{name} cannot start with these settings. {part.last_words}")
            if part.deaths >= DEATHS_AT_START_MAX:
                raise CannotStart(f"{name} died {part.deaths} times while starting. {part.last_words}")

    async def _warn_about_upstream(self) -> None:
        host, port = probes.host_and_port(self._run.settings.upstream)
        if not await probes.accepts_connections(host, port):
            self._logger.warning("the upstream is not reachable: chats fail until it is", host=host, port=port)

    def _write_ports_file(self) -> None:
        if self._run.ports_file is not None:
            ports = asdict(self._run.ports)
            del ports["model"]
            publish(self._run.ports_file, ports, self._logger)

    async def _watch(self) -> None:
        """Report to metrics and log which parts work. Dead ones are restarted elsewhere; slow ones are left alone."""
        known: set[str] = set()
        while True:
            missing = set(await self._missing())
            for name in {*self._parts, "milvus"}:
                self._metrics.part_up.labels(name).set(name not in missing)
            for name in missing - known:
                self._logger.warning("part does not work", part=name)
            for name in known - missing:
                self._logger.info("part works again", part=name)
            known = missing
            await self._restart_a_deaf_envoy()
            await asyncio.sleep(WATCH_SECONDS)

    async def _restart_a_deaf_envoy(self) -> None:
        """Where Envoy lives and its listener does not: after the requests that it still serves."""
        settings = self._run.settings
        sign = await asyncio.to_thread(probes.seen_listener, proxy_address(settings))
        is_live = sign is not probes.ListenerSign.REFUSES or await probes.answers_http(envoy_admin(settings), "/ready")
        if not self._listener.is_lost(sign, is_live=is_live):
            return
        self._logger.error("Envoy lives without its listener: it is restarted", part="envoy", listener=str(sign))
        await self._end_of_requests()
        self._metrics.part_restarts.labels("envoy").inc()
        await self._parts["envoy"].restart()

    async def _shut_down(self) -> None:
        """Accept no more requests, finish active ones, then stop the parts stage by stage."""
        self._logger.info("stopping")
        if self._failure is None:
            await self._drain()
        for stage in sorted({one.stage for one in self._specs.values()}):
            async with asyncio.TaskGroup() as stopping:
                for name, part in self._parts.items():
                    if self._specs[name].stage == stage:
                        stopping.create_task(part.stop(at_once=self._failure is not None))
        self._logger.info("stopped")

    async def _drain(self) -> None:
        admin = envoy_admin(self._run.settings)
        if not self._parts["envoy"].is_running:
            return
        status, _ = await probes.ask_http(admin, "/drain_listeners", method="POST")
        if status == 200:
            await self._end_of_requests()

    async def _end_of_requests(self) -> None:
        """Return once none is active, or `DRAIN_SECONDS` have passed."""
        admin = envoy_admin(self._run.settings)
        try:
            async with asyncio.timeout(DRAIN_SECONDS):
                while await probes.active_requests(admin):  # noqa: ASYNC110 - Envoy tells of no event
                    await asyncio.sleep(POLL_SECONDS)
        except TimeoutError:
            self._logger.warning("active requests were cut off", after_seconds=DRAIN_SECONDS)
