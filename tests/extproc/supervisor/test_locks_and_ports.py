"""What one run claims: a data directory, a short folder, ports; each held by the kernel, none by a number in a file."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from extproc.supervisor import locks_and_ports
from extproc.supervisor.locks_and_ports import CannotStart, data_directory, reserve_port, run_folder, wait_for_lock
from extproc.supervisor.supervisor import claimed
from memory.settings import Settings

NOBODY = "http://127.0.0.1:9"  # nothing answers there, and nothing has to
HOLDER = """
import sys, time
from pathlib import Path
from extproc.supervisor.locks_and_ports import data_directory, run_folder
with data_directory(Path(sys.argv[1])), run_folder() as folder:
    print(folder, flush=True)
    time.sleep(600)
"""


@contextmanager
def held(folder: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """Another process that has claimed `folder`, and the run folder that it made."""
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(folder)], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        run = Path(holder.stdout.readline().strip())
        try:
            yield holder, run
        finally:
            holder.kill()
            shutil.rmtree(run, ignore_errors=True)


def test_a_data_directory_is_made_private_and_belongs_to_one_run_at_a_time(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "data"
    with held(folder) as (holder, _):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        with pytest.raises(CannotStart, match=f"pid {holder.pid}.*--data-dir"), data_directory(folder):
            pass
    with data_directory(folder):  # the claim of a killed process is nobody's
        pass


def test_a_data_directory_that_cannot_be_one_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", Path("/proc/nope"), Path("/proc/nope/deeper")):
        with pytest.raises(CannotStart, match=f"data_dir {folder} cannot be used.*--data-dir"), data_directory(folder):
            pass


def test_the_run_folder_is_short_private_and_gone_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the temporary folder is too long for sockets."""
    long = tmp_path / ("x" * 90)
    long.mkdir()
    for temporary in (None, str(long)):
        monkeypatch.setattr(locks_and_ports.tempfile, "tempdir", temporary)
        with run_folder() as folder:
            assert stat.S_IMODE(folder.stat().st_mode) == 0o700
            assert len(os.fsencode(folder / "filter-99.sock")) <= locks_and_ports.SOCKET_PATH_BYTES_MAX
            descriptor = os.open(folder, os.O_RDONLY)
            with pytest.raises(BlockingIOError):  # so that what cleans by age leaves it alone
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.close(descriptor)
        assert not folder.exists()


def test_the_folder_of_a_dead_run_is_cleaned_up_and_that_of_a_living_one_is_not(tmp_path: Path) -> None:
    with held(tmp_path / "one") as (_, living_folder), held(tmp_path / "two") as (dead, dead_folder):
        dead.kill()
        dead.wait()
        assert dead_folder.is_dir()
        with run_folder():
            assert not dead_folder.exists()
            assert living_folder.is_dir()


def test_a_lock_that_is_still_held_is_waited_for_and_then_complained_about(tmp_path: Path) -> None:
    lock = tmp_path / "LOCK"
    wait_for_lock(lock, seconds=0)  # nothing there: nobody to wait for
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    with pytest.raises(CannotStart, match="held by another process"):
        wait_for_lock(lock, seconds=0.1)
    signal.signal(signal.SIGALRM, lambda *_: os.close(descriptor))
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    wait_for_lock(lock, seconds=60)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)


def test_a_reserved_port_is_free_for_our_part_only() -> None:
    with reserve_port("127.0.0.1", 0, setting="port") as reserved:
        port = reserved.getsockname()[1]
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port))
        with socket.socket() as part:
            part.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            part.bind(("127.0.0.1", port))
            part.listen()
            socket.create_connection(("127.0.0.1", port)).close()
            with pytest.raises(CannotStart, match=f"metrics_port: cannot bind 127.0.0.1:{port}"):
                reserve_port("127.0.0.1", port, setting="metrics_port")


def test_an_address_of_another_machine_is_refused() -> None:
    for host in ("192.0.2.1", "no-such-host.invalid"):
        with pytest.raises(CannotStart, match=f"host: {host} is not an address of this machine") as refused:
            reserve_port(host, 0, setting="host")
        assert "port" not in str(refused.value)


@pytest.mark.parametrize("milvus_uri", ["", NOBODY])
def test_the_address_of_an_earlier_run_s_store_is_gone(tmp_path: Path, milvus_uri: str) -> None:
    """It was killed. By what it left, files of the directory would be taken for those of the server."""
    ports = dict.fromkeys(("port", "api_port", "metrics_port", "envoy_admin_port"), 0)
    settings = Settings(data_dir=str(tmp_path), milvus_uri=milvus_uri, upstream=NOBODY, **ports)
    settings.milvus_uri_file.write_text("http://127.0.0.1:19530")
    with claimed(settings) as run:
        if milvus_uri:
            assert not settings.milvus_uri_file.exists()
        else:
            assert settings.milvus_uri_file.read_text() == run.settings.milvus_uri
    assert not settings.milvus_uri_file.exists()


@pytest.mark.parametrize(("uri", "port"), [("unix:/run/milvus.sock", None), ("http://milvus.example:19531", 19531)])
def test_the_port_of_a_store_is_known_where_it_has_one(tmp_path: Path, uri: str, port: int | None) -> None:
    settings = Settings(data_dir=str(tmp_path), milvus_uri=uri, upstream=NOBODY, port=0, api_port=0, metrics_port=0)
    with claimed(settings) as run:
        assert (run.ports.milvus, run.ports.envoy_admin) == (port, None)
