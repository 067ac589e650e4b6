"""A real Redis Cluster of several nodes on free loopback ports: three masters, and a replica of each where one is to
take over.
"""

from __future__ import annotations

import atexit
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from certificates import Certificates
from redis.crc import key_slot
from redis_server import READY_SECONDS, RedisServer, skip_without_redis
from served_app import free_port

MASTERS = 3
NODE_TIMEOUT_MS = 15_000  # Redis's own default: a busy machine is no failure
FAILOVER_TIMEOUT_MS = 1_000  # where a replica is to take over within seconds


class RedisNodes:
    """The first servers are the masters, in the order of their slots, until one fails."""

    def __init__(
        self,
        folder: Path,
        *,
        replicas: int = 0,
        certificates: Certificates | None = None,
        timeout_ms: int = NODE_TIMEOUT_MS,
    ) -> None:
        self.folder = folder
        self._replicas, self._certificates = replicas, certificates
        self.servers = [self._node(number, timeout_ms) for number in range(MASTERS * (1 + replicas))]

    def _node(self, number: int, timeout_ms: int) -> RedisServer:
        folder = self.folder / f"node-{number}"
        folder.mkdir()
        bus = free_port()
        options = ["--cluster-enabled", "yes", "--cluster-port", str(bus), "--cluster-node-timeout", str(timeout_ms)]
        quick = ["--repl-diskless-sync-delay", "0", "--cluster-replica-validity-factor", "0"]
        tls = ["--tls-cluster", "yes", "--tls-replication", "yes"] if self._certificates else []
        return RedisServer(free_port(), folder, (*options, *quick, *tls), certificates=self._certificates)

    def start(self) -> None:
        """The servers, and then the cluster."""
        for server in self.servers:
            server.start()
        addresses = [f"127.0.0.1:{server.port}@{server.options[3]}" for server in self.servers]
        creating = ["redis-cli", *self._trust(), "--cluster", "create", *addresses]
        options = ["--cluster-replicas", str(self._replicas), "--cluster-yes"]
        created = subprocess.run([*creating, *options], capture_output=True, text=True, timeout=60, check=False)
        assert created.returncode == 0, created.stdout + created.stderr
        self.wait_ready()

    def wait_ready(self) -> None:
        """Each server serves all slots; a replica has what its master has."""
        wait_until(lambda: all(map(_is_ready, self.servers)), "the cluster is ready")

    def _trust(self) -> list[str]:
        return ["--tls", "--cacert", str(self._certificates.authority)] if self._certificates else []

    @property
    def port(self) -> int:
        return self.servers[0].port

    @property
    def url(self) -> str:
        """For the setting `redis_url`."""
        return self.servers[0].url.replace("://", "+cluster://", 1)

    def masters(self) -> list[RedisServer]:
        return [server for server in self.servers if server.is_running and _role(server) == "master"]

    def master_of(self, key: str, *, asked: RedisServer | None = None) -> RedisServer:
        """As one of the nodes knows it."""
        slot = key_slot(key.encode())
        node = asked or next(server for server in self.servers if server.is_running)
        with node.client() as client:
            slots = client.execute_command("CLUSTER", "SLOTS")
        (port,) = (port for first, last, (_, port, *_), *_ in slots if first <= slot <= last)
        return next(server for server in self.servers if server.port == port)

    def empty(self) -> None:
        for server in self.masters():
            server.empty()

    def keys_with(self, text: str) -> list[str]:
        """That have it in their name or in what they hold."""
        return sorted(key for server in self.masters() for key in server.keys_with(text))

    def kill(self) -> None:
        for server in self.servers:
            if server.is_running:
                server.kill()


def wait_until(is_so: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while not is_so():
        assert time.monotonic() < deadline, f"within {READY_SECONDS:.0f} s: {what}"
        time.sleep(0.05)


def _role(server: RedisServer) -> str:
    with server.client() as client:
        return str(client.info("replication")["role"])


def _is_ready(server: RedisServer) -> bool:
    with server.client() as client:
        is_linked = client.info("replication").get("master_link_status", "up") == "up"
        return is_linked and b"cluster_state:ok" in client.execute_command("CLUSTER", "INFO")


@cache
def redis_nodes() -> RedisNodes:
    """The cluster of this test process, without replicas. Skips the test where no `redis-server` is installed."""
    skip_without_redis()
    folder = Path(tempfile.mkdtemp(prefix="memproxy-redis-nodes-"))
    nodes = RedisNodes(folder)
    nodes.start()

    def stop() -> None:
        nodes.kill()
        shutil.rmtree(folder, ignore_errors=True)

    atexit.register(stop)
    return nodes


@contextmanager
def own_redis_nodes(folder: Path, *, certificates: Certificates | None = None) -> Iterator[RedisNodes]:
    """A cluster for one test, without replicas."""
    skip_without_redis()
    yield from _started(RedisNodes(folder, certificates=certificates))


@contextmanager
def replicated_redis_nodes(folder: Path) -> Iterator[RedisNodes]:
    """A cluster for one test, in which a replica takes over within seconds."""
    skip_without_redis()
    yield from _started(RedisNodes(folder, replicas=1, timeout_ms=FAILOVER_TIMEOUT_MS))


def _started(nodes: RedisNodes) -> Iterator[RedisNodes]:
    try:
        nodes.start()
        yield nodes
    finally:
        nodes.kill()
