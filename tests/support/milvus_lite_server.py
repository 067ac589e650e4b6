"""A real `milvus-lite server` process on a free port of the loopback, to be stopped, continued and killed by tests."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from pymilvus import MilvusClient
from served_app import free_port

from memory.adapters.milvus.connection import CHANNEL_OPTIONS, MilvusAccess, MilvusAddress
from memory.model import VectorOrigin

START_SECONDS_MAX = 30.0


class RealMilvus:
    """A server in a process of its own. `access`: with what its clients come."""

    access = MilvusAccess()

    def __init__(self) -> None:
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def uri(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def address(self, collection: str, dimension: int, origin: VectorOrigin | None = None) -> MilvusAddress:
        return MilvusAddress(self.uri, collection, dimension, origin=origin, access=self.access)

    def client(self) -> MilvusClient:
        """A busy machine is slow to connect."""
        return MilvusClient(self.uri, token=self.access.token, timeout=60, grpc_options=CHANNEL_OPTIONS)


class MilvusLiteServer(RealMilvus):
    """`start` may be called again after `kill`: same port, same data."""

    def __init__(self, data_dir: Path) -> None:
        super().__init__()
        self._data_dir = data_dir

    def start(self) -> None:
        words = [str(Path(sys.executable).parent / "memproxy"), "milvus-lite", "server"]
        words += ["--data-dir", str(self._data_dir), "--address", f"127.0.0.1:{self.port}"]
        with (self._data_dir.parent / "milvus-lite.log").open("ab") as log:
            self._process = subprocess.Popen(words, stdout=log, stderr=log)
        deadline = time.monotonic() + START_SECONDS_MAX
        while time.monotonic() < deadline:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.05)
        raise AssertionError(f"milvus-lite server did not start on port {self.port}")

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def freeze(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)
