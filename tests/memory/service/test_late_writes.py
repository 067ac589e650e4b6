"""Whoever lost the user's lock over a slow step overwrites nothing that others wrote since: the API and upkeep, too."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from frozen_parts import Frozen
from hashing_embedder import HashingEmbedder
from library_parts import PlainSearch
from prometheus_client import CollectorRegistry
from turn_logs import START, Deployment, Process, sqlite_deployment

from memory.adapters.in_memory import InMemoryStore
from memory.errors import Conflict
from memory.learn.retention import RetentionRules
from memory.learn.upkeep import Upkeep
from memory.model import Change, ChangeKind, Evidence, Memory, MemoryStatus, Scope
from memory.ports import MemoryBank, MemoryStore
from memory.runtime.instruments import Instruments
from memory.runtime.metrics import Metrics
from memory.service.library import Library
from memory.service.requests import Intake, MemoryEdit, NewMemory

FROZEN_SECONDS = 31.0
EMBEDDER = HashingEmbedder()
TEA = Memory(
    id="tea",
    user_id="ann",
    content="I like tea",
    created_at=START,
    updated_at=START,
    said_at=START,
    evidence=(Evidence("I like tea", "turn-1"), Evidence("I like tea", "turn-2")),
)
TEA_AGAIN = replace(TEA, id="tea again", content="I like tea!", said_at=START + 1)


@dataclass
class Here:
    deployment: Deployment
    store: InMemoryStore

    def library(self, process: Process, store: MemoryStore) -> Library:
        return Library(
            memories=MemoryBank(store, process.ledger, EMBEDDER),
            turn_log=process.log,
            traces=process.traces,
            searcher=PlainSearch(EMBEDDER, self.store),
            intake=Intake(self.deployment.clock, lambda: "new", str, len),
        )

    def upkeep(self, process: Process, store: MemoryStore) -> Upkeep:
        return Upkeep(
            memories=MemoryBank(store, process.ledger, EMBEDDER),
            traces=process.traces,
            instruments=Instruments(self.deployment.clock, Metrics(CollectorRegistry())),
            rules=RetentionRules(),
        )

    async def put(self, *memories: Memory) -> None:
        vectors = await EMBEDDER.embed([memory.content for memory in memories], is_urgent=False)
        await self.store.apply("ann", [Change(ChangeKind.UPDATE, one) for one in memories], np.asarray(vectors))

    async def rows(self) -> dict[str, Memory]:
        return {r.memory.id: r.memory for r in await self.store.get("ann", ["tea", "tea again", "new"])}


Work = Callable[[Here, Process, MemoryStore], Awaitable[Any]]


async def patch(here: Here, process: Process, store: MemoryStore) -> None:
    await here.library(process, store).patch("ann", "tea", MemoryEdit(importance=0.9))


async def forget_source(here: Here, process: Process, store: MemoryStore) -> None:
    await here.library(process, store).forget_source("ann", "turn-1")


async def look_after(here: Here, process: Process, store: MemoryStore) -> None:
    await here.upkeep(process, store).run("ann")


async def add(here: Here, process: Process, store: MemoryStore) -> None:
    await here.library(process, store).add(Scope("ann"), [NewMemory("I like coffee")])


@pytest.mark.parametrize(
    ("work", "frozen_in", "number"),
    [
        (patch, "get", 2),
        (patch, "apply", 1),
        (forget_source, "get", 1),
        (forget_source, "apply", 1),
        (look_after, "get", 1),
        (look_after, "apply", 1),
        (add, "apply", 1),
    ],
)
async def test_what_was_written_while_somebody_was_frozen_stands(
    tmp_path: Path, work: Work, frozen_in: str, number: int
) -> None:
    here = Here(sqlite_deployment(tmp_path), InMemoryStore(dimension=EMBEDDER.dimension))
    await here.put(TEA, TEA_AGAIN)
    gone = replace(TEA, status=MemoryStatus.SUPERSEDED, superseded_by="coffee", updated_at=START + 9)
    gone_again = replace(TEA_AGAIN, importance=0.1, updated_at=START + 9)
    async with here.deployment.start() as frozen, here.deployment.start() as other:

        async def others_write() -> None:
            here.deployment.clock.now += FROZEN_SECONDS
            async with other.ledger.write("ann") as held:
                held.touch(["tea", "tea again"])
                await here.put(gone, gone_again)

        store = Frozen(here.store, frozen_in, others_write, number=number)
        with pytest.raises(Conflict):
            await work(here, frozen, cast(Any, store))
        assert await here.rows() == {"tea": gone, "tea again": gone_again}
        assert store.has_arrived is (frozen_in == "get")
        assert (await other.ledger.revision("ann")).is_settled


@pytest.mark.parametrize("work", [patch, forget_source, look_after, add])
async def test_who_was_not_frozen_writes(tmp_path: Path, work: Work) -> None:
    here = Here(sqlite_deployment(tmp_path), InMemoryStore(dimension=EMBEDDER.dimension))
    await here.put(TEA, TEA_AGAIN)
    before = await here.rows()
    async with here.deployment.start() as process:
        await work(here, process, here.store)
    assert await here.rows() != before
