"""How a process introduces itself to the others that use the same state: which part it is, and what it runs."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from memory.runtime.release import RUNNING, Release

TOOL = "tool"  # a command of the operator, not a part


@dataclass(frozen=True, slots=True)
class RunningPart:
    """`part`: filter, worker, api, or tool. `host`: the name of its machine or container."""

    part: str
    pid: int
    host: str
    release: Release

    def __str__(self) -> str:
        where = "" if self.host == socket.gethostname() else f" on {self.host}"
        return f"{self.part} (pid {self.pid}{where})"


def introduction(part: str) -> str:
    """Of this process."""
    return msgspec.json.encode(RunningPart(part or TOOL, os.getpid(), socket.gethostname(), RUNNING)).decode()


def introduced(texts: Sequence[str]) -> list[RunningPart | None]:
    """Who they are, in this order; None for one of a release that does not introduce itself, or does so otherwise."""
    return [_read(text) for text in texts]


def _read(text: str) -> RunningPart | None:
    try:
        return msgspec.json.decode(text, type=RunningPart)
    except msgspec.MsgspecError:
        return None
