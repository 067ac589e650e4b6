"""A search by claim compares the claims of all memories of a user: in a thread, while others are served."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

import numpy as np
import pytest

from memory.adapters.in_memory import InMemoryStore
from memory.model import Change, ChangeKind, Memory, Query, Question, Record, Scope
from memory.model.claim_filters import ClaimFilter
from memory.recall.ranking.corpus import Corpus
from memory.recall.ranking.ranking import Ranked
from memory.recall.retrieval import COMPARISONS_MAX, Expected, Retrieval

NOW = 1_750_000_000.0
PETS = ClaimFilter(subject="pet", value="red meat")
TOMS = ClaimFilter(subject="pet", name="tom")


@dataclass
class ChangingSet:
    """The user's set, after each look at it changed by somebody else."""

    held: Corpus | None
    changes: list[Callable[[], None]] = field(default_factory=list)
    looks: int = 0

    def searching(self) -> AbstractContextManager[None]:
        raise AssertionError("for chats")

    def expect(self, user_id: str) -> Expected:
        return Expected()

    async def corpus(
        self, user_id: str, *, waits: bool = False, expected: object = None, seconds: float = 0.0
    ) -> Corpus | None:
        assert (user_id, waits) == ("ann", True)
        if self.looks and self.changes:
            self.changes.pop(0)()
        self.looks += 1
        return self.held


def record(memory_id: str, content: str, **claim: object) -> Record:
    vector = np.zeros(8, dtype=np.float32)
    vector[len(content) % 8] = 1.0
    return Record(Memory(memory_id, "ann", content, NOW, NOW, NOW, **claim), vector)  # type: ignore[arg-type]


TOM = record("tom", "My cat Tom eats red meat", subject="pet", name="Tom", values=("Red Meat.",))
REX = record("rex", "My dog Rex eats red meat", subject="pet", name="Rex", values=("fish", "red meat"))
ANN = record("ann", "I eat red meat", values=("red meat",))


async def found(retrieval: Retrieval, claim: ClaimFilter = PETS) -> Ranked:
    asked = Question(Query("Who eats meat?"), Scope("ann"), NOW + 60, claim=claim)
    return await retrieval.ranked(asked, TOM.vector, waits=True)


async def test_only_memories_with_the_claim_are_found() -> None:
    store, loaded = InMemoryStore(dimension=8), ChangingSet(Corpus([TOM, REX, ANN], dimension=8))
    ranked = await found(Retrieval(corpora=loaded, store=store))
    assert sorted(ranked.ids) == ["rex", "tom"]
    assert await found(Retrieval(corpora=loaded, store=store), ClaimFilter(name="rex")) != ranked


async def test_what_is_written_and_deleted_while_claims_are_compared_counts() -> None:
    corpus = Corpus([TOM, ANN], dimension=8)
    loaded = ChangingSet(corpus, [lambda: corpus.add(REX), lambda: corpus.remove("tom")])
    ranked = await found(Retrieval(corpora=loaded, store=InMemoryStore(dimension=8)))
    assert ranked.ids == ("rex",)
    assert loaded.looks == 1 + COMPARISONS_MAX


@pytest.mark.parametrize("is_loaded", [True, False])
async def test_of_a_set_that_always_changes_or_is_not_there_the_store_is_asked(*, is_loaded: bool) -> None:
    store = InMemoryStore(dimension=8)
    for one in (TOM, REX, ANN):
        await store.apply("ann", [Change(ChangeKind.CREATE, one.memory)], one.vector[np.newaxis])
    corpus = Corpus([ANN], dimension=8)
    loaded = ChangingSet(corpus if is_loaded else None, [lambda: corpus.add(ANN)] * COMPARISONS_MAX)
    ranked = await found(Retrieval(corpora=loaded, store=store))
    assert sorted(ranked.ids) == ["rex", "tom"]


@pytest.mark.soak("judges for how long the event loop is held")
async def test_comparing_the_claims_of_5000_memories_holds_nobody_up() -> None:
    numbers = range(5_000)
    rows = [
        record(f"m-{n}", f"Fact number {n}", subject="Pet.", name=f"The {n}th one", values=("tea",)) for n in numbers
    ]
    corpus = Corpus([*rows, TOM], dimension=8)
    corpus.prepare()
    retrieval = Retrieval(corpora=ChangingSet(corpus), store=InMemoryStore(dimension=8))
    await found(retrieval, TOMS)  # imports, and what is made once
    gaps, has_ended = list[float](), False

    async def tick() -> None:
        last = time.perf_counter()
        while not has_ended:
            await asyncio.sleep(0)
            now = time.perf_counter()
            gaps.append(now - last)
            last = now

    async with asyncio.TaskGroup() as group:
        group.create_task(tick())
        await asyncio.sleep(0)  # it has begun
        began_at = time.perf_counter()
        ranked = await found(retrieval, TOMS)
        seconds = time.perf_counter() - began_at
        await asyncio.sleep(0)
        has_ended = True
    assert ranked.ids == ("tom",)
    assert max(gaps) < seconds / 2, "on the loop it is held for all of it, 0.1 s"
