"""Stores snapshots as files of one folder: one per user, named by a hash of the user's id, written atomically.

Files instead of SQLite: a blob has up to 30 MB and would block the turn log's writers; readers never wait; and deleted
files leave no pages behind. The folder is a cache of limited size: beyond it the least recently used files are deleted.
File names never reveal the user.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Self, TypeVar

from memory.errors import Unavailable
from memory.ports import Clock

THREADS = 2  # so that a chat's read does not wait for a write of this process
LOOK_EACH_SHARE = 0.05  # share of the limit: after writing so much, a process checks the total size of the folder
ROOM_SHARE = 0.9  # share of the limit to which a check reduces the folder
USED_AGAIN_SECONDS = 3_600.0  # precision of the time of last use: each update is a write
LEFT_BEHIND_SECONDS = 60.0  # age after which a temporary file is left over from a dead process
_UNFINISHED = ".part"

Result = TypeVar("Result")


class FileSnapshots:
    """`memory.ports.stores.Snapshots` in a folder shared by several processes. Open with `async with`."""

    def __init__(self, folder: Path, *, bytes_max: int, clock: Clock) -> None:
        """`bytes_max`: approximate limit of all files together."""
        self._folder = folder
        self._bytes_max = bytes_max
        self._clock = clock
        self._written_bytes = bytes_max  # since the last check; the first write checks
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="snapshots")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def read(self, user_id: str) -> bytes | None:
        return await self._in_thread(partial(self._read, self._path(user_id)))

    async def write(self, user_id: str, snapshot: bytes) -> None:
        await self._in_thread(partial(self._write, self._path(user_id), snapshot))

    async def erase(self, user_id: str) -> None:
        await self._in_thread(partial(self._path(user_id).unlink, missing_ok=True))

    async def erase_all(self) -> None:
        await self._in_thread(self._erase_all)

    def _erase_all(self) -> None:
        with suppress(FileNotFoundError):  # the folder does not exist before the first snapshot
            for path in list(self._folder.iterdir()):
                path.unlink(missing_ok=True)

    def _path(self, user_id: str) -> Path:
        return self._folder / hashlib.sha256(user_id.encode("utf-8", "surrogatepass")).hexdigest()

    def _read(self, path: Path) -> bytes | None:
        try:
            found = path.read_bytes()
            if self._clock() - path.stat().st_mtime > USED_AGAIN_SECONDS:
                os.utime(path, (self._clock(), self._clock()))
        except FileNotFoundError:
            return None
        return found

    def _write(self, path: Path, snapshot: bytes) -> None:
        if len(snapshot) > self._bytes_max:
            path.unlink(missing_ok=True)  # otherwise an old one would remain
            return
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        part = path.with_name(f"{path.name}.{secrets.token_hex(8)}{_UNFINISHED}")
        try:
            with os.fdopen(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600), "wb") as file:
                file.write(snapshot)
            part.replace(path)
        except OSError:
            with suppress(OSError):
                part.unlink(missing_ok=True)
            raise
        self._written_bytes += len(snapshot)
        if self._written_bytes > LOOK_EACH_SHARE * self._bytes_max:
            self._make_room()
            self._written_bytes = 0

    def _make_room(self) -> None:
        files: list[tuple[float, int, str]] = []
        with os.scandir(self._folder) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):  # another process was faster
                    found = entry.stat()
                    if not entry.name.endswith(_UNFINISHED):
                        files.append((found.st_mtime, found.st_size, entry.path))
                    elif self._clock() - found.st_mtime > LEFT_BEHIND_SECONDS:
                        Path(entry.path).unlink(missing_ok=True)
        total = sum(size for _, size, _ in files)
        if total <= (1 - LOOK_EACH_SHARE) * self._bytes_max:
            return
        for _, size, path in sorted(files):
            if total <= ROOM_SHARE * self._bytes_max:
                break
            Path(path).unlink(missing_ok=True)
            total -= size

    async def _in_thread(self, work: Callable[[], Result]) -> Result:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)
        except OSError as error:
            raise Unavailable("snapshots", error.strerror or type(error).__name__) from None
