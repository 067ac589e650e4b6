"""Recall never fails a request, never holds one past the deadline, and sheds before it costs an embedding."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from api_shapes import ASKED_RESPONSES, AskedShape
from recall_rig import SETTINGS, request_of, rigged

from memory.model import Placement, RecallStatus, Scope
from memory.recall.pipeline import RecallSettings


async def test_a_late_embedding_ends_at_the_deadline(tmp_path: Path) -> None:
    async with rigged(tmp_path) as rig:
        rig.embedder.seconds = 5.0
        outcome = await rig.recall.recall(Scope("u"), request_of("Where is my kayak?"))
        assert (outcome.status, outcome.reason) == (RecallStatus.UNAVAILABLE, "deadline")


async def test_an_embedder_that_is_down_costs_the_memory_and_not_the_request(tmp_path: Path) -> None:
    async with rigged(tmp_path) as rig:
        rig.embedder.is_down = True
        outcome = await rig.recall.recall(Scope("u"), request_of("Where is my kayak?"))
        assert (outcome.status, outcome.reason, outcome.notes) == (RecallStatus.UNAVAILABLE, "embedder", ())
        rig.embedder.is_down = False
        again = await rig.recall.recall(Scope("u"), request_of("Where did I store my kayak?"))
        assert again.status is RecallStatus.USED


async def test_a_question_is_embedded_as_one(tmp_path: Path) -> None:
    async with rigged(tmp_path) as rig:
        await rig.recall.recall(Scope("u"), request_of("Where is my kayak?"))
        assert rig.embedder.is_asked_as_query


async def test_what_is_too_much_is_shed_before_it_costs_an_embedding(tmp_path: Path) -> None:
    async with rigged(tmp_path) as rig:
        rig.embedder.seconds = 0.1
        asking = [rig.recall.recall(Scope("u"), request_of(f"Where is my kayak number {n}?")) for n in range(12)]
        outcomes = await asyncio.gather(*asking)
        assert rig.embedder.calls == SETTINGS.in_flight_max
        assert sum(outcome.reason == "busy" for outcome in outcomes) == 12 - SETTINGS.in_flight_max
        assert rig.metrics.registry.get_sample_value("memproxy_recall_shed_total") == 12 - SETTINGS.in_flight_max


@pytest.mark.parametrize(
    ("wanted", "learnt", "placed"),
    [
        (Placement.BEFORE_LAST_USER, None, "middle"),
        (Placement.BEFORE_LAST_USER, Placement.SYSTEM, "system"),
        (Placement.SYSTEM, None, "system"),
        (Placement.OFF, Placement.SYSTEM, "nowhere"),
    ],
)
async def test_of_setting_and_lesson_the_more_careful_one_counts(
    tmp_path: Path, asked_shape: AskedShape, wanted: Placement, learnt: Placement | None, placed: str
) -> None:
    """But for the Responses API: there a note stands inside the last user message, and no template refuses that."""
    if asked_shape is ASKED_RESPONSES and wanted is Placement.BEFORE_LAST_USER:
        placed = "middle"
    settings = RecallSettings(deadline_seconds=1.0, placement=wanted)
    async with rigged(tmp_path, settings) as rig:
        if learnt is not None:
            await rig.model_capabilities.learn("m", learnt)
        outcome = await rig.recall.recall(Scope("u"), request_of("Where is my kayak stored now?"))
        where = "nowhere" if not outcome.notes else "system" if outcome.notes[0].before is None else "middle"
        assert where == placed


async def test_a_request_may_switch_memory_off(tmp_path: Path) -> None:
    async with rigged(tmp_path) as rig:
        outcome = await rig.recall.recall(Scope("u"), request_of("Where is my kayak?", enabled=False))
        assert (outcome.status, rig.embedder.calls) == (RecallStatus.DISABLED, 0)
