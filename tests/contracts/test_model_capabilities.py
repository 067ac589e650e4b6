"""Model traits: what one filter learnt about a model's template, all filters know soon. On every adapter."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from note_books import BOOKS, Bounds, Opener
from turn_logs import ManualClock

from memory.model import Placement
from memory.ports import ModelCapabilities


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(params=sorted(BOOKS))
def open_books(request: pytest.FixtureRequest) -> Opener:
    return BOOKS[request.param]


@pytest.fixture
async def model_capabilities(
    open_books: Opener, tmp_path: Path, clock: ManualClock
) -> AsyncIterator[ModelCapabilities]:
    async with open_books(tmp_path, clock, Bounds()) as books:
        yield books.model_capabilities


@pytest.fixture
async def others(open_books: Opener, tmp_path: Path, clock: ManualClock) -> AsyncIterator[ModelCapabilities]:
    """Another process's."""
    async with open_books(tmp_path, clock, Bounds()) as books:
        yield books.model_capabilities


async def test_of_a_model_that_nobody_met_nothing_is_known(model_capabilities: ModelCapabilities) -> None:
    assert await model_capabilities.placement("qwen3") is None
    assert await model_capabilities.placement("") is None


async def test_what_was_learnt_is_known_at_once_here_and_within_seconds_elsewhere(
    model_capabilities: ModelCapabilities, others: ModelCapabilities, clock: ManualClock
) -> None:
    assert await model_capabilities.placement("qwen3") is None
    assert await others.placement("qwen3") is None
    await model_capabilities.learn("qwen3", Placement.SYSTEM)
    assert await model_capabilities.placement("qwen3") is Placement.SYSTEM
    clock.now += 10
    assert await others.placement("qwen3") is Placement.SYSTEM
    assert await others.placement("other") is None


async def test_lessons_only_become_more_careful_whoever_learns_them(
    model_capabilities: ModelCapabilities, others: ModelCapabilities
) -> None:
    await model_capabilities.learn("gemma", Placement.SYSTEM)
    await others.learn("gemma", Placement.OFF)
    await model_capabilities.learn("gemma", Placement.SYSTEM)
    assert await model_capabilities.placement("gemma") is Placement.OFF


async def test_a_lesson_is_forgotten_in_the_end(model_capabilities: ModelCapabilities, clock: ManualClock) -> None:
    await model_capabilities.learn("qwen3", Placement.OFF)
    clock.now += 365 * 86_400
    assert await model_capabilities.placement("qwen3") is None
    await model_capabilities.learn("qwen3", Placement.SYSTEM)
    assert await model_capabilities.placement("qwen3") is Placement.SYSTEM


@pytest.mark.parametrize("model", ["Qwen/Qwen3-8B", "模型", "\ud800", "x" * 100_000, "it's"])
async def test_any_name_that_a_client_may_send_is_taken(model_capabilities: ModelCapabilities, model: str) -> None:
    await model_capabilities.learn(model, Placement.SYSTEM)
    assert await model_capabilities.placement(model) is Placement.SYSTEM


async def test_a_flood_of_names_pushes_out_the_oldest_only(
    model_capabilities: ModelCapabilities, clock: ManualClock
) -> None:
    for n in range(1_010):
        clock.now += 0.001
        await model_capabilities.learn(f"model-{n}", Placement.SYSTEM)
    clock.now += 60
    assert await model_capabilities.placement("model-0") is None
    assert await model_capabilities.placement("model-1009") is Placement.SYSTEM
