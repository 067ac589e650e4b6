"""Recall in one process, on real parts but for an embedder that hashes words and can hang or break.

Nothing here waits for a clock: the deadline is far, and a test that needs it lets time pass (`pass_time`).
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from absent_stores import request_stores
from api_shapes import ASKED_COMPLETIONS, AskedShape
from hashing_embedder import HashingEmbedder
from prometheus_client import CollectorRegistry
from token_counts import counted_tokens

from memory.adapters.in_memory import InMemoryStore
from memory.adapters.sql.chains import SqlResponseChains
from memory.adapters.sql.chat_states import SqlChatStates
from memory.adapters.sql.ledger import SqlUserLedger
from memory.adapters.sql.model_capabilities import SqlModelCapabilities
from memory.adapters.sql.notes import SqlNoteBook
from memory.adapters.sql.opt_outs import SqlOptOuts
from memory.adapters.sql.profiles import SqlProfiles
from memory.adapters.sql.projects import SqlProjects
from memory.adapters.sql.receipts import SqlReceipts
from memory.adapters.sql.session_summaries import SqlSummaries
from memory.adapters.sql.sqlite_database import SqliteDatabase
from memory.adapters.sql.turn_log import SqlTurnLog
from memory.adapters.sql.usage_counts import SqlUsageCounts
from memory.chat.completions import ChatRequest, read_chat_request
from memory.errors import Unavailable
from memory.model import Change, ChangeKind, Memory, Receipt, Scope, Vector
from memory.model.raw_words import embedded_text
from memory.ports import ServerKnowledge
from memory.recall.pipeline import RecallOutcome, RecallParts, RecallPipeline
from memory.recall.project_access import ReadableProjects
from memory.recall.query_rewriter import Rewriter
from memory.recall.retrieval import Retrieval
from memory.recall.search_flow import SearchParts
from memory.recall.signals.question_kinds import QuestionClassifier
from memory.recall.stages import RecallSettings
from memory.recall.working_set.working_sets import CorpusShape, WorkingSets
from memory.runtime.metrics import Metrics
from memory.runtime.telemetry import Telemetry
from memory.secrets.redaction import redact

NOW = 1_750_000_000.0
KAYAK = "My kayak is stored at the boathouse in Dorset"
PATIENCE_SECONDS = 60.0  # only stops what hangs
SETTINGS = RecallSettings(deadline_seconds=30.0, in_flight_max=4)


@dataclass
class HangingEmbedder:
    """A hashing embedder that can hang or be down, and counts what it is asked."""

    is_down: bool = False
    hangs_on: Callable[[str], bool] = lambda _: False
    may_go_on: asyncio.Event = field(default_factory=asyncio.Event)  # what hangs, until then
    texts: list[str] = field(default_factory=list)  # that it was asked for, one call each
    dimension: int = 384
    is_asked_as_query: bool = False  # the last time

    @property
    def calls(self) -> int:
        return len(self.texts)

    async def embed(self, texts: Sequence[str], *, is_urgent: bool, as_query: bool = False) -> Vector:
        self.texts.append(" ".join(texts))
        self.is_asked_as_query = as_query
        if self.is_down:
            raise Unavailable("embedder", "it is down")
        if self.hangs_on(self.texts[-1]):
            await self.may_go_on.wait()
        return await HashingEmbedder(dimension=self.dimension).embed(texts, is_urgent=is_urgent)


def always(_: str) -> bool:
    return True


def pass_time(seconds: float) -> None:
    """So much later for all timers of this event loop, at once."""
    loop = asyncio.get_running_loop()
    now = loop.time
    loop.time = lambda: now() + seconds  # type: ignore[method-assign]


async def until(is_so: Callable[[], object]) -> None:
    """Once that is so."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not is_so():
            await asyncio.sleep(0.001)


@dataclass
class Rig:
    recall: RecallPipeline
    embedder: HangingEmbedder
    model_capabilities: SqlModelCapabilities
    receipts: SqlReceipts
    metrics: Metrics
    store: InMemoryStore
    ledger: SqlUserLedger
    corpora: WorkingSets
    usage_counts: SqlUsageCounts
    chains: SqlResponseChains
    profiles: SqlProfiles
    notes: SqlNoteBook
    turn_log: SqlTurnLog
    summaries: SqlSummaries
    opt_outs: SqlOptOuts

    async def write(self, *memories: Memory) -> None:
        """What the worker would do: rows as they shall stand, under the user's lock."""
        vectors = await HashingEmbedder(dimension=384).embed(list(map(embedded_text, memories)), is_urgent=False)
        async with self.ledger.write("u") as change:
            change.touch([memory.id for memory in memories])
            await self.store.apply("u", [Change(ChangeKind.UPDATE, memory) for memory in memories], vectors)

    async def receipt(self, outcome: RecallOutcome, *, user_id: str = "u") -> Receipt:
        """The receipt of that request, once it is written."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while (found := await self.receipts.get(user_id, outcome.receipt_id)) is None:
                await asyncio.sleep(0.01)
        return found


SHAPE: AskedShape = ASKED_COMPLETIONS
"""In which form requests come; `tests/memory/recall` runs what uses this rig in each."""


def request_of(text: str, **config: object) -> ChatRequest:
    return request_with([{"role": "user", "content": text}], **config)


def request_with(messages: Sequence[Mapping[str, Any]], **config: object) -> ChatRequest:
    """A chat of these messages; `config` is its `memory_config`."""
    body = SHAPE.body(messages, memory_config=config)
    return read_chat_request(json.dumps(body).encode(), SHAPE.shape)


@asynccontextmanager
async def rigged(
    folder: Path,
    settings: RecallSettings = SETTINGS,
    *,
    questions: Callable[[], QuestionClassifier | None] = lambda: None,
    rewriter: Rewriter | None = None,
) -> AsyncIterator[Rig]:
    embedder, metrics, store = HangingEmbedder(), Metrics(CollectorRegistry()), InMemoryStore()
    tokens = counted_tokens()
    vectors = await HashingEmbedder(dimension=384).embed([KAYAK], is_urgent=False)
    await store.apply("u", [Change(ChangeKind.CREATE, Memory("m1", "u", KAYAK, NOW, NOW, NOW))], np.asarray(vectors))
    ids = (f"r{number}" for number in itertools.count())
    async with SqliteDatabase(folder / "turns.sqlite") as database:
        ledger = SqlUserLedger(database, clock=lambda: NOW)
        model_capabilities = SqlModelCapabilities(database, clock=lambda: NOW)
        profiles, notes = SqlProfiles(database), SqlNoteBook(database)
        summaries = SqlSummaries(database)
        receipts = SqlReceipts(database, clock=lambda: NOW, redact=redact)
        async with (
            SqlUsageCounts(database, flush_seconds=0.02) as usage_counts,
            WorkingSets(store=store, ledger=ledger, shape=CorpusShape(384, tokens=tokens)) as corpora,
        ):
            retrieval, chains = Retrieval(corpora=corpora, store=store), SqlResponseChains(database)
            states = SqlChatStates(database, notes, chains, lambda: NOW)
            parts = RecallParts(
                search=SearchParts(embedder, lambda: None, retrieval, tokens, rewriter, questions),
                stores=request_stores(notes, receipts, usage_counts, profiles, summaries=summaries, chat_states=states),
                projects=ReadableProjects(SqlProjects(database)),
                server=ServerKnowledge(chains),
                telemetry=Telemetry(lambda: NOW, metrics),
                new_id=lambda: next(ids),
            )
            recall = RecallPipeline(parts, settings)
            await corpora.corpus("u", waits=True)
            await recall.recall(Scope("u"), request_of("Where is my kayak stored?"))  # what is loaded once is loaded
            embedder.texts.clear()
            yield Rig(
                recall,
                embedder,
                model_capabilities,
                receipts,
                metrics,
                store,
                ledger,
                corpora,
                usage_counts,
                chains,
                profiles,
                notes,
                SqlTurnLog(database, clock=lambda: NOW),
                summaries,
                SqlOptOuts(database),
            )
