"""Which processes that use a database are alive: each holds an flock on a file of its own in a folder next to it.

The kernel releases the lock when a process dies, however it dies, so that dead processes are found at once and without
heartbeats. The database is not touched, and only `setting_up` waits for other processes.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from memory.adapters.sql.statements import Connection
from memory.errors import Unavailable

SETUP_WAIT_SECONDS = 5.0  # preparing a database takes milliseconds; whoever needs longer hangs
SETUP_POLL_SECONDS = 0.01


class LockedOwners:
    """The folder of lock files. One instance is one owner, even within one process.

    Names are never reused, so that a dead owner stays dead. `introduction`: what others may read of it while it lives.
    """

    def __init__(self, folder: Path, *, introduction: str = "") -> None:
        self.folder = folder
        self.name = ""
        self._introduction = introduction
        self._lock = -1

    def enter(self) -> None:
        """Become an owner. Raises `OSError`.

        The file is locked under a temporary name, then renamed: a living owner's file is never visible without its
        lock.
        """
        self.name = secrets.token_hex(16)
        hidden = self.folder / f".{self.name}"
        self._lock = os.open(hidden, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with suppress(OSError):  # a full disk: it lives all the same
            os.write(self._lock, self._introduction.encode())
        hidden.rename(self.folder / self.name)

    def leave(self) -> None:
        """From now on we count as dead: without a file there is no owner."""
        (self.folder / self.name).unlink(missing_ok=True)
        os.close(self._lock)

    def is_dead(self, connection: Connection, owner: str) -> bool:
        """Whether that owner is dead; we ourselves never are. Owners without a file are: the folder may have been
        lost.
        """
        return self._is_dead(owner)

    def _is_dead(self, owner: str) -> bool:
        if owner == self.name:
            return False
        try:
            lock = os.open(self.folder / owner, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return True
        try:
            return _try_lock(lock)
        finally:
            os.close(lock)

    def find_dead(self, connection: Connection, suspects: Collection[str]) -> list[str]:
        """The dead among `suspects` and among all owners with a file."""
        files = {entry.name for entry in os.scandir(self.folder) if not entry.name.startswith(".")}
        return [owner for owner in sorted(files.union(suspects)) if self._is_dead(owner)]

    def introductions(self) -> list[str]:
        """Of the other living owners; "" for one that says nothing."""
        found = []
        for entry in sorted(self.folder.glob("[!.]*")):
            with suppress(FileNotFoundError):  # it left meanwhile
                text = entry.read_text(encoding="utf-8", errors="replace")
                if entry.name != self.name and not self._is_dead(entry.name):
                    found.append(text)
        return found

    def forget(self, dead_owners: Collection[str]) -> None:
        """Delete their files, once they hold nothing any more."""
        for owner in dead_owners:
            (self.folder / owner).unlink(missing_ok=True)


def living(folder: Path) -> int:
    """The number of living owners, in this process or another; 0 without a folder."""
    owners = LockedOwners(folder)
    try:
        files = [entry.name for entry in os.scandir(folder) if not entry.name.startswith(".")]
    except FileNotFoundError:
        return 0
    return sum(not owners._is_dead(owner) for owner in files)


@contextmanager
def setting_up(folder: Path) -> Iterator[None]:
    """Only one process at a time prepares the database. Raises `Unavailable` after 5 s."""
    deadline = time.monotonic() + SETUP_WAIT_SECONDS
    lock = os.open(folder / ".setup", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        while not _try_lock(lock):
            if time.monotonic() > deadline:
                raise Unavailable("turn_log", "another process has been preparing the database for 5 s")
            time.sleep(SETUP_POLL_SECONDS)
        yield
    finally:
        os.close(lock)


def _try_lock(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
