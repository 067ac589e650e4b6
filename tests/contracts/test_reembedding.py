"""What embedding all memories again keeps, wherever it is broken off, on every adapter."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest
from in_memory_copies import InMemoryReembedding, others_of
from memory_rows import DIMENSION, memory, put
from milvus_kinds import MILVUS_KINDS, PATIENT, real_milvus
from prometheus_client import CollectorRegistry

from memory.adapters.in_memory import InMemoryStore
from memory.adapters.milvus.connection import MilvusAddress
from memory.adapters.milvus.reembedding import MilvusReembedding
from memory.adapters.milvus.store import MilvusStore
from memory.model import Evidence, Memory, MemoryStatus, Scope, Turn, VectorOrigin
from memory.model.raw_words import answer_rows_of, embedded_text
from memory.ports import MemoryFilter, MemoryStore, Reembedding, StoredText
from memory.runtime.metrics import Metrics

OLD = VectorOrigin("old", DIMENSION)
WIDER = VectorOrigin("wider", DIMENSION * 2)
SAME_LENGTH = VectorOrigin("another", DIMENSION)
NUMBERS = itertools.count()


@dataclass
class World:
    """A store as parts find it, and what embeds it again; each call opens anew, as another process would."""

    find: Callable[[VectorOrigin], MemoryStore]
    embed: Callable[[VectorOrigin], Reembedding]
    leftovers: Callable[[], int]  # sets of vectors that no part finds: an attempt, or what was replaced


@pytest.fixture(params=["in memory", *MILVUS_KINDS])
async def world(request: pytest.FixtureRequest) -> AsyncIterator[World]:
    if request.param == "in memory":
        store = InMemoryStore(dimension=DIMENSION)
        yield World(lambda _: store, lambda wanted: InMemoryReembedding(store, wanted), lambda: len(others_of(store)))
        return
    server = real_milvus(request, request.param)
    name, opened = f"r{next(NUMBERS)}", []

    def address(origin: VectorOrigin) -> MilvusAddress:
        return server.address(name, origin.dimension, origin)

    def find(origin: VectorOrigin) -> MemoryStore:
        opened.append(MilvusStore(address(origin), metrics=Metrics(CollectorRegistry()), timeouts=PATIENT))
        return opened[-1]

    def embed(wanted: VectorOrigin) -> Reembedding:
        metrics = Metrics(CollectorRegistry())
        opened.append(MilvusReembedding(address(wanted), wanted=wanted, metrics=metrics))
        return opened[-1]

    client = server.client()

    def leftovers() -> int:
        """One collection is what parts find."""
        return sum(one == name or one.startswith(f"{name}__") for one in client.list_collections()) - 1

    yield World(find, embed, leftovers)
    client.close()
    for one in opened:
        await one.__aexit__(None, None, None)


def stored() -> list[Memory]:
    """Of two users, in every status, with all that a row can hold."""
    full = memory(
        'full "quoted" \\ 猫',
        content='A "quoted" C:\\path\nbreak, NUL \x00, 猫 and 🐈',
        created_at=1_700_000_000.123456,
        invalid_at=-86_400.5,
        project_id="kitchen",
        access_count=3,
        evidence=(Evidence("lone \ud83d surrogate", "turn-2", "assistant"),),
        metadata={"tags": ["a", 1, 2.5, None, True], "big": 2**60},
    )
    statuses = [memory(f"of-{status}", status=status) for status in MemoryStatus]
    asked = Turn("turn-3", Scope("ann", session_id="s"), 5.0, ())
    answers = answer_rows_of(asked, "Try Sole.\nIt closes at ten.", question="Where can we eat?")
    return [full, *statuses, *answers, memory("bob-1", user_id="bob"), memory("z" * 256, user_id="bob")]


def vector_of(text: StoredText, wanted: VectorOrigin) -> np.ndarray:
    vector = np.zeros(wanted.dimension, dtype=np.float32)
    vector[sum(text.id.encode()) % wanted.dimension] = 1.0
    return vector


async def embed_all(store: Reembedding, wanted: VectorOrigin, *, most: int = 1_000) -> list[str]:
    """The ids of what was embedded, at most so many."""
    ids: list[str] = []
    async for texts in store.remaining():
        some = texts[: most - len(ids)]
        await store.put(some, np.stack([vector_of(text, wanted) for text in some]))
        ids += [text.id for text in some]
        if len(ids) == most:
            break
    return ids


async def found(store: MemoryStore) -> list[Memory]:
    every = [MemoryFilter(user, status=None, with_raw=True) for user in ("ann", "bob")]
    records = [record for where in every for record in await store.load(where, limit=100)]
    return sorted((record.memory for record in records), key=lambda one: one.id)


async def test_after_each_switch_all_memories_are_as_they_were_with_the_new_vectors(world: World) -> None:
    before, old = sorted(stored(), key=lambda one: one.id), OLD
    await put(world.find(OLD), *before)
    for wanted in (WIDER, SAME_LENGTH, replace(WIDER, document_prefix="passage: "), OLD):
        store = world.embed(wanted)
        remaining = [text async for texts in store.remaining() for text in texts]  # all of them, before it begins
        assert {(text.id, text.text) for text in remaining} == {(m.id, embedded_text(m)) for m in before}
        assert world.leftovers() == 0
        await store.begin()
        assert await embed_all(store, wanted) == sorted((m.id for m in before), key=str.encode)
        assert await embed_all(store, wanted) == []
        assert await store.remove_deleted()
        assert await found(world.find(old)) == before  # until the switch
        await store.switch()
        await store.clear()
        after, old = world.find(wanted), wanted
        assert await found(after) == before
        for user in ("ann", "bob"):
            for record in await after.load(MemoryFilter(user, status=None, with_raw=True), limit=100):
                expected = vector_of(StoredText(record.memory.id, "", {}), wanted)
                np.testing.assert_array_equal(record.vector, expected)
        standing = await world.embed(wanted).status()
        assert (standing.origin, standing.memories, world.leftovers()) == (wanted, len(before), 0)
    await put(after, memory("later"))
    assert len(await found(after)) == len(before) + 1


async def test_whoever_comes_after_a_kill_goes_on_and_loses_nothing_that_was_written_or_deleted(world: World) -> None:
    before = stored()
    await put(world.find(OLD), *before)
    first = world.embed(WIDER)
    await first.begin()
    done = await embed_all(first, WIDER, most=2)
    second = world.embed(WIDER)
    standing = await second.status()
    assert (standing.origin, standing.memories, standing.embedded) == (OLD, len(before), 2)
    await second.begin()
    assert set(await embed_all(second, WIDER)) == {m.id for m in before} - set(done)
    changed = memory("of-active", content="something else", updated_at=1_700_000_100.0)
    parts = world.find(OLD)
    await put(parts, changed, memory("new"))
    await parts.delete("ann", ["of-archived"])
    third = world.embed(WIDER)
    await third.begin()
    assert set(await embed_all(third, WIDER)) == {"of-active", "new"}
    assert await third.remove_deleted()
    await third.switch()
    after = {one.id: one for one in await found(world.find(WIDER))}
    assert after["of-active"] == changed
    assert "new" in after
    assert "of-archived" not in after
    fourth = world.embed(WIDER)
    assert ((await fourth.status()).origin, world.leftovers()) == (WIDER, 1)
    await fourth.clear()  # what is left after the switch
    assert world.leftovers() == 0
    assert {one.id: one for one in await found(world.find(WIDER))} == after


async def test_an_attempt_with_another_model_is_cleared_away_by_the_next(world: World) -> None:
    await put(world.find(OLD), *stored())
    first = world.embed(SAME_LENGTH)
    await first.begin()
    await embed_all(first, SAME_LENGTH)
    second = world.embed(WIDER)
    assert ((await second.status()).embedded, world.leftovers()) == (0, 1)
    await second.begin()
    assert (await world.embed(SAME_LENGTH).status()).embedded == 0
    assert len(await embed_all(second, WIDER)) == len(stored())
