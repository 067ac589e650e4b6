"""The system under test: the product, a bare Envoy for comparison, and an upstream of negligible cost.

Absolute timings on a shared machine are noise; differences are not. So every figure is compared with a bare Envoy of
the same configuration, measured alternately in the same run.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests" / "support"))  # the product as tests start it

from bare_envoy import render_bare  # noqa: E402
from product import Product, command_line, descendants, running_product  # noqa: E402

from extproc.supervisor.bootstrap import EnvoyPlan  # noqa: E402
from memory.settings import Settings  # noqa: E402

Skipped = pytest.skip.Exception  # how test support says that a server is not installed
START_SECONDS_MAX = 10.0
PARTS = {  # a word of the command line that only this part has
    "filter": "memproxy filter ",
    "worker": "memproxy worker ",
    "api": "memproxy api ",
    "milvus": "milvus-lite server ",
    "envoy": "envoy -c ",
    "supervisor": "memproxy up ",
    "postgres": "postgres",  # its children name themselves "postgres: …"; the last, since other parts are given its URL
}


@dataclass(frozen=True, slots=True)
class Rig:
    """`database_pid`: the PostgreSQL server that holds the product's state; 0 without one."""

    product: Product
    bare_port: int
    database_pid: int = 0

    @property
    def port(self) -> int:
        return self.product.ports["proxy"]

    def cpu_seconds(self) -> Counter[str]:
        """Of the product's parts, of its database server, and of this bench."""
        assert self.product.process is not None
        spent = cpu_seconds(self.product.process.pid)
        if self.database_pid:
            spent["postgres"] = cpu_seconds(self.database_pid)["postgres"]
        return spent


@contextmanager
def running_rig(*arguments: str, config: Path | None = None) -> Iterator[Rig]:
    """The product and a bare Envoy, both in front of the same upstream; everything is stopped at the end."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        upstream = stack.enter_context(running_upstream())
        bare_port = stack.enter_context(running_bare(upstream, folder))
        starting = running_product(folder / "data", *arguments, upstream=upstream, config=config, is_timed=True)
        yield Rig(stack.enter_context(starting), bare_port)


@contextmanager
def ending_plainly() -> Iterator[None]:
    """Where a server is not installed, for which tests are skipped: the reason alone, and exit code 1."""
    try:
        yield
    except Skipped as missing:
        sys.exit(str(missing))


@contextmanager
def running_bare(upstream: str, folder: Path) -> Iterator[int]:
    """An Envoy with our configuration without memory; its port."""
    port, bootstrap = free_port(), folder / "bare.json"
    settings = Settings(upstream=upstream, port=port, envoy_admin_port=free_port())
    bootstrap.write_bytes(render_bare(EnvoyPlan(settings, (folder / "none.sock",))))
    envoy = str(Path(sys.executable).parent / "envoy")
    options = ("--disable-hot-restart", "--concurrency", "2", "--log-level", "error")
    with running(envoy, "-c", str(bootstrap), *options):
        await_port(port)
        yield port


@contextmanager
def running_upstream() -> Iterator[str]:
    """Its URL."""
    port = free_port()
    with running(sys.executable, str(HERE / "upstream.py"), str(port)):
        await_port(port)
        yield f"http://127.0.0.1:{port}"


@contextmanager
def running(*command: str) -> Iterator[None]:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.terminate()
        process.wait(timeout=10)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def await_port(port: int) -> None:
    deadline = time.monotonic() + START_SECONDS_MAX
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            return


# What the parts cost


def cpu_seconds(root: int = 0) -> Counter[str]:
    """CPU time so far of each part below this process, all of its processes together, and of this bench.

    `root` 0: everything that this bench has started.
    """
    own = os.getpid()
    spent = Counter({"bench": sum(os.times()[:2])})
    for pid in ({root or own} | set(descendants(root or own))) - {own}:
        spent[part_of(command_line(pid))] += seconds_of(pid)
    return spent


def part_of(command: str) -> str:
    """Which part runs this command line; "other" for what a part started."""
    return next((part for part, word in PARTS.items() if word in command), "other")


def seconds_of(pid: int) -> float:
    """User and system time of all its threads; 0.0 once it is gone. In ticks of 10 ms: compare over seconds."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
