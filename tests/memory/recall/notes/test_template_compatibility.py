"""What is learnt about a model's template, from whom, and what is not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from note_books import Bounds, sqlite_books
from prometheus_client import CollectorRegistry
from turn_logs import ManualClock

from memory.errors import Unavailable
from memory.model import Placement
from memory.ports import ModelCapabilities
from memory.recall.notes import template_compatibility
from memory.recall.notes.template_compatibility import (
    ACCEPTED_SECONDS_MAX,
    ASK_AGAIN_SECONDS,
    LAST_REFUSALS_MIN,
    TemplateCompatibility,
)
from memory.runtime.metrics import Metrics

MIDDLE, SYSTEM, OFF = Placement.BEFORE_LAST_USER, Placement.SYSTEM, Placement.OFF


@dataclass
class ToldTemplates:
    """`memory.ports.ChatTemplates` of a server that says what it was given, else nothing."""

    told: dict[str, Placement] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    seconds: float = 0.0

    async def placement(self, model: str) -> Placement | None:
        self.asked.append(model)
        await asyncio.sleep(self.seconds)
        return self.told.get(model)

    async def models(self) -> Sequence[str]:
        return tuple(self.told)


@dataclass
class Class:
    """The lessons with what they stand on."""

    template_compatibility: TemplateCompatibility
    model_capabilities: ModelCapabilities
    templates: ToldTemplates
    clock: ManualClock
    metrics: Metrics

    def switched(self, placement: str, source: str) -> float:
        labels = {"placement": placement, "source": source}
        return self.metrics.registry.get_sample_value("memproxy_placement_switched_total", labels) or 0.0


@pytest.fixture
async def taught(tmp_path: Path) -> AsyncIterator[Class]:
    clock, templates, metrics = ManualClock(), ToldTemplates(), Metrics(CollectorRegistry())
    async with sqlite_books(tmp_path, clock, Bounds()) as books:
        learning = TemplateCompatibility(
            model_capabilities=books.model_capabilities, templates=templates, clock=clock, metrics=metrics
        )
        yield Class(learning, books.model_capabilities, templates, clock, metrics)


async def test_a_refusal_in_the_middle_switches_that_model_alone(taught: Class) -> None:
    await taught.template_compatibility.refused("strict", MIDDLE)
    assert await taught.model_capabilities.placement("strict") is SYSTEM
    assert await taught.model_capabilities.placement("other") is None
    assert taught.switched("system", "refused") == 1


async def test_refusals_on_their_way_when_the_switch_came_are_no_news(taught: Class) -> None:
    await asyncio.gather(*(taught.template_compatibility.refused("strict", MIDDLE) for _ in range(10)))
    assert await taught.model_capabilities.placement("strict") is SYSTEM
    assert taught.switched("system", "refused") == 1


async def test_notes_are_switched_off_only_after_several_refusals_in_a_row(taught: Class) -> None:
    for _ in range(LAST_REFUSALS_MIN - 1):
        await taught.template_compatibility.refused("none", SYSTEM)
    assert await taught.model_capabilities.placement("none") is None
    taught.template_compatibility.accepted("none", SYSTEM)
    taught.clock.now += ACCEPTED_SECONDS_MAX + 1
    for _ in range(LAST_REFUSALS_MIN - 1):
        await taught.template_compatibility.refused("none", SYSTEM)
    assert await taught.model_capabilities.placement("none") is None
    await taught.template_compatibility.refused("none", SYSTEM)
    assert await taught.model_capabilities.placement("none") is OFF


async def test_a_bad_request_of_one_client_takes_nothing_from_a_model_that_takes_notes(taught: Class) -> None:
    for placement in (MIDDLE, SYSTEM):
        taught.template_compatibility.accepted("good", placement)
        for _ in range(20):
            await taught.template_compatibility.refused("good", placement)
    assert await taught.model_capabilities.placement("good") is None


async def test_a_note_that_was_taken_long_ago_says_nothing_about_today(taught: Class) -> None:
    taught.template_compatibility.accepted("replaced", MIDDLE)
    taught.clock.now += ACCEPTED_SECONDS_MAX + 1
    await taught.template_compatibility.refused("replaced", MIDDLE)
    assert await taught.model_capabilities.placement("replaced") is SYSTEM


async def test_models_that_the_server_names_are_met_before_their_first_chat(taught: Class) -> None:
    taught.templates.told = {"strict": SYSTEM, "good": MIDDLE}
    await taught.template_compatibility.probe_served_models()
    assert [await taught.model_capabilities.placement(model) for model in ("strict", "good")] == [SYSTEM, None]
    assert [taught.template_compatibility.is_new(model) for model in ("strict", "good", "unlisted")] == [
        False,
        False,
        True,
    ]


async def test_a_server_that_does_not_answer_about_its_models_is_not_waited_for(
    taught: Class, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(template_compatibility, "PROBE_SECONDS_MAX", 0.05)
    taught.templates.told, taught.templates.seconds = {"slow": SYSTEM}, 30.0
    async with asyncio.timeout(5):
        await taught.template_compatibility.probe_served_models()
    assert await taught.model_capabilities.placement("slow") is None
    taught.clock.now += ASK_AGAIN_SECONDS
    assert taught.template_compatibility.is_new("slow")


async def test_the_server_s_own_word_goes_before_any_refusal(taught: Class) -> None:
    taught.templates.told = {"good": MIDDLE, "none": OFF}
    for _ in range(20):
        await taught.template_compatibility.refused("good", MIDDLE)
        await taught.template_compatibility.refused("good", SYSTEM)
    assert await taught.model_capabilities.placement("good") is None
    await taught.template_compatibility.refused("none", MIDDLE)
    assert await taught.model_capabilities.placement("none") is OFF
    assert taught.switched("off", "asked") == 1


@pytest.mark.parametrize("told", [SYSTEM, OFF])
async def test_what_the_server_says_when_a_model_is_met_is_learnt(taught: Class, told: Placement) -> None:
    taught.templates.told = {"strict": told, "good": MIDDLE}
    for model in ("strict", "good", "unknown"):
        await taught.template_compatibility.probe(model)
    assert [await taught.model_capabilities.placement(model) for model in ("strict", "good", "unknown")] == [
        told,
        None,
        None,
    ]


async def test_a_model_is_met_once_the_server_has_answered_and_not_before(taught: Class) -> None:
    taught.templates.told = {"m": MIDDLE}
    assert taught.template_compatibility.is_new("m")
    assert taught.template_compatibility.is_new("m")  # whoever asked was cut off before the answer
    await taught.template_compatibility.probe("m")
    taught.clock.now += 10 * ASK_AGAIN_SECONDS
    assert not taught.template_compatibility.is_new("m")
    assert taught.template_compatibility.is_new("n")


async def test_while_one_asks_about_a_model_nobody_else_does(taught: Class) -> None:
    taught.templates.seconds = 0.05
    async with asyncio.TaskGroup() as group:
        group.create_task(taught.template_compatibility.probe("m"))
        await asyncio.sleep(0.01)
        assert not taught.template_compatibility.is_new("m")


async def test_a_server_that_could_not_tell_is_asked_again_after_a_while(taught: Class) -> None:
    await taught.template_compatibility.probe("m")
    assert not taught.template_compatibility.is_new("m")
    taught.clock.now += ASK_AGAIN_SECONDS
    assert taught.template_compatibility.is_new("m")


async def test_a_model_is_not_asked_about_where_something_is_known(taught: Class) -> None:
    await taught.model_capabilities.learn("m", SYSTEM)
    await taught.template_compatibility.probe("m")
    assert taught.templates.asked == []
    assert not taught.template_compatibility.is_new("m")


class BrokenTraits:
    """`memory.ports.ModelCapabilities` of a database that is down."""

    async def placement(self, model: str) -> Placement | None:
        raise Unavailable("turn_log", "locked")

    async def learn(self, model: str, placement: Placement) -> None:
        raise Unavailable("turn_log", "locked")


async def test_a_database_that_is_down_is_nobody_s_trouble() -> None:
    metrics = Metrics(CollectorRegistry())
    template_compatibility = TemplateCompatibility(
        model_capabilities=BrokenTraits(), templates=ToldTemplates(), clock=ManualClock(), metrics=metrics
    )
    await template_compatibility.probe("m")
    await template_compatibility.refused("m", MIDDLE)


async def test_what_is_remembered_of_models_is_bounded(taught: Class) -> None:
    for number in range(1_005):
        await taught.template_compatibility.probe(f"m{number}")
    assert not taught.template_compatibility.is_new("m1004")
    assert taught.template_compatibility.is_new("m0")
