"""Claims the resources of one run: its data directory, a folder for sockets, its ports.

Claims are held by the kernel (a file lock, a bound socket), so that they end with the process in any case: numbers in
files are never used to decide who is alive. Nothing is ever deleted from a data directory.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memory.errors import MemproxyError

RUN_FOLDER_PREFIX = "memproxy-"
SOCKET_PATH_BYTES_MAX = 100  # of a Unix socket's path; the kernel takes 107
LONGEST_SOCKET_NAME = len("/memproxy-xxxxxxxx/filter-99.sock")
ORPHAN_WAIT_SECONDS = 10.0  # children of a killed supervisor end within milliseconds; a busy disk takes longer


class CannotStart(MemproxyError):
    """The start is not possible. The message says what was expected, what came, and what to do."""


@contextmanager
def data_directory(path: Path) -> Iterator[Path]:
    """Create `path` (0700) if needed and lock it for this process. Raises `CannotStart` if another process has it."""
    lock = path / "up.lock"
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise CannotStart(
            f"data_dir {path} cannot be used: {error.strerror}. Give another one with --data-dir"
        ) from error
    try:
        if not _could_lock(descriptor):
            raise CannotStart(
                f"data_dir {path} is in use by another `memproxy up` or `memproxy reembed` (pid "
                f"{_named_in(descriptor) or 'unknown'}): stop that one, or give this one a directory of its own with "
                "--data-dir"
            )
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield path
    finally:
        os.close(descriptor)


def owner_of(data_dir: Path) -> int:
    """The process id of the `up` that has locked this directory; 0 if none has, or it is unknown."""
    try:
        descriptor = os.open(data_dir / "up.lock", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return 0
    try:
        shown = "" if _could_lock(descriptor) else _named_in(descriptor)
    finally:
        os.close(descriptor)
    return int(shown) if shown.isdigit() else 0


def _could_lock(descriptor: int) -> bool:
    """Lock it; False if another process has the lock."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _named_in(lock: int) -> str:
    return os.pread(lock, 32, 0).decode("ascii", "replace").strip()


def wait_for_lock(lock: Path, *, seconds: float = ORPHAN_WAIT_SECONDS) -> None:
    """Return once nobody holds the file lock at `lock`: a child of the last run may take a moment to end.

    Blocks, since nothing has been started yet. Raises `CannotStart` after `seconds`.
    """
    if not lock.exists():
        return
    descriptor = os.open(lock, os.O_RDWR | os.O_CLOEXEC)
    deadline = time.monotonic() + seconds
    try:
        while not _could_lock(descriptor):
            if time.monotonic() > deadline:
                raise CannotStart(
                    f"{lock} is held by another process, probably a Milvus Lite server started by hand on the same "
                    "folder: stop it (`fuser` names it), or give another --data-dir"
                )
            time.sleep(0.05)
    finally:
        os.close(descriptor)


@contextmanager
def run_folder() -> Iterator[Path]:
    """A new short 0700 folder for sockets and files of this run; deleted at the end, as are folders of dead runs.

    The folder itself is locked too: what cleans /tmp by age (systemd-tmpfiles) leaves such a folder alone.
    """
    root = _short_root()
    _remove_stale(root)
    folder = Path(tempfile.mkdtemp(prefix=RUN_FOLDER_PREFIX, dir=root))
    fresh = folder / "lock.new"
    descriptor = os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    kept = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        fcntl.flock(kept, fcntl.LOCK_SH)
        fresh.rename(folder / "lock")  # from now on others may treat the folder as in use or stale
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(kept)
        os.close(descriptor)


def _short_root() -> Path:
    root = Path(tempfile.gettempdir())
    is_short = len(os.fsencode(root)) + LONGEST_SOCKET_NAME <= SOCKET_PATH_BYTES_MAX
    return root if is_short else Path("/tmp")  # noqa: S108 - a name of ours is drawn in it, with mode 0700


def _remove_stale(root: Path) -> None:
    for folder in root.glob(f"{RUN_FOLDER_PREFIX}*"):
        try:
            is_ours = folder.lstat().st_uid == os.getuid() and not folder.is_symlink()
            descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CLOEXEC) if is_ours else -1
        except OSError:
            continue  # deleted meanwhile, or not (yet) a run's folder
        if descriptor < 0:
            continue
        try:
            if _could_lock(descriptor):  # else its run is alive
                shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(descriptor)


def reserve_port(host: str, port: int, *, setting: str) -> socket.socket:
    """Reserve a port for one of our parts: bound, but not listening. Port 0 selects a free one.

    The part binds the same port with SO_REUSEADDR and listens; meanwhile no other process can get it, at start or
    during a restart. Keep the socket until the part has stopped. Raises `CannotStart` if somebody else listens there.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        reserved = socket.socket(family, kind, protocol)
    except OSError as error:
        raise CannotStart(
            f"{setting}: {host} is not an address of this machine: {error.strerror}. Give one that is"
        ) from error
    try:
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reserved.bind(address)
    except OSError as error:
        reserved.close()
        if error.errno == errno.EADDRNOTAVAIL:
            raise CannotStart(f"{setting}: {host} is not an address of this machine. Give one that is") from error
        raise CannotStart(
            f"{setting}: cannot bind {host}:{port}: {error.strerror}. Give another port, or 0 for any free one"
        ) from error
    return reserved
