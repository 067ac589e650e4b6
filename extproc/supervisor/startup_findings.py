"""The doctor's checks of `memproxy up`: what a running one runs, free ports, and a configuration that Envoy takes."""

from __future__ import annotations

import asyncio
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from extproc.supervisor.bootstrap import EnvoyPlan, render
from extproc.supervisor.locks_and_ports import CannotStart, owner_of, reserve_port
from extproc.supervisor.process_specs import LOOPBACK, program
from extproc.supervisor.rolling_restart import restart_state
from memory.errors import BadInput
from memory.processes.findings import Finding, Level
from memory.runtime.release import RUNNING, Release
from memory.settings import Settings

VALIDATION_SECONDS_MAX = 20.0
MESSAGE_CHARACTERS_MAX = 400
PROC = Path("/proc")
_LISTENS = "0A"  # the state in /proc/net/tcp
_TABLES = ("net/tcp", "net/tcp6")


async def startup_findings(settings: Settings) -> list[Finding]:
    """Never raises for what can be wrong with a machine or a setting."""
    return [
        await asyncio.to_thread(up_finding, settings, RUNNING),
        await asyncio.to_thread(ports_finding, settings),
        await asyncio.to_thread(envoy_finding, settings),
    ]


def up_finding(settings: Settings, installed: Release) -> Finding:
    """Whether an `up` runs here, and is of the release that is installed. Its parts are asked elsewhere."""
    name, folder = "memproxy up", Path(settings.data_dir)
    owner, state = owner_of(folder), restart_state(folder)
    if not owner:
        return Finding(name, Level.OK, f"none runs on {folder}")
    if state is None or state.pid != owner:
        return Finding(name, Level.OK, f"pid {owner} has {folder}, and is not ready: it starts, or is another command")
    if state.release.differs_from(installed):
        says = f"pid {owner} runs {state.release}; {installed} is installed"
        advice = "stop it and start it again when chats can wait: `memproxy restart` renews its parts only"
        return Finding(name, Level.WARN, says, advice)
    return Finding(name, Level.OK, f"pid {owner} runs {state.release}")


def ports_finding(settings: Settings) -> Finding:
    """Whether the ports are free, or in use by the `up` of this data directory."""
    if owner := owner_of(Path(settings.data_dir)):
        return Finding("ports", Level.OK, f"`memproxy up` (pid {owner}) runs on {settings.data_dir} and has them")
    wanted = {
        "port": (settings.host, settings.port),
        "api_port": (settings.api_host, settings.api_port),
        "metrics_port": (settings.metrics_host or LOOPBACK, settings.metrics_port),
    }
    given = {"envoy_admin_port": settings.envoy_admin_port, "milvus_port": settings.milvus_port}
    wanted |= {name: (LOOPBACK, port) for name, port in given.items() if port is not None}
    counts = Counter(port for _, port in wanted.values() if port)
    problems = [f"{name} {port} is given twice" for name, (_, port) in wanted.items() if counts[port] > 1]
    for setting, (host, port) in wanted.items():
        try:
            reserve_port(host, port, setting=setting).close()
        except CannotStart as error:
            user = listener_of(port)
            problems.append(f"{error}" + (f" ({user} listens there)" if user else ""))
    if problems:
        return Finding("ports", Level.FAIL, "; ".join(problems), "stop what listens there, or give other ports")
    named = ", ".join(f"{name} {port or 'any'}" for name, (_, port) in wanted.items())
    return Finding("ports", Level.OK, f"free: {named}")


def listener_of(port: int) -> str:
    """The name and id of a process that listens on that port; "" if none is found, or it belongs to another user."""
    sockets = {f"socket:[{inode}]" for inode in _listening_inodes(port)}
    for folder in PROC.glob("[0-9]*/fd") if sockets else ():
        with suppress(OSError):  # it ended meanwhile, or is not ours to look at
            if any(str(one.readlink()) in sockets for one in folder.iterdir()):
                name = (folder.parent / "comm").read_text(encoding="utf-8", errors="replace").strip()
                return f"{name}, pid {folder.parent.name},"
    return ""


def _listening_inodes(port: int) -> Iterator[str]:
    for table in _TABLES:
        with suppress(OSError):
            for line in (PROC / table).read_text(encoding="ascii").splitlines()[1:]:
                _, local, _, state, *others = line.split()
                if state == _LISTENS and int(local.rpartition(":")[2], 16) == port:
                    yield others[5]


def envoy_finding(settings: Settings) -> Finding:
    """Whether Envoy accepts the configuration that we would start it with."""
    name = "envoy"
    try:
        path = program(name)
        configuration = render(EnvoyPlan(_as_in_a_run(settings), (Path("/run/filter-0.sock"),)))
    except (BadInput, CannotStart) as error:
        return Finding(name, Level.FAIL, str(error), "correct what it names, then start again")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "envoy.json"
        file.write_bytes(configuration)
        words = ("--mode", "validate", "-c", str(file), "--log-level", "error")
        try:
            done = subprocess.run((path, *words), capture_output=True, check=False, timeout=VALIDATION_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            says = f"it did not validate its configuration within {VALIDATION_SECONDS_MAX:.0f} s"
            return Finding(name, Level.FAIL, says, "check the load of the machine")
    if done.returncode:
        says = f"it refuses its configuration: {_reason(done.stderr)}"
        advice = "correct the setting that it is about: host, upstream, jwt, trusted_peers"
        return Finding(name, Level.FAIL, says, advice)
    return Finding(name, Level.OK, f"{path} accepts its configuration")


def _as_in_a_run(settings: Settings) -> Settings:
    """Any port, upstream and folder where the run would choose one."""
    return msgspec.structs.replace(
        settings,
        upstream=settings.upstream or f"http://{LOOPBACK}:8000",
        port=settings.port or 8080,
        api_port=settings.api_port or 8081,
        envoy_admin_port=settings.envoy_admin_port or None,  # of its socket, if any is to be chosen
        run_dir=settings.run_dir or "/run",
    )


def _reason(errors: bytes) -> str:
    """The last line that Envoy wrote, without time, place and file."""
    lines = [line for line in errors.decode("utf-8", "replace").splitlines() if line.strip()]
    last = lines[-1] if lines else "without a word"
    return (last.partition("': ")[2] or last)[:MESSAGE_CHARACTERS_MAX]
