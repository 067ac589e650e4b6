"""A working set answers learning as the store does, and only for what it holds."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recall_rig import Rig

from memory.adapters.in_memory import InMemoryStore
from memory.model import Change, ChangeKind, Memory, MemoryStatus, Record, Vector, statement_key
from memory.ports import MemoryFilter
from memory.recall.ranking.corpus import Corpus
from memory.recall.working_set import working_sets
from memory.recall.working_set.corpus_memories import CorpusMemories

NOW = 1_765_800_000.0
DIMENSION = 8
TEXTS = ("I keep bees", "i keep bees.", "We moved to Graz", "My sister lives in Graz", "The lease ends in May")

rows = st.lists(
    st.tuples(
        st.sampled_from(TEXTS),
        st.sampled_from(["", "work"]),
        st.sampled_from([MemoryStatus.ACTIVE, MemoryStatus.ACTIVE, MemoryStatus.SUPERSEDED]),
        st.integers(0, 2**16),
    ),
    max_size=20,
)
Row = tuple[str, str, MemoryStatus, int]


def records_of(found: list[Row]) -> list[Record]:
    return [
        Record(
            Memory(f"m{number}", "ann", content, NOW + number, NOW, NOW, project_id=project, status=status), unit(seed)
        )
        for number, (content, project, status, seed) in enumerate(found)
    ]


def unit(seed: int) -> Vector:
    vector = np.random.default_rng(seed).normal(size=DIMENSION).astype(np.float32)
    return vector / np.linalg.norm(vector)


def ids(found: list[Record] | None) -> list[str] | None:
    return None if found is None else sorted(record.memory.id for record in found)


@settings(derandomize=True, deadline=None)
@given(
    found=rows,
    project=st.sampled_from([None, "", "work", "other"]),
    status=st.sampled_from([MemoryStatus.ACTIVE, MemoryStatus.SUPERSEDED]),
    limit=st.integers(0, 6),
    most=st.integers(0, 12),
)
def test_it_answers_as_the_store_does(found: Any, project: Any, status: MemoryStatus, limit: int, most: int) -> None:
    async def compare() -> None:
        records, store = records_of(found), InMemoryStore(dimension=DIMENSION)
        if records:
            creating = [Change(ChangeKind.CREATE, record.memory) for record in records]
            await store.apply("ann", creating, np.stack([record.vector for record in records]))
        held = CorpusMemories("ann", Corpus(records, dimension=DIMENSION))
        where = MemoryFilter("ann", status=status)
        where = where if project is None else replace(where, project_id=project, exact_project=True)
        asked = np.stack([unit(1), unit(2)])
        assert ids(await held.load_few(where, most=most)) == ids(await store.load_few(where, most=most))
        assert ids(await held.nearest(where, asked, limit=limit)) == ids(await store.nearest(where, asked, limit=limit))
        in_graz = await held.nearest(where, asked, limit=limit, words=["Graz"])
        assert ids(in_graz) == ids(await store.nearest(where, asked, limit=limit, words=["Graz"]))
        key = statement_key("I keep BEES!")
        one, other = await held.same_statement(where, key), await store.same_statement(where, key)
        assert (one and one.memory) == (other and other.memory)
        wanted = ["m3", "m0", "nobody"]
        assert [r.memory for r in await held.get("ann", wanted)] == [r.memory for r in await store.get("ann", wanted)]

    asyncio.run(compare())


async def test_other_users_and_what_upkeep_put_away_are_not_its_business() -> None:
    held = CorpusMemories("ann", Corpus(records_of([(TEXTS[0], "", MemoryStatus.ACTIVE, 1)]), dimension=DIMENSION))
    assert await held.load_few(MemoryFilter("bob", exact_project=True), most=9) == []
    assert await held.get("bob", ["m0"]) == []
    for where in (
        MemoryFilter("ann", "work"),
        MemoryFilter("ann", exact_project=True, status=None),
        MemoryFilter("ann", exact_project=True, status=MemoryStatus.ARCHIVED),
        MemoryFilter("ann", exact_project=True, agent_id="a"),
    ):
        with pytest.raises(ValueError, match="a working set"):
            await held.load_few(where, most=9)


async def test_vectors_are_copies() -> None:
    corpus = Corpus(records_of([(TEXTS[0], "", MemoryStatus.ACTIVE, 1)]), dimension=DIMENSION)
    ((found,), before) = await CorpusMemories("ann", corpus).get("ann", ["m0"]), unit(1)
    corpus.remove("m0")
    assert np.allclose(found.vector, before)


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(working_sets, "LEARNING_PATIENCE_SECONDS", 30.0)


async def test_it_is_there_as_of_a_revision_or_not_at_all_and_without_one_as_it_stands_now(rig: Rig) -> None:
    assert await rig.corpora.as_of("nobody") is None
    assert await rig.corpora.corpus("u", waits=True) is not None
    before = (await rig.ledger.revision("u")).number
    assert await rig.corpora.as_of("u", before) is not None
    await rig.write(Memory("m2", "u", "We moved to Graz", NOW, NOW, NOW))
    after = (await rig.ledger.revision("u")).number
    assert await rig.corpora.as_of("u", before) is None
    held = await rig.corpora.as_of("u", after)
    assert ids(await held.get("u", ["m1", "m2"])) == ["m1", "m2"]
    await rig.write(Memory("m3", "u", "We moved to Linz", NOW, NOW, NOW))
    assert ids(await (await rig.corpora.as_of("u")).get("u", ["m3"])) == ["m3"]
    later = (await rig.ledger.revision("u")).number
    async with rig.ledger.write("u"):
        assert await rig.corpora.as_of("u", later + 1) is None
