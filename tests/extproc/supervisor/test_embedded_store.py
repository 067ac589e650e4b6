"""The embedded store as a process: what its signal does, and what its files and its socket are to others."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

TOLD_WHILE_IT_STARTS = """
import os, signal, sys
from pathlib import Path
from extproc.supervisor import milvus_lite

start = milvus_lite.start_server_in_thread

def started(*words, **named):
    os.kill(os.getpid(), signal.SIGINT)
    running = start(*words, **named)
    print(oct(Path(sys.argv[2]).stat().st_mode & 0o077))
    return running

milvus_lite.start_server_in_thread = started
milvus_lite.serve(Path(sys.argv[1]), f"unix:{sys.argv[2]}")
"""


def test_a_store_that_is_told_to_stop_while_it_starts_closes_its_files_and_is_never_open_to_others(
    tmp_path: Path,
) -> None:
    data, path = tmp_path / "milvus", tmp_path / "milvus.sock"
    words = [sys.executable, "-c", TOLD_WHILE_IT_STARTS, str(data), str(path)]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    assert (ended.returncode, ended.stdout) == (0, "0o0\n"), ended.stderr
    made = [*data.rglob("*")]
    assert made
    assert not [one for one in made if stat.S_IMODE(one.stat().st_mode) & 0o077]


def test_a_store_that_cannot_listen_says_so(tmp_path: Path) -> None:
    memproxy = str(Path(sys.executable).with_name("memproxy"))
    words = [memproxy, "milvus-lite", "server", "--data-dir", str(tmp_path / "m"), "--address", f"unix:{tmp_path}/a/b"]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode != 0
    assert "cannot listen on" in ended.stderr
    assert "Traceback" not in ended.stderr
