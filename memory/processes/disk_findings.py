"""The doctor's check of the folders that must survive: writable, on a local disk, and with free space."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from memory.processes.findings import Finding, Level
from memory.settings import Settings

NAME = "data directory"
FREE_BYTES_LOW = 2 << 30
FREE_BYTES_MIN = 200 << 20
FREE_BYTES_FULL = 1 << 20  # less than a burst of turns, or one step of SQLite's log, needs
PROBE_BYTES = 1 << 16  # what is written, and deleted at once, to see whether anything can be
IN_MEMORY = frozenset(("tmpfs", "ramfs"))
NETWORK = frozenset(
    ("nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs", "lustre", "fuse.sshfs", "fuse.glusterfs")
)
FREE_SPACE = (
    "free space, or name a larger disk in data_dir: what is said waits in the filter, and is lost when that is full or "
    "stops; learning stands still. memory.turn_log.keep_days and memory.snapshots.total_mib bound what is kept"
)
REFUSALS = {  # what to do, by what the system answers
    errno.EROFS: "mount it for writing, or name another folder in data_dir: after errors of a disk, Linux mounts it "
    "read-only (see the kernel's log)",
    errno.ENOSPC: FREE_SPACE,
    errno.EDQUOT: "raise the quota of the user who runs us, or name a folder elsewhere in data_dir",
}
RIGHTS = "make it writable for the user who runs us (`chown`, `chmod`), or name another folder in data_dir"


@dataclass(frozen=True, slots=True)
class Disk:
    """What the system says about file systems. `mounts`: the file with their types, as Linux writes it."""

    usage: Callable[[Path], os.statvfs_result] = os.statvfs
    mounts: Path = Path("/proc/self/mounts")

    def kind_of(self, folder: Path) -> str:
        """The type of its file system; "" where that is unknown, as on other systems than Linux."""
        try:
            return file_system_of(folder.resolve(), self.mounts.read_text(encoding="utf-8", errors="replace"))
        except OSError:
            return ""


def data_directory_finding(settings: Settings, disk: Disk | None = None) -> Finding:
    """The turn log's folder, and below it that of the embedded Milvus Lite. Raises `OSError` for neither."""
    folder, disk = settings.turn_log_path.parent, disk or Disk()
    if not folder.exists():
        return Finding(NAME, Level.WARN, f"{folder} does not exist", "the first `memproxy up` creates it")
    if not folder.is_dir():
        return Finding(NAME, Level.FAIL, f"{folder} is a file", "name a folder in data_dir")
    store, free = folder / "milvus", 0
    for one in (folder, store) if store.is_dir() else (folder,):
        try:
            with tempfile.TemporaryFile(dir=one, buffering=0) as file:
                file.write(b"\0" * PROBE_BYTES)
            usage = disk.usage(one)
        except OSError as error:
            says = f"{one} cannot be written: {error.strerror}"
            return Finding(NAME, Level.FAIL, says, REFUSALS.get(error.errno or 0, RIGHTS))
        free = usage.f_bavail * usage.f_frsize
        if lacking := _lacking(one, free, usage):
            return lacking
    return _kept(folder, f"{folder}, {free / (1 << 30):.1f} GiB free", disk)


def _lacking(folder: Path, free: int, usage: os.statvfs_result) -> Finding | None:
    if usage.f_files and not usage.f_favail:  # some file systems have no fixed number
        advice = "delete files: the disk has space, and no room for one more file (`df --inodes`)"
        return Finding(NAME, Level.FAIL, f"the disk of {folder} has no free inodes", advice)
    if free < FREE_BYTES_FULL:
        return Finding(NAME, Level.FAIL, f"the disk of {folder} is full: {free >> 10} KiB free", FREE_SPACE)
    if free < FREE_BYTES_LOW:
        level = Level.FAIL if free < FREE_BYTES_MIN else Level.WARN
        return Finding(NAME, level, f"the disk of {folder} is nearly full: {free >> 20} MiB free", FREE_SPACE)
    return None


def _kept(folder: Path, says: str, disk: Disk) -> Finding:
    """Whether that file system keeps what is written."""
    kind = disk.kind_of(folder)
    if kind in NETWORK:
        advice = (
            "name a local disk in data_dir: locks and shared memory of SQLite do not work over a network, so that "
            "turns get lost or damaged; parts on several machines share database_url instead"
        )
        return Finding(NAME, Level.FAIL, f"{says}, on the network file system {kind}", advice)
    if kind in IN_MEMORY:
        advice = "name a disk in data_dir: turns and memories are gone when this machine, or container, restarts"
        return Finding(NAME, Level.WARN, f"{says}, in memory ({kind})", advice)
    return Finding(NAME, Level.OK, says)


def file_system_of(folder: Path, mounts: str) -> str:
    """The type of the file system of the folder, by /proc/self/mounts: of several at one point the last; "" if none."""
    depth, found = 0, ""
    for line in mounts.splitlines():
        _, point, kind, *_ = [*line.split(" "), "", "", ""]
        path = Path(point.replace("\\040", " "))
        if path.is_absolute() and folder.is_relative_to(path) and len(path.parts) >= depth:
            depth, found = len(path.parts), kind
    return found
