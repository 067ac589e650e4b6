"""What every embedder promises, on every adapter: the real model in this process, and a server over TCP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import numpy as np
import pytest
from foreign_embeddings import DIMENSION, running_foreign_embeddings
from own_embedder import own_embedder
from prometheus_client import CollectorRegistry

from memory.adapters.models.openai_embeddings import EmbeddingServer, OpenAiEmbedder
from memory.adapters.models.recent_vectors import EmbedderOnDemand
from memory.errors import Unavailable
from memory.ports import Embedder
from memory.runtime.metrics import Metrics

OWN_DIMENSION = 384
PATIENT_SECONDS = 20.0  # what is measured here is not speed
TEXTS = ["I have a cat", "猫", "", " ", "\x00", "half \ud83d of a cat", "🐈" * 600, "word " * 2_000, '"}\n{"input']


@pytest.fixture(params=["in this process", "on demand", "a server"])
async def embedder(request: pytest.FixtureRequest) -> AsyncIterator[Embedder]:
    if request.param == "on demand":
        async with EmbedderOnDemand(lambda: own_embedder(cache_texts=4), dimension=OWN_DIMENSION) as loaded_later:
            yield loaded_later
        return
    if request.param == "in this process":
        async with own_embedder(cache_texts=4) as own:
            yield own
        return
    async with running_foreign_embeddings() as server:
        there = EmbeddingServer(server.url, "any", DIMENSION, urgent_seconds=PATIENT_SECONDS, cache_texts=4)
        async with OpenAiEmbedder(there, metrics=Metrics(CollectorRegistry())) as other:
            yield other


@pytest.mark.parametrize("is_urgent", [True, False])
async def test_vectors_are_of_unit_length_and_one_for_each_text(embedder: Embedder, *, is_urgent: bool) -> None:
    vectors = await embedder.embed(TEXTS, is_urgent=is_urgent)
    assert (vectors.shape, vectors.dtype) == ((len(TEXTS), embedder.dimension), np.float32)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)
    assert (await embedder.embed([], is_urgent=is_urgent)).shape == (0, embedder.dimension)


async def test_each_text_gets_its_own_vector_wherever_it_stands(embedder: Embedder) -> None:
    """Also among more than fit into one call."""
    texts = ["I have a cat", "My sister lives in Oslo", "I have a cat", *(f"note {i}" for i in range(297))]
    some = [299, 256, 255, 2, 1, 0]
    vectors = await embedder.embed(texts, is_urgent=False)
    again = await embedder.embed([texts[i] for i in some], is_urgent=True)
    np.testing.assert_allclose(vectors[some], again, atol=1e-4)
    np.testing.assert_array_equal(vectors[0], vectors[2])
    assert float(vectors[0] @ vectors[1]) < 0.9


async def test_the_caller_may_change_what_he_got_without_harm_to_others(embedder: Embedder) -> None:
    first = await embedder.embed(["I have a cat"], is_urgent=True)
    kept = first.copy()
    first[:] = 0.0
    np.testing.assert_array_equal(await embedder.embed(["I have a cat"], is_urgent=True), kept)


async def test_on_demand_it_is_opened_once_and_closed_at_the_end_and_a_failure_is_tried_again() -> None:
    opened: list[str] = []

    @asynccontextmanager
    async def opening() -> AsyncIterator[Embedder]:
        opened.append("tried")
        if len(opened) == 1:
            raise Unavailable("embedder", "not prepared yet")
        async with own_embedder() as own:
            yield own
            opened.append("closed")

    async with EmbedderOnDemand(opening, dimension=OWN_DIMENSION) as embedder:
        assert opened == []
        with pytest.raises(Unavailable):
            await embedder.embed(["I have a cat"], is_urgent=True)
        await asyncio.gather(*(embedder.embed(["I have a cat"], is_urgent=False) for _ in range(3)))
        assert opened == ["tried", "tried"]
    assert opened == ["tried", "tried", "closed"]
