"""A real Milvus 2.3 standalone server on loopback, installed by `make milvusserver`; stopped and killed by tests.

It has tokens switched on and is served twice, plain and with TLS. One start takes 5 s and 1 GB of memory, hence one for
all tests that do not break it: all of them run in one process.
"""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc
import pytest
from milvus_lite_server import RealMilvus
from pymilvus.grpc_gen import milvus_pb2
from served_app import free_port

from memory.adapters.milvus.connection import MilvusAccess

MILVUS_SERVER = "Milvus server"  # how parameters of tests name it
SERVER_IN_SOAK = "a Milvus server takes a gigabyte and both cores"
INSTALLED = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "memproxy" / "milvus-server-2.3.5"  # noqa: TID251 - the convention for caches
SUPPORT = Path(__file__).parent
TLS = SUPPORT.parent / "data" / "tls"
TOKEN = "root:Milvus"  # the server's own at its first start
CERTIFICATE = TLS / "localhost.pem"
START_SECONDS_MAX = 180.0
CALL_SECONDS = 2.0
LEASE_SECONDS = 60  # a server that is not run for longer gives up its place, and ends itself
CANNOT_ISOLATE = 3  # as in milvus_standalone_relay.py


class MilvusServer(RealMilvus):
    """`start` may be called again after `kill`: same port, same data; it takes its place back after `lease_seconds`."""

    access = MilvusAccess(token=TOKEN)

    def __init__(self, folder: Path, *, lease_seconds: int = LEASE_SECONDS) -> None:
        super().__init__()
        self._folder = folder
        self._lease_seconds = lease_seconds
        self.tls_port = free_port()

    @property
    def tls_uri(self) -> str:
        return f"https://localhost:{self.tls_port}"

    def start(self) -> None:
        """Skips the test, saying why, where the server is not installed or cannot be isolated."""
        if not (INSTALLED / "complete").is_file():
            pytest.skip(f"NO MILVUS SERVER in {INSTALLED}: `make milvusserver` installs it")
        self._spawn()
        deadline = time.monotonic() + START_SECONDS_MAX
        while not self._answers():
            assert self._process is not None
            if self._process.poll() == CANNOT_ISOLATE:
                pytest.skip("NO MILVUS SERVER: it listens on all interfaces, and this machine forbids `unshare --net`")
            assert self._process.poll() is None, self._last_words()
            assert time.monotonic() < deadline, f"no answer within {START_SECONDS_MAX:.0f} s\n{self._last_words()}"
            time.sleep(0.2)

    def kill(self) -> None:
        """It and what serves it, by SIGKILL; returns once neither is left."""
        if self._process is None:
            return
        server = self.pid
        self._process.kill()
        self._process.wait()
        while server and _runs(server):
            time.sleep(0.02)
        self._process = None

    def freeze(self) -> None:
        """Returns once none of its threads runs: on a busy machine one may still answer after the signal."""
        server = self.pid
        os.kill(server, signal.SIGSTOP)
        while not _stands_still(server):
            time.sleep(0.01)

    def thaw(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    @contextmanager
    def configured(self, folder: Path, collection: str) -> Iterator[Path]:
        """A file of settings for a product on this server; the token is in the environment meanwhile."""
        file = folder / "memproxy.yaml"
        file.write_text(json.dumps({"milvus_uri": self.uri, "memory": {"milvus": {"collection": collection}}}))
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("MEMPROXY_MEMORY_MILVUS_TOKEN", TOKEN)
            yield file

    def _spawn(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        (self._folder / "server.pid").unlink(missing_ok=True)
        words = [INSTALLED / "venv" / "bin" / "python", SUPPORT / "milvus_standalone_relay.py", "--with-tokens"]
        words += ["--binaries", INSTALLED / "bin", "--folder", self._folder]
        words += ["--lease-seconds", str(self._lease_seconds)]
        words += ["--port", str(self.port), "--tls-port", str(self.tls_port)]
        words += ["--certificate", CERTIFICATE, "--key", TLS / "key.pem"]
        with (self._folder / "relay.log").open("ab") as log:
            self._process = subprocess.Popen(words, stdout=log, stderr=log)

    def _answers(self) -> bool:
        """Whether it does what a call needs: while it starts, its own parts do not find each other yet."""
        credentials = base64.b64encode(TOKEN.encode()).decode()
        with grpc.insecure_channel(f"127.0.0.1:{self.port}") as channel:
            list_collections = channel.unary_unary("/milvus.proto.milvus.MilvusService/ShowCollections")
            try:
                answer = list_collections(b"", timeout=CALL_SECONDS, metadata=[("authorization", credentials)])
            except grpc.RpcError:
                return False
        return milvus_pb2.ShowCollectionsResponse.FromString(answer).status.code == 0

    @property
    def pid(self) -> int:
        """Of the server itself; 0 before it has begun."""
        try:
            return int((self._folder / "server.pid").read_text())
        except (OSError, ValueError):
            return 0

    def _last_words(self) -> str:
        logs = [self._folder / "relay.log", self._folder / "logs" / "server.log"]
        return "\n".join(log.read_text(errors="replace")[-2_000:] for log in logs if log.is_file())


def _stands_still(pid: int) -> bool:
    return all("State:\tT" in (thread / "status").read_text() for thread in Path(f"/proc/{pid}/task").iterdir())


def _runs(pid: int) -> bool:
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
