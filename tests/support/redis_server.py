"""A real Redis server on a free loopback port, one per test process, that keeps every write as a deployment should."""

from __future__ import annotations

import atexit
import shutil
import socket
import subprocess
import tempfile
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from redis import Redis
from redis.exceptions import RedisError

READY_SECONDS = 20.0


@dataclass(slots=True)
class RedisServer:
    """A server that can be killed and started again on the same files."""

    port: int
    folder: Path
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder)]
        durable = ["--appendonly", "yes", "--appendfsync", "always", "--save", ""]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen([*command, *durable], stdout=log, stderr=log)
        deadline = time.monotonic() + READY_SECONDS
        while not self._answers():
            assert time.monotonic() < deadline, f"redis-server does not answer: {self.folder / 'log'}"
            time.sleep(0.02)

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def empty(self) -> None:
        with Redis(port=self.port) as client:
            client.flushall()

    def _answers(self) -> bool:
        try:
            with Redis(port=self.port) as client:
                return bool(client.ping())
        except RedisError:
            return False


@cache
def redis_server() -> RedisServer:
    """The server of this test process. Skips the test where no `redis-server` is installed."""
    if shutil.which("redis-server") is None:
        pytest.skip("NOT TESTED ON REDIS: there is no redis-server here (Debian: apt-get install redis-server)")
    folder = Path(tempfile.mkdtemp(prefix="memproxy-redis-"))
    server = RedisServer(_free_port(), folder)
    server.start()

    def stop() -> None:
        server.kill()
        shutil.rmtree(folder, ignore_errors=True)

    atexit.register(stop)
    return server


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
