"""Opens everything that is kept besides memories: turns, locks, notes, receipts and what processes share."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import dataclass

from memory.adapters.sqlite.compacted_states import SqliteCompactedStates
from memory.adapters.sqlite.database import SqliteDatabase
from memory.adapters.sqlite.erasures import SqliteErasures
from memory.adapters.sqlite.exams import SqliteExamResults
from memory.adapters.sqlite.idempotency_keys import SqliteIdempotencyKeys
from memory.adapters.sqlite.ledger import SqliteUserLedger
from memory.adapters.sqlite.model_capabilities import SqliteModelCapabilities
from memory.adapters.sqlite.notes import SqliteNoteBook
from memory.adapters.sqlite.opt_outs import SqliteOptOuts
from memory.adapters.sqlite.profiles import SqliteProfiles
from memory.adapters.sqlite.projects import SqliteProjects
from memory.adapters.sqlite.receipts import SqliteReceipts
from memory.adapters.sqlite.session_summaries import SqliteSummaries
from memory.adapters.sqlite.turn_log import SqliteTurnLog
from memory.adapters.sqlite.upkeep_schedule import SqliteUpkeepSchedule
from memory.adapters.sqlite.usage_counts import SqliteUsageCounts
from memory.adapters.sqlite.write_barrier import SqliteWriteBarrier
from memory.adapters.working_set.snapshot_files import FileSnapshots
from memory.model import VectorOrigin
from memory.ports import (
    CompactedStates,
    ModelCapabilities,
    NoteBook,
    OptOuts,
    Profiles,
    Receipts,
    RequestTraces,
    TurnLog,
    UpkeepSchedule,
    UsageCounts,
    UserLedger,
)
from memory.ports.erasures import ErasureProof, Erasures, FileRewriting, WriteBarrier
from memory.ports.idempotency import IdempotencyKeys
from memory.ports.projects import Projects
from memory.ports.reading import ExamResults
from memory.ports.snapshots import Snapshots
from memory.processes.from_settings import note_limits, receipt_limits, recording
from memory.runtime.instruments import Instruments
from memory.sessions.summaries.summarizer import KeptSummaries
from memory.settings.loader import Settings


@dataclass(frozen=True, slots=True)
class Process:
    """The process that parts are opened for. `is_hurried`: it serves chats, so its calls have short time limits."""

    settings: Settings
    instruments: Instruments
    is_hurried: bool = False


@dataclass(frozen=True, slots=True)
class KeptState:
    """`rewriting`: what erases the traces that deleting leaves in files. `snapshots`: None if none are kept."""

    turn_log: TurnLog
    ledger: UserLedger
    notes: NoteBook
    receipts: Receipts
    usage_counts: UsageCounts
    profiles: Profiles
    states: CompactedStates
    summaries: KeptSummaries
    idempotency: IdempotencyKeys
    opt_outs: OptOuts
    projects: Projects
    upkeep_schedule: UpkeepSchedule
    model_capabilities: ModelCapabilities
    exams: ExamResults
    erasures: Erasures
    barrier: WriteBarrier
    rewriting: FileRewriting
    snapshots: Snapshots | None

    def traces(self, proof: ErasureProof) -> RequestTraces:
        return RequestTraces(
            *(self.notes, self.receipts, self.usage_counts, self.profiles, self.states, self.summaries),
            *(self.idempotency, self.opt_outs, proof, self.projects),
        )


def turn_log_database(settings: Settings) -> SqliteDatabase:
    return SqliteDatabase(
        settings.turn_log_path,
        synchronous=settings.memory.turn_log.synchronous,
        rewrite_bytes_max=settings.memory.erase.rewrite_mib_max << 20,
    )


async def open_state(process: Process, stack: AsyncExitStack, *, origin: VectorOrigin) -> KeptState:
    """On SQLite and files in the data directory; the stack closes it. `origin`: of the vectors in the store."""
    settings, clock = process.settings, process.instruments.clock
    database = await stack.enter_async_context(turn_log_database(settings))
    snapshot_bytes = settings.memory.snapshots.total_mib << 20
    files = FileSnapshots(settings.snapshots_dir, bytes_max=snapshot_bytes, clock=clock) if snapshot_bytes else None
    return KeptState(
        turn_log=SqliteTurnLog(database, clock=clock),
        ledger=SqliteUserLedger(database, clock=clock),
        notes=SqliteNoteBook(database, limits=note_limits(settings), waits_for_others=settings.filters > 1),
        receipts=SqliteReceipts(database, clock=clock, redact=recording(settings), limits=receipt_limits(settings)),
        usage_counts=await stack.enter_async_context(SqliteUsageCounts(database)),
        profiles=SqliteProfiles(database),
        states=SqliteCompactedStates(database),
        summaries=SqliteSummaries(database, origin=str(origin)),
        idempotency=SqliteIdempotencyKeys(database),
        opt_outs=SqliteOptOuts(database),
        projects=SqliteProjects(database),
        upkeep_schedule=SqliteUpkeepSchedule(database),
        model_capabilities=SqliteModelCapabilities(database, clock=clock),
        exams=SqliteExamResults(database, clock=clock),
        erasures=SqliteErasures(database),
        barrier=SqliteWriteBarrier(database, clock=clock),
        rewriting=database,
        snapshots=None if files is None else await stack.enter_async_context(files),
    )


__all__ = ["KeptState", "Process", "open_state", "turn_log_database"]
