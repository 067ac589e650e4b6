"""One run over memories that are embedded again: what it counts, when it switches, and when it refuses to."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hashing_embedder import HashingEmbedder
from in_memory_copies import InMemoryReembedding, InMemorySnapshots, others_of
from memory_rows import DIMENSION, memory, put

from memory.adapters.in_memory import InMemoryStore
from memory.errors import MemproxyError, Unavailable
from memory.model import Memory, Vector, VectorOrigin
from memory.ports import MemoryFilter, Outdated, ReembeddingStatus
from memory.service import reembedding
from memory.service.reembedding import Migrate, Reembed, Switch

OLD = VectorOrigin("old", DIMENSION)
NEW = VectorOrigin("new", 64)
COUNT = 30


async def filled(count: int = COUNT) -> InMemoryStore:
    store = InMemoryStore(dimension=DIMENSION)
    await put(store, *(memory(f"m{i}") for i in range(count)))
    return store


class Watch:
    """The ends of a run that its caller holds; `refusal` is what it finds when it looks for company."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, int]] = []
        self.refusal: MemproxyError | None = None

    def advance(self, done: int, total: int) -> None:
        self.seen.append((done, total))

    async def check_alone(self) -> None:
        if self.refusal is not None:
            raise self.refusal

    def run(self, run: Migrate) -> Awaitable[Switch]:
        return run.run(advance=self.advance, check_alone=self.check_alone)


def run_of(
    copies: InMemoryStore | InMemoryReembedding,
    embedder: HashingEmbedder | None = None,
    snapshots: InMemorySnapshots | None = None,
) -> Reembed:
    copies = InMemoryReembedding(copies, NEW) if isinstance(copies, InMemoryStore) else copies
    return Reembed(copies, embedder or HashingEmbedder(), snapshots or InMemorySnapshots(), wanted=NEW)


async def test_all_are_embedded_as_what_is_to_be_found_and_snapshots_are_gone() -> None:
    store, embedder, snapshots, watch = await filled(), HashingEmbedder(), InMemorySnapshots(), Watch()
    await snapshots.write("ann", b"of old vectors")
    outcome = await watch.run(run_of(store, embedder, snapshots))
    assert (outcome.is_needed, outcome.copied, outcome.status.memories) == (True, COUNT, COUNT)
    assert sorted(embedder.texts) == sorted(f"content of m{i}" for i in range(COUNT))
    assert (watch.seen[0], watch.seen[-1]) == ((0, COUNT), (COUNT, COUNT))
    assert snapshots.kept == {}
    assert {r.vector.shape for r in await store.load(MemoryFilter("ann"), limit=COUNT)} == {(64,)}


async def test_where_the_vectors_are_those_wanted_nothing_is_embedded_and_what_was_left_is_cleared() -> None:
    store, embedder, watch = await filled(), HashingEmbedder(), Watch()
    await watch.run(run_of(store, embedder))
    embedder.texts, snapshots = [], InMemorySnapshots()
    others_of(store)[OLD] = {}  # as when the run had been killed after the switch
    await snapshots.write("ann", b"of old vectors")
    outcome = await watch.run(run_of(store, embedder, snapshots))
    assert (outcome.is_needed, outcome.copied, embedder.texts) == (False, 0, [])
    assert others_of(store) == {}
    assert snapshots.kept == {}


class OfFewerMemories(InMemoryReembedding):
    """Its index is outdated, as a store in memory's never is."""

    async def status(self) -> ReembeddingStatus:
        return replace(await super().status(), outdated=Outdated.INDEX)


async def test_where_only_migrate_has_something_to_do_its_interrupted_copy_is_kept() -> None:
    store, embedder, watch = await filled(), HashingEmbedder(), Watch()
    others_of(store)[OLD] = copied = dict(list(store._records.items())[:2])
    run = Reembed(OfFewerMemories(store, OLD), embedder, InMemorySnapshots(), wanted=OLD)
    outcome = await watch.run(run)
    assert (outcome.is_needed, outcome.status.outdated, embedder.texts) == (False, Outdated.INDEX, [])
    assert others_of(store) == {OLD: copied}


async def test_migrate_keeps_what_an_interrupted_run_with_another_model_has_embedded() -> None:
    store, watch = await filled(), Watch()
    others_of(store)[NEW] = embedded = dict(list(store._records.items())[:2])
    migrate = Migrate(InMemoryReembedding(store, NEW), wanted=NEW)
    assert (await watch.run(migrate)).copied == 0
    assert others_of(store) == {NEW: embedded}
    migrate = Migrate(InMemoryReembedding(store, OLD), wanted=OLD)
    await watch.run(migrate)
    assert others_of(store) == {}, "nothing is left to do with it"


async def test_an_embedder_that_stays_away_ends_the_run_and_the_next_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reembedding, "RETRY_PAUSES_SECONDS", (0.0,))
    store, embedder, watch = await filled(), HashingEmbedder(), Watch()

    def cut(done: int, total: int) -> None:
        embedder.is_down = done >= COUNT // 2

    with pytest.raises(Unavailable, match="embedder"):
        await run_of(store, embedder).run(advance=cut, check_alone=watch.check_alone)
    assert (await InMemoryReembedding(store, NEW).status()).origin == OLD
    embedder.is_down = False
    assert (await watch.run(run_of(store, embedder))).copied == COUNT - COUNT // 2
    assert watch.seen[0] == (COUNT // 2, COUNT)


async def test_a_moment_without_the_embedder_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reembedding, "RETRY_PAUSES_SECONDS", (0.0, 0.0))

    class Shaky(HashingEmbedder):
        async def embed(self, texts: Sequence[str], *, is_urgent: bool, as_query: bool = False) -> Vector:
            assert (is_urgent, as_query) == (False, False)
            self.is_down = not self.is_down
            return await super().embed(texts, is_urgent=is_urgent)

    store, watch = await filled(), Watch()
    assert (await watch.run(run_of(store, Shaky()))).copied == COUNT


class Busy(InMemoryReembedding):
    """Memories keep changing."""

    writes = 0

    async def remove_deleted(self) -> bool:
        self.writes += 1
        await put(self._store, memory(f"late-{self.writes}"))
        return await super().remove_deleted()


@pytest.mark.parametrize(("copies", "why"), [(InMemoryReembedding, "a worker runs"), (Busy, "stop whatever writes")])
async def test_it_does_not_switch_where_somebody_came_or_memories_keep_changing(copies: Any, why: str) -> None:
    store, watch = await filled(), Watch()
    watch.refusal = Unavailable("milvus", "a worker runs") if copies is InMemoryReembedding else None
    with pytest.raises(Unavailable, match=why):
        await watch.run(run_of(copies(store, NEW)))
    assert (await InMemoryReembedding(store, NEW).status()).origin == OLD


@pytest.mark.parametrize("late", [memory("late"), memory("m0", content="something else")], ids=["new", "changed"])
async def test_what_was_written_while_it_ran_comes_as_it_is_now(late: Memory) -> None:
    store, watch = await filled(), Watch()

    class Once(InMemoryReembedding):
        async def remove_deleted(self) -> bool:
            await put(store, late)
            return await super().remove_deleted()

    await watch.run(run_of(Once(store, NEW)))
    assert [record.memory for record in await store.get("ann", [late.id])] == [late]
    assert len(await store.load(MemoryFilter("ann"), limit=100)) == (COUNT if late.id == "m0" else COUNT + 1)


async def test_an_estimate_embeds_a_sample_and_changes_nothing() -> None:
    store, embedder, snapshots = await filled(200), HashingEmbedder(), InMemorySnapshots()
    await snapshots.write("ann", b"kept")
    estimate = await run_of(store, embedder, snapshots).estimate()
    assert (estimate.is_needed, estimate.status.memories) == (True, 200)
    assert estimate.seconds > 0
    assert len(embedder.texts) == reembedding.SAMPLE_TEXTS
    assert (others_of(store), snapshots.kept) == ({}, {"ann": b"kept"})
