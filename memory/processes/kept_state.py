"""What is kept besides memories, and how a process introduces itself to the others that use it."""

from __future__ import annotations

import os
import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import msgspec

from memory.ports import (
    CompactedStates,
    ModelCapabilities,
    OptOuts,
    RequestStores,
    TurnLog,
    TurnTriage,
    UpkeepSchedule,
    UserLedger,
)
from memory.ports.erasures import FileRewriting, WriteBarrier
from memory.ports.reading import ExamResults
from memory.ports.stores import Snapshots
from memory.runtime.release import RUNNING, Release
from memory.runtime.tracing import Telemetry
from memory.sessions.summaries.summarizer import KeptSummaries
from memory.settings import Settings
from memory.typed import from_json

TOOL = "tool"  # a command of the operator, not a part


@dataclass(frozen=True, slots=True)
class Process:
    """The process that parts are opened for. `is_hurried`: it serves chats, so its calls have short time limits.
    `part`: which it is; empty for a tool.
    """

    settings: Settings
    telemetry: Telemetry
    is_hurried: bool = False
    part: str = ""


@dataclass(frozen=True, slots=True)
class KeptState:
    """`states` and `summaries`: those of `stores`, with all that they do. `rewriting`: what erases the traces that
    deleting leaves in files. `snapshots`: None if none are kept. `introductions`: of the other processes that use it.
    """

    turn_log: TurnLog
    ledger: UserLedger
    stores: RequestStores
    states: CompactedStates
    summaries: KeptSummaries
    upkeep_schedule: UpkeepSchedule
    model_capabilities: ModelCapabilities
    exams: ExamResults
    barrier: WriteBarrier
    rewriting: FileRewriting
    snapshots: Snapshots | None
    introductions: Callable[[], Awaitable[Sequence[str]]]


@dataclass(frozen=True, slots=True)
class ExaminedState:
    """What the doctor looks at. `where`: the file or server. `server_time`: what that calls now, in Unix seconds.
    `introductions`: of the other processes that use it now.
    """

    where: str
    queue: TurnTriage
    opt_outs: OptOuts
    exams: ExamResults
    introductions: Callable[[], Awaitable[Sequence[str]]]
    newest_turn_at: Callable[[], Awaitable[float | None]] | None = None
    server_time: Callable[[], Awaitable[float]] | None = None


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
        return from_json(text, RunningPart)
    except msgspec.MsgspecError:
        return None
