"""Recall never fails a request, never holds one past the deadline, and sheds before it costs an embedding."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hashing_embedder import HashingEmbedder
from prometheus_client import CollectorRegistry

from memory.adapters.in_memory import InMemoryStore
from memory.adapters.ledger_sqlite import SqliteUserLedger
from memory.adapters.notes_sqlite import SqliteNoteBook
from memory.adapters.receipts_sqlite import SqliteReceipts
from memory.adapters.sqlite_database import SqliteDatabase
from memory.adapters.traits_sqlite import SqliteModelTraits
from memory.adapters.wordpiece import WordPieceTokens
from memory.adapters.working_set import WorkingSets
from memory.chat.completions import ChatRequest, read
from memory.errors import Unavailable
from memory.learn.redaction import redact
from memory.metrics import Metrics
from memory.model import Change, ChangeKind, Memory, Placement, RecallStatus, Scope, Vector
from memory.recall.pipeline import Recall, RecallSettings
from memory.recall.retrieval import Retrieval

NOW = 1_750_000_000.0
KAYAK = "My kayak is stored at the boathouse in Dorset"
SETTINGS = RecallSettings(deadline_seconds=0.2, in_flight_max=4)


@dataclass
class SlowEmbedder:
    """A hashing embedder that can be slow or down, and counts what it is asked."""

    seconds: float = 0.0
    is_down: bool = False
    calls: int = 0
    dimension: int = 384

    async def embed(self, texts: Sequence[str], *, is_urgent: bool) -> Vector:
        self.calls += 1
        if self.is_down:
            raise Unavailable("embedder", "it is down")
        await asyncio.sleep(self.seconds)
        return await HashingEmbedder(dimension=self.dimension).embed(texts, is_urgent=is_urgent)


@dataclass
class Rig:
    recall: Recall
    embedder: SlowEmbedder
    traits: SqliteModelTraits
    metrics: Metrics


def request_of(text: str, **config: object) -> ChatRequest:
    body = {"model": "m", "messages": [{"role": "user", "content": text}], "memory_config": config}
    return read(json.dumps(body).encode())


@asynccontextmanager
async def rigged(folder: Path, settings: RecallSettings = SETTINGS) -> AsyncIterator[Rig]:
    embedder, metrics, store = SlowEmbedder(), Metrics(CollectorRegistry()), InMemoryStore()
    vectors = await HashingEmbedder(dimension=384).embed([KAYAK], is_urgent=False)
    await store.apply("u", [Change(ChangeKind.CREATE, Memory("m1", "u", KAYAK, NOW, NOW, NOW))], np.asarray(vectors))
    ids = (f"r{number}" for number in itertools.count())
    async with SqliteDatabase(folder / "turns.sqlite") as database:
        ledger = SqliteUserLedger(database, clock=lambda: NOW)
        traits = SqliteModelTraits(database, clock=lambda: NOW)
        async with WorkingSets(store=store, ledger=ledger, dimension=384) as corpora:
            recall = Recall(
                embedder=embedder,
                retrieval=Retrieval(corpora=corpora, store=store),
                notes=SqliteNoteBook(database),
                receipts=SqliteReceipts(database, clock=lambda: NOW, redact=redact),
                traits=traits,
                classifier=lambda: None,
                tokens=WordPieceTokens(),
                clock=lambda: NOW,
                new_id=lambda: next(ids),
                metrics=metrics,
                settings=settings,
            )
            await recall.recall(Scope("u"), request_of("Where is my kayak stored?"))
            embedder.calls = 0
            yield Rig(recall, embedder, traits, metrics)


async def test_a_late_embedding_ends_at_the_deadline(tmp_path: Path) -> None:
    async with rigged(tmp_path) as rig:
        rig.embedder.seconds = 5.0
        began = time.monotonic()
        outcome = await rig.recall.recall(Scope("u"), request_of("Where is my kayak?"))
        assert time.monotonic() - began < SETTINGS.deadline_seconds + 0.15
        assert (outcome.status, outcome.reason) == (RecallStatus.UNAVAILABLE, "deadline")


async def test_an_embedder_that_is_down_costs_the_memory_and_not_the_request(tmp_path: Path) -> None:
    async with rigged(tmp_path) as rig:
        rig.embedder.is_down = True
        outcome = await rig.recall.recall(Scope("u"), request_of("Where is my kayak?"))
        assert (outcome.status, outcome.reason, outcome.notes) == (RecallStatus.UNAVAILABLE, "embedder", ())
        rig.embedder.is_down = False
        again = await rig.recall.recall(Scope("u"), request_of("Where did I store my kayak?"))
        assert again.status is RecallStatus.USED


async def test_what_is_too_much_is_shed_before_it_costs_an_embedding(tmp_path: Path) -> None:
    async with rigged(tmp_path) as rig:
        rig.embedder.seconds = 0.1
        asking = [rig.recall.recall(Scope("u"), request_of(f"Where is my kayak number {n}?")) for n in range(12)]
        outcomes = await asyncio.gather(*asking)
        assert rig.embedder.calls == SETTINGS.in_flight_max
        assert sum(outcome.reason == "busy" for outcome in outcomes) == 12 - SETTINGS.in_flight_max
        assert rig.metrics.registry.get_sample_value("memproxy_recall_shed_total") == 12 - SETTINGS.in_flight_max


@pytest.mark.parametrize(
    ("wanted", "learnt", "placed"),
    [
        (Placement.BEFORE_LAST_USER, None, "middle"),
        (Placement.BEFORE_LAST_USER, Placement.SYSTEM, "system"),
        (Placement.SYSTEM, None, "system"),
        (Placement.OFF, Placement.SYSTEM, "nowhere"),
    ],
)
async def test_of_setting_and_lesson_the_more_careful_one_counts(
    tmp_path: Path, wanted: Placement, learnt: Placement | None, placed: str
) -> None:
    settings = RecallSettings(deadline_seconds=1.0, placement=wanted)
    async with rigged(tmp_path, settings) as rig:
        if learnt is not None:
            await rig.traits.learn("m", learnt)
        outcome = await rig.recall.recall(Scope("u"), request_of("Where is my kayak stored now?"))
        where = "nowhere" if not outcome.notes else "system" if outcome.notes[0].before is None else "middle"
        assert where == placed


async def test_a_request_may_switch_memory_off(tmp_path: Path) -> None:
    async with rigged(tmp_path) as rig:
        outcome = await rig.recall.recall(Scope("u"), request_of("Where is my kayak?", enabled=False))
        assert (outcome.status, rig.embedder.calls) == (RecallStatus.DISABLED, 0)
