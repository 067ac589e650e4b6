"""A library on a real turn log and ledger (SQLite in a folder), a store in memory, and an embedder without a model."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from absent_stores import request_stores
from hashing_embedder import HashingEmbedder
from token_counts import counted_tokens

from memory.adapters.evaluation_reports import FolderOfReports
from memory.adapters.in_memory import InMemoryStore
from memory.adapters.sql.compacted_states import SqlCompactedStates
from memory.adapters.sql.erasures import SqlErasures
from memory.adapters.sql.idempotency_keys import SqlIdempotencyKeys
from memory.adapters.sql.ledger import SqlUserLedger
from memory.adapters.sql.notes import SqlNoteBook
from memory.adapters.sql.opt_outs import SqlOptOuts
from memory.adapters.sql.profiles import SqlProfiles
from memory.adapters.sql.projects import SqlProjects
from memory.adapters.sql.receipts import SqlReceipts
from memory.adapters.sql.session_summaries import SqlSummaries
from memory.adapters.sql.sqlite_database import SqliteDatabase
from memory.adapters.sql.turn_log import SqlTurnLog
from memory.adapters.sql.usage_counts import SqlUsageCounts
from memory.model import Candidate, Change, ChangeKind, Memory, Message, RequestOptions, Scope
from memory.model.evaluation_reports import EvaluationReport, ReportHead, ReportTable
from memory.ports import LearnDue, Lease, MemoryBank, MemoryFilter
from memory.secrets.redaction import redact
from memory.service.library import Library
from memory.service.operator import OperatorSources
from memory.service.requests import FlushTiming, Intake

NOW = 1_750_000_000.0


class PlainSearch:
    """The nearest by cosine, and a record of what was asked: what the library needs of a ranking, and no more."""

    def __init__(self, embedder: HashingEmbedder, store: InMemoryStore) -> None:
        self._embedder = embedder
        self._store = store
        self.asked: list[tuple[str, tuple[Message, ...], RequestOptions, float | None]] = []

    async def search(
        self,
        scope: Scope,
        *,
        query: str,
        history: Sequence[Message],
        options: RequestOptions,
        as_of: float | None = None,
    ) -> list[Candidate]:
        self.asked.append((query, tuple(history), options, as_of))
        vectors = await self._embedder.embed([query], is_urgent=True)
        where = MemoryFilter(scope.user_id, scope.project_id, memory_types=options.memory_types)
        return await self._store.search(where, vectors[0], limit=options.retrieval_limit or 20)


@dataclass
class Parts:
    """The clock stands still until a test sets `now`."""

    embedder: HashingEmbedder
    store: InMemoryStore
    ledger: SqlUserLedger
    turn_log: SqlTurnLog
    notes: SqlNoteBook
    states: SqlCompactedStates
    receipts: SqlReceipts
    usage_counts: SqlUsageCounts
    profiles: SqlProfiles
    summaries: SqlSummaries
    opt_outs: SqlOptOuts
    erasures: SqlErasures
    reports: FolderOfReports
    searcher: PlainSearch
    library: Library
    now: float = NOW

    async def lease(self) -> Lease | None:
        return await self.turn_log.lease(now=self.now + 1, seconds=30, due=LearnDue())

    async def learn(self, lease: Lease) -> None:
        """What a worker does with a window, in the plainest way: each user message becomes a memory."""
        said = [(turn, m.content) for turn in lease.turns for m in turn.messages if m.role == "user"]
        memories = [
            Memory(
                id=f"{turn.id}-{ordinal}",
                user_id=turn.scope.user_id,
                project_id=turn.scope.project_id,
                content=content,
                created_at=self.now,
                updated_at=self.now,
                said_at=turn.at,
            )
            for ordinal, (turn, content) in enumerate(said)
        ]
        await self.put(*memories)
        await self.turn_log.acknowledge(lease)

    async def put(self, *memories: Memory) -> None:
        """Rows as learning leaves them, whatever their status."""
        for memory in memories:
            vector = await self.embedder.embed([memory.content], is_urgent=False)
            await self.store.apply(memory.user_id, [Change(ChangeKind.CREATE, memory)], np.asarray(vector))


def without_hunter2(text: str) -> str:
    return text.replace("hunter2", "[secret]")


def report(name: str, *, at: float, rows: tuple[tuple[str, ...], ...] = ()) -> EvaluationReport:
    head = ReportHead(name, "recall", "facts.jsonl", "9.9.9", at)
    return EvaluationReport(head, (ReportTable(("group", "recall"), rows),))


@asynccontextmanager
async def library_parts(folder: Path, *, intake_redact: Callable[[str], str] = without_hunter2) -> AsyncIterator[Parts]:
    embedder = HashingEmbedder()
    store = InMemoryStore(dimension=embedder.dimension)
    searcher = PlainSearch(embedder, store)
    ids = (f"id-{number:06}" for number in itertools.count())
    async with SqliteDatabase(folder / "turns.sqlite") as database:

        def clock() -> float:
            return parts.now

        ledger = SqlUserLedger(database, clock=clock)
        turn_log = SqlTurnLog(database, clock=clock)
        notes, states = SqlNoteBook(database), SqlCompactedStates(database)
        receipts = SqlReceipts(database, clock=clock, redact=redact)
        usage_counts, profiles = SqlUsageCounts(database), SqlProfiles(database)
        summaries, opt_outs, erasures = SqlSummaries(database), SqlOptOuts(database), SqlErasures(database)
        reports = FolderOfReports(folder / "reports")
        library = Library(
            memories=MemoryBank(store, ledger, embedder),
            turn_log=turn_log,
            stores=request_stores(
                *(notes, receipts, usage_counts, profiles, states, summaries),
                idempotency=SqlIdempotencyKeys(database),
                opt_outs=opt_outs,
                erasures=erasures,
                projects=SqlProjects(database),
            ),
            searcher=searcher,
            sources=OperatorSources(reports),
            intake=Intake(
                *(clock, lambda: next(ids), intake_redact, counted_tokens()),
                flush_timing=FlushTiming(reply_delay=0.01, poll=0.005, longest=0.5, retry=0.1),
            ),
        )
        parts = Parts(
            *(embedder, store, ledger, turn_log, notes, states, receipts, usage_counts, profiles, summaries),
            *(opt_outs, erasures, reports, searcher, library),
        )
        yield parts
