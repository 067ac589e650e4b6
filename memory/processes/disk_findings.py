"""The doctor's check of the folders that must survive: writable, on a local disk, and with free space."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from memory.processes.findings import Finding, Level
from memory.settings import Settings

NAME = "data directory"
FREE_BYTES_LOW = 2 << 30
FREE_BYTES_MIN = 200 << 20
MOUNTS = Path("/proc/self/mounts")
IN_MEMORY = frozenset(("tmpfs", "ramfs"))
NETWORK = frozenset(
    ("nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs", "lustre", "fuse.sshfs", "fuse.glusterfs")
)


def data_directory_finding(settings: Settings) -> Finding:
    """The turn log's folder, and below it that of the embedded Milvus Lite. Raises `OSError` for neither."""
    folder = settings.turn_log_path.parent
    if not folder.exists():
        return Finding(NAME, Level.WARN, f"{folder} does not exist", "the first `memproxy up` creates it")
    if not folder.is_dir():
        return Finding(NAME, Level.FAIL, f"{folder} is a file", "name a folder in data_dir")
    store = folder / "milvus"
    for one in (folder, store) if store.is_dir() else (folder,):
        try:
            with tempfile.TemporaryFile(dir=one):
                free = shutil.disk_usage(one).free
        except OSError as error:
            return Finding(NAME, Level.FAIL, f"{one}: {error.strerror}", "make it writable for the user who runs us")
    says = f"{folder}, {free / (1 << 30):.1f} GiB free"
    if free < FREE_BYTES_LOW:
        level = Level.FAIL if free < FREE_BYTES_MIN else Level.WARN
        return Finding(NAME, level, says, "free space: turns are lost when it is full")
    return _kept(folder, says)


def _kept(folder: Path, says: str) -> Finding:
    """Whether that file system keeps what is written."""
    try:
        kind = file_system_of(folder.resolve(), MOUNTS.read_text(encoding="utf-8", errors="replace"))
    except OSError:  # not Linux: nothing is known
        return Finding(NAME, Level.OK, says)
    if kind in NETWORK:
        advice = "name a local disk in data_dir: locks and shared memory of SQLite do not work over a network"
        return Finding(NAME, Level.FAIL, f"{says}, on the network file system {kind}", advice)
    if kind in IN_MEMORY:
        advice = "name a disk in data_dir: turns and memories are gone when this machine, or container, restarts"
        return Finding(NAME, Level.WARN, f"{says}, in memory ({kind})", advice)
    return Finding(NAME, Level.OK, says)


def file_system_of(folder: Path, mounts: str) -> str:
    """The type of the file system that holds the folder, by the lines of /proc/self/mounts; "" if none does.

    Of several at one point the last counts.
    """
    depth, found = 0, ""
    for line in mounts.splitlines():
        _, point, kind, *_ = [*line.split(" "), "", "", ""]
        path = Path(point.replace("\\040", " "))
        if path.is_absolute() and folder.is_relative_to(path) and len(path.parts) >= depth:
            depth, found = len(path.parts), kind
    return found


__all__ = ["data_directory_finding", "file_system_of"]
