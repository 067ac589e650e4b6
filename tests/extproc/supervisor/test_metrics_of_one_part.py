"""A part that runs alone, as in a container, shows its own metrics where it is told to, and nowhere else."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from extproc.supervisor.locks_and_ports import reserve_port
from memory.settings.loader import from_process

MEMPROXY = str(Path(sys.executable).with_name("memproxy"))


@pytest.mark.full("starts parts one by one")
@pytest.mark.parametrize("is_shown", [True, False])
def test_a_part_alone_shows_its_metrics_where_it_is_told_to(tmp_path: Path, *, is_shown: bool) -> None:
    with reserve_port("127.0.0.1", 0, setting="metrics_port") as reserved:
        port = reserved.getsockname()[1]
        environment = {
            "PATH": os.defpath,
            "MEMPROXY_DATA_DIR": str(tmp_path),
            "MEMPROXY_MODELS_DIR": str(from_process(None, {}).models_path),  # else it would make them ready first
            "MEMPROXY_RUN_DIR": str(tmp_path),
            "MEMPROXY_MILVUS_URI": "http://127.0.0.1:9",
            "MEMPROXY_METRICS_PORT": str(port),
        }
        if is_shown:
            environment["MEMPROXY_METRICS_HOST"] = "127.0.0.1"
        worker = subprocess.Popen([MEMPROXY, "worker"], env=environment, stderr=subprocess.DEVNULL)
        try:
            page = shown(port, seconds=30 if is_shown else 6)
        finally:
            worker.terminate()
            worker.wait(20)
    assert ("memproxy_turns" in page) is is_shown


def shown(port: int, *, seconds: float) -> str:
    """The page with a worker's metrics; what came last when none does in time."""
    deadline, page = time.monotonic() + seconds, ""
    while time.monotonic() < deadline and "memproxy_turns" not in page:
        try:
            page = httpx.get(f"http://127.0.0.1:{port}/metrics").text
        except httpx.TransportError:
            time.sleep(0.2)
    return page
