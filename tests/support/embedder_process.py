"""Our embedding process with the real model, in a folder of its own; stopped, continued and killed by tests.

Run as a program it is that process: `embedder_process.py FOLDER`.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from pathlib import Path

from prometheus_client import CollectorRegistry

from memory.adapters.embedding_model import PACKAGED_MODEL
from memory.adapters.embeddings import EmbeddingServer, OpenAiEmbedder
from memory.embedder import serve
from memory.metrics import Metrics
from memory.settings import Settings

START_SECONDS_MAX = 90.0  # the first start exports the model
PATIENT_SECONDS = 20.0  # of a question: what its tests measure is not speed
DIMENSION = 384


class EmbedderProcess:
    """`start` may be called again after `kill`: same socket."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._settings = settings_in(folder)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def endpoint(self) -> str:
        return f"unix:{self._settings.embedder_socket}"

    def client(self, *, cache_texts: int = 64) -> OpenAiEmbedder:
        """One that waits for it however busy the machine is."""
        server = EmbeddingServer(
            self.endpoint, PACKAGED_MODEL, DIMENSION, urgent_seconds=PATIENT_SECONDS, cache_texts=cache_texts
        )
        return OpenAiEmbedder(server, metrics=Metrics(CollectorRegistry()))

    def start(self) -> None:
        with (self._folder / "embedder.log").open("ab") as log:
            self._process = subprocess.Popen([sys.executable, __file__, str(self._folder)], stdout=log, stderr=log)
        deadline = time.monotonic() + START_SECONDS_MAX
        while not self._settings.embedder_socket.is_socket():
            assert self._process.poll() is None, (self._folder / "embedder.log").read_text()[-2_000:]
            assert time.monotonic() < deadline, "the embedder did not come up"
            time.sleep(0.05)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._settings.embedder_socket.unlink(missing_ok=True)


def settings_in(folder: Path) -> Settings:
    return Settings(data_dir=str(folder), run_dir=str(folder))


if __name__ == "__main__":
    asyncio.run(serve(settings_in(Path(sys.argv[1])), metrics=Metrics(CollectorRegistry()), until=asyncio.Event()))
