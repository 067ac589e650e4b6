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

from api_shapes import ASKED_COMPLETIONS, AskedShape
from hashing_embedder import HashingEmbedder
from product_parts import product_parts

from memory.adapters.in_memory import InMemoryStore
from memory.chat.completions import ChatRequest, read_chat_request
from memory.errors import Unavailable
from memory.model import Change, ChangeKind, Memory, Receipt, Scope, Vector
from memory.model.raw_words import embedded_text
from memory.processes.composition import Parts
from memory.recall.pipeline import RecallOutcome, RecallParts, RecallPipeline
from memory.recall.project_access import ReadableProjects
from memory.recall.query_rewriter import Rewriter
from memory.recall.retrieval import Retrieval
from memory.recall.search_flow import SearchParts
from memory.recall.signals.classifier import QuestionClassifier
from memory.recall.stages import RecallSettings

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


class Rig:
    """Recall of one process, and what it stands on."""

    def __init__(self, parts: Parts, recall: RecallPipeline, embedder: HangingEmbedder) -> None:
        state, stores = parts.state, parts.stores
        self.recall, self.embedder, self.metrics = recall, embedder, parts.metrics
        self.store, self.ledger, self.corpora = parts.store, parts.ledger, parts.corpora
        self.turn_log, self.chains = state.turn_log, state.turn_log.chains
        self.model_capabilities = state.model_capabilities
        self.notes, self.receipts, self.usage_counts = stores.notes, stores.receipts, stores.usage_counts
        self.profiles, self.summaries, self.opt_outs = stores.profiles, state.summaries, stores.opt_outs
        self.chat_states = stores.chat_states

    async def write(self, *memories: Memory) -> None:
        """What the worker would do: rows of one user as they shall stand, under the user's lock."""
        user_id = memories[0].user_id
        vectors = await HashingEmbedder(dimension=384).embed(list(map(embedded_text, memories)), is_urgent=False)
        async with self.ledger.write(user_id) as change:
            change.touch([memory.id for memory in memories])
            await self.store.apply(user_id, [Change(ChangeKind.UPDATE, memory) for memory in memories], vectors)

    async def uses(self) -> Mapping[str, Any]:
        """Of the user's memories, also those that were posted a moment ago: a write comes after them."""
        await self.usage_counts.drop("nobody", [])
        return await self.usage_counts.unstored("u", limit=10)

    def counted(self, name: str, **labels: str) -> float:
        return self.metrics.registry.get_sample_value(name, labels) or 0.0

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
    embedder, store = HangingEmbedder(), InMemoryStore()
    vectors = await HashingEmbedder(dimension=384).embed([KAYAK], is_urgent=False)
    await store.apply("u", [Change(ChangeKind.CREATE, Memory("m1", "u", KAYAK, NOW, NOW, NOW))], vectors)
    ids = (f"r{number}" for number in itertools.count())
    async with product_parts(folder, store, embedder, clock=lambda: NOW) as own:
        projects = ReadableProjects(own.stores.projects)
        retrieval = Retrieval(corpora=own.corpora, store=store, projects=projects)
        parts = RecallParts(
            search=SearchParts(embedder, lambda: None, retrieval, own.tokens, rewriter, questions),
            stores=own.stores,
            projects=projects,
            chains=own.state.turn_log.chains,
            windows=own.windows,
            telemetry=own.telemetry,
            new_id=lambda: next(ids),
        )
        recall = RecallPipeline(parts, settings)
        await own.corpora.corpus("u", waits=True)
        await recall.recall(Scope("u"), request_of("Where is my kayak stored?"))  # what is loaded once is loaded
        embedder.texts.clear()
        yield Rig(own, recall, embedder)
