"""The packaged small chat model behind its own server, in a process of its own."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

SMALL_MODEL = "smollm2-135m-instruct"
START_SECONDS_MAX = 60.0


@contextmanager
def running_small_model() -> Iterator[str]:
    """Its base URL, once it answers."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    code = f"from extproc.supervisor.local_model import serve; serve('127.0.0.1', {port})"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + START_SECONDS_MAX
        while not _is_healthy(f"http://127.0.0.1:{port}/health"):
            assert process.poll() is None
            assert time.monotonic() < deadline, "the small model did not come up"
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.kill()
        process.wait()


def _is_healthy(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=1) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False
