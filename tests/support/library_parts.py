"""A library on a real turn log and ledger (SQLite in a folder), a store in memory, and an embedder without a model."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from absent_stores import memory_bank
from hashing_embedder import HashingEmbedder
from product_parts import product_parts

from memory.adapters.evaluation_reports import FolderOfReports
from memory.adapters.in_memory import InMemoryStore
from memory.model import Candidate, Change, ChangeKind, Memory, Message, RequestOptions, Scope
from memory.model.evaluation_reports import EvaluationReport, ReportHead, ReportTable
from memory.ports import LearnDue, Lease, MemoryFilter
from memory.processes import composition
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


class Parts:
    """`now`: what the clock shows until a test sets it."""

    def __init__(
        self, own: composition.Parts, library: Library, searcher: PlainSearch, reports: FolderOfReports
    ) -> None:
        state, stores = own.state, own.stores
        self.embedder, self.store, self.ledger = own.embedder, own.store, own.ledger
        self.turn_log, self.states, self.summaries = state.turn_log, state.states, state.summaries
        self.notes, self.receipts, self.usage_counts = stores.notes, stores.receipts, stores.usage_counts
        self.profiles, self.opt_outs, self.erasures = stores.profiles, stores.opt_outs, stores.erasures
        self.library, self.searcher, self.reports = library, searcher, reports
        self.now = NOW

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
            await self.store.apply(memory.user_id, [Change(ChangeKind.CREATE, memory)], vector)


def without_hunter2(text: str) -> str:
    return text.replace("hunter2", "[secret]")


def report(name: str, *, at: float, rows: tuple[tuple[str, ...], ...] = ()) -> EvaluationReport:
    head = ReportHead(name, "recall", "facts.jsonl", "9.9.9", at)
    return EvaluationReport(head, (ReportTable(("group", "recall"), rows),))


@asynccontextmanager
async def library_parts(folder: Path, *, intake_redact: Callable[[str], str] = without_hunter2) -> AsyncIterator[Parts]:
    embedder = HashingEmbedder()
    store = InMemoryStore(dimension=embedder.dimension)
    searcher, reports = PlainSearch(embedder, store), FolderOfReports(folder / "reports")
    ids = (f"id-{number:06}" for number in itertools.count())

    def clock() -> float:
        return parts.now if parts else NOW

    parts: Parts | None = None
    async with product_parts(folder, store, embedder, clock=clock) as own:
        library = Library(
            memories=memory_bank(store, own.ledger, embedder),
            turn_log=own.state.turn_log,
            stores=own.stores,
            searcher=searcher,
            sources=OperatorSources(reports),
            intake=Intake(
                *(clock, lambda: next(ids), intake_redact, own.tokens),
                flush_timing=FlushTiming(reply_delay=0.01, poll=0.005, longest=0.5, retry=0.1),
            ),
        )
        parts = Parts(own, library, searcher, reports)
        yield parts


async def sent(lines: Iterable[bytes]) -> AsyncIterator[bytes]:
    """As a client sends what it imports."""
    for line in lines:
        yield line
