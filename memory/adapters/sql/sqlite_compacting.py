"""Writes a database anew while nobody else has it open: into a file next to it, which then takes its place.

Unlike rewriting it under the eyes of its users, that has no limit of size, needs room for one copy and not for two, and
leaves the old file as it is until the new one is whole. Whatever interrupts it may be followed by another attempt.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from memory.errors import Unavailable

POLL_SECONDS = 0.2
FREE_BYTES_LEFT_MIN = 64 << 20  # what else is on the disk goes on


@dataclass(frozen=True, slots=True)
class FileSizes:
    """In bytes: of the file with its log, or of all tables, and what the rows need in a new one, at most."""

    before: int
    after: int


def copy_of(path: Path) -> Path:
    """Where the new file is made. One that was left behind is no database of anybody, and may be deleted."""
    return path.with_name(f"{path.name}.new")


def sizes_of(path: Path) -> FileSizes:
    """Raises `Unavailable`."""
    try:
        with closing(_alone(path)) as connection:
            return _sizes(connection, path)
    except sqlite3.Error as error:
        raise Unavailable("turn_log", str(error)) from error


def compact(path: Path, *, advance: Callable[[int, int], None], check_alone: Callable[[], None]) -> FileSizes:
    """Raises `Unavailable`, and what `check_alone` raises: the old file then stays as it was.

    `advance` is called with the MiB that are written and their total.
    """
    copy = copy_of(path)
    try:
        with closing(_alone(path)) as connection:
            sizes = _sizes(connection, path)
            _refuse_full_disk(path.parent, sizes.after)
            copy.unlink(missing_ok=True)
            os.close(os.open(copy, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))
            _write(connection, copy, lambda size: advance(min(size, sizes.after) >> 20, sizes.after >> 20))
            _onto_disk(copy)
            check_alone()
            copy.replace(path)
            _onto_disk(path.parent)
            return FileSizes(sizes.before, path.stat().st_size)
    except sqlite3.Error as error:
        raise Unavailable("turn_log", str(error)) from error
    finally:
        copy.unlink(missing_ok=True)


def _write(connection: sqlite3.Connection, copy: Path, advance: Callable[[int], None]) -> None:
    """In a thread, which has ended on return. `advance` is called with the size of the copy."""
    with ThreadPoolExecutor(1) as thread:
        writing = thread.submit(connection.execute, "VACUUM INTO ?", (str(copy),))
        try:
            while not writing.done():
                advance(copy.stat().st_size)
                wait([writing], timeout=POLL_SECONDS)
        finally:
            connection.interrupt()  # nothing, unless this thread was interrupted
        writing.result()
    advance(copy.stat().st_size)


def _alone(path: Path) -> sqlite3.Connection:
    """Without a log, and locked until it is closed. Raises `sqlite3.Error` if somebody has it open."""
    connection = sqlite3.connect(path, timeout=0.0, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("PRAGMA journal_mode = DELETE")  # an error, unless nobody else has it open
        connection.execute("BEGIN EXCLUSIVE")
        connection.execute("COMMIT")  # the lock stays
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _sizes(connection: sqlite3.Connection, path: Path) -> FileSizes:
    pages, free, bytes_of_one = (
        connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
    )
    return FileSizes(path.stat().st_size, (pages - free) * bytes_of_one)


def _refuse_full_disk(folder: Path, size: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < size + FREE_BYTES_LEFT_MIN:
        needed = (size + FREE_BYTES_LEFT_MIN) >> 20
        raise Unavailable("turn_log", f"{folder} has {free >> 20} MiB free, and the new file needs {needed} MiB")


def _onto_disk(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
