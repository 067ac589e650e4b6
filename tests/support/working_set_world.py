"""Working sets on a real ledger: one filter that reads, and two other processes that write.

Ledgers are real ones on one file, each with connections of its own as another process would have.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import memory_rows
import numpy as np
from milvus_kinds import PATIENT, RealMilvus
from prometheus_client import CollectorRegistry

from memory.adapters.in_memory import InMemoryStore
from memory.adapters.milvus.store import MilvusStore
from memory.adapters.sql.ledger import SqlUserLedger
from memory.adapters.sql.sqlite_database import SqliteDatabase
from memory.errors import Unavailable
from memory.model import Change, ChangeKind, Memory
from memory.ports import MemoryStore, UserLedger
from memory.recall.ranking.corpus import Corpus
from memory.recall.working_set.working_sets import WorkingSetLimits, WorkingSets
from memory.runtime.metrics import Metrics

DIMENSION = 8
HANG_SECONDS = 30.0
PATIENCE = 2 * HANG_SECONDS
IMPATIENT = 0.01  # seconds: of a chat where the store, or the user who is written to, does not get ready
LOCK_WAIT_SECONDS = 60.0  # each of several writes under one lock takes a busy Milvus server a second


def opened(server: RealMilvus, collection: str) -> MilvusStore:
    address = server.address(collection, DIMENSION)
    return MilvusStore(address, metrics=Metrics(CollectorRegistry()), timeouts=PATIENT)


class Watched:
    """A store whose calls are counted, refused, or answered only when `gate` is open (with what they read before).

    Without one, a store in memory.
    """

    def __init__(self, store: MemoryStore | UserLedger | None = None) -> None:
        self.inner = store or InMemoryStore(dimension=DIMENSION)
        self.gated: tuple[str, ...] = ()  # names of calls; none: all of them
        self.calls: list[str] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.is_down = False
        self.under_way = self.most_under_way = 0

    def close(self, *gated: str) -> None:
        self.gated = gated
        self.gate.clear()

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self.inner, name)

        async def call(*arguments: Any, **options: Any) -> Any:
            self.calls.append(name)
            if self.is_down:
                raise Unavailable("milvus", "switched off by the test")
            self.under_way += 1
            self.most_under_way = max(self.most_under_way, self.under_way)
            try:
                answer = await attribute(*arguments, **options)
                if not self.gated or name in self.gated:
                    await self.gate.wait()
                return answer
            finally:
                self.under_way -= 1

        return call


@dataclass
class World:
    """One filter's sets, and two other processes that write."""

    sets: WorkingSets
    store: Any  # a `MemoryStore`
    writers: tuple[UserLedger, UserLedger]
    ledger: Any = None  # the filter's own, watched

    async def write(self, *memories: Memory, forget: tuple[str, ...] = (), writer: int = 0) -> None:
        """As the library and the worker do it."""
        user_id = memories[0].user_id if memories else "ann"
        async with self.writers[writer].write(user_id) as held:
            held.touch([memory.id for memory in memories])
            if forget:
                await held.forget(forget)
                await self.store.delete(user_id, forget)
            if memories:
                await self.put(*memories)

    async def put(self, *memories: Memory) -> None:
        changes = [Change(ChangeKind.CREATE, memory) for memory in memories]
        await self.store.apply(memories[0].user_id, changes, vectors(len(memories)))

    async def seen(self, user_id: str = "ann", *, waits: bool = True) -> dict[str, str] | None:
        """What a request would search: content by id."""
        async with asyncio.timeout(HANG_SECONDS):
            corpus = await self.sets.corpus(user_id, waits=waits)
        return None if corpus is None else contents(corpus)


def contents(corpus: Corpus) -> dict[str, str]:
    layout = corpus.prepare()
    return {memory.id: memory.content for memory in layout.memories}


def vectors(count: int) -> Any:
    grid = np.ones((count, DIMENSION), dtype=np.float32)
    return grid / np.linalg.norm(grid, axis=1, keepdims=True)


def memory(memory_id: str, content: str = "", *, user: str = "ann") -> Memory:
    return memory_rows.memory(memory_id, content, user_id=user, at=1)


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(HANG_SECONDS):
        while not holds():
            await asyncio.sleep(0.001)


@asynccontextmanager
async def world(folder: Path, store: Any = None, *, patience: float = PATIENCE, **bounds: Any) -> AsyncIterator[World]:
    """Chats wait for sets as if time were nothing, unless they have less `patience`. `bounds`: further limits.

    Without a store, on a watched one in memory.
    """
    store = store or Watched()
    limits = WorkingSetLimits(patience=patience, search_patience=PATIENCE, **bounds)
    async with AsyncExitStack() as stack:
        own, worker, api = [await stack.enter_async_context(process(folder)) for _ in range(3)]
        ledger: Any = Watched(own)
        sets = WorkingSets(store=store, ledger=ledger, dimension=DIMENSION, limits=limits)
        yield World(await stack.enter_async_context(sets), store, (worker, api), ledger)


@asynccontextmanager
async def process(folder: Path) -> AsyncIterator[UserLedger]:
    """The ledger of one more process on the same file."""
    async with SqliteDatabase(folder / "turns.sqlite") as database:
        yield SqlUserLedger(database, clock=lambda: 0.0, wait_seconds=LOCK_WAIT_SECONDS)
