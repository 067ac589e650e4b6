"""A search by claim compares the claims of all memories of a user: in a thread, while others are served."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import memory.recall.retrieval as retrieval_module
from memory.adapters.in_memory import InMemoryStore
from memory.model import Change, ChangeKind, Memory, Query, Question, Record, Scope
from memory.model.claim_filters import ClaimFilter
from memory.ports import Revision
from memory.recall.project_access import ReadableProjects
from memory.recall.ranking.corpus import Corpus
from memory.recall.ranking.ranking import CANDIDATES_MAX, Ranked
from memory.recall.retrieval import COMPARISONS_MAX, Retrieval
from memory.recall.working_set.working_set import Prefetch

NOW = 1_750_000_000.0
PETS = ClaimFilter(subject="pet", value="red meat")


@dataclass
class ChangingSet:
    """The user's set, after each look at it changed by somebody else."""

    held: Corpus | None
    changes: list[Callable[[], None]] = field(default_factory=list)
    looks: int = 0

    def searching(self) -> AbstractContextManager[None]:
        raise AssertionError("for chats")

    def prefetch(self, user_id: str, revision: Revision | None = None) -> Prefetch:
        return Prefetch()

    async def corpus(
        self, user_id: str, *, waits: bool = False, prefetch: object = None, seconds: float = 0.0
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


async def found(held: ChangingSet, store: InMemoryStore, claim: ClaimFilter = PETS) -> Ranked:
    retrieval = Retrieval(corpora=held, store=store, projects=ReadableProjects(None))  # type: ignore[arg-type]  # none is named
    asked = Question(Query("Who eats meat?"), Scope("ann"), NOW + 60, claim=claim)
    return await retrieval.ranked(asked, TOM.vector, waits=True)


async def test_only_memories_with_the_claim_are_found_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[int] = []
    compare = retrieval_module.rows_with_claim

    def compared(*given: Any) -> Any:
        threads.append(threading.get_ident())
        return compare(*given)

    monkeypatch.setattr(retrieval_module, "rows_with_claim", compared)
    held, store = ChangingSet(Corpus([TOM, REX, ANN], dimension=8)), InMemoryStore(dimension=8)
    assert sorted((await found(held, store)).ids) == ["rex", "tom"]
    assert (await found(held, store, ClaimFilter(name="rex"))).ids == ("rex",)
    assert threading.get_ident() not in threads != []


async def test_what_is_written_and_deleted_while_claims_are_compared_counts() -> None:
    corpus = Corpus([TOM, ANN], dimension=8)
    loaded = ChangingSet(corpus, [lambda: corpus.add(REX), lambda: corpus.remove("tom")])
    assert (await found(loaded, InMemoryStore(dimension=8))).ids == ("rex",)
    assert loaded.looks == 1 + COMPARISONS_MAX


@pytest.mark.parametrize("is_loaded", [True, False])
async def test_of_a_set_that_always_changes_or_is_not_there_the_store_is_asked(*, is_loaded: bool) -> None:
    """Also where more memories are nearer than a search of the store returns."""
    store, crowd = InMemoryStore(dimension=8), [record(f"n{n}", TOM.memory.content) for n in range(CANDIDATES_MAX)]
    for one in (*crowd, TOM, REX, ANN):
        await store.apply("ann", [Change(ChangeKind.CREATE, one.memory)], one.vector[np.newaxis])
    corpus = Corpus([ANN], dimension=8)
    loaded = ChangingSet(corpus if is_loaded else None, [lambda: corpus.add(ANN)] * COMPARISONS_MAX)
    assert sorted((await found(loaded, store)).ids) == ["rex", "tom"]
