"""What is kept besides memories: turns, locks, notes, receipts and what processes share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

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
from memory.ports.snapshots import Snapshots
from memory.runtime.telemetry import Telemetry
from memory.sessions.summaries.summarizer import KeptSummaries
from memory.settings import Settings


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
