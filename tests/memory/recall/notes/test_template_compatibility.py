"""What is learnt about a model's template, from whom, and what is not."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from prometheus_client import CollectorRegistry
from turn_logs import ManualClock

from memory.errors import Unavailable
from memory.model import Placement
from memory.recall.notes import template_compatibility
from memory.recall.notes.template_compatibility import TemplateCompatibility
from memory.runtime.metrics import Metrics

MIDDLE, SYSTEM, OFF = Placement.BEFORE_LAST_USER, Placement.SYSTEM, Placement.OFF


@dataclass
class ToldTemplates:
    """`memory.ports.ChatTemplates` of a server that says what it was given, else nothing."""

    told: dict[str, Placement] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    may_answer: asyncio.Event | None = None

    async def placement(self, model: str) -> Placement | None:
        self.asked.append(model)
        await asyncio.sleep(0)
        if self.may_answer is not None:
            await self.may_answer.wait()
        return self.told.get(model)

    async def models(self) -> Sequence[str]:
        return tuple(self.told)


@dataclass
class Placements:
    """`memory.ports.ModelCapabilities` that is a dictionary."""

    known: dict[str, Placement] = field(default_factory=dict)
    is_down: bool = False

    async def placement(self, model: str) -> Placement | None:
        await asyncio.sleep(0)
        if self.is_down:
            raise Unavailable("turn_log", "locked")
        return self.known.get(model)

    async def learn(self, model: str, placement: Placement) -> None:
        await asyncio.sleep(0)
        self.known[model] = placement


class Class(TemplateCompatibility):
    """With what its lessons stand on."""

    def __init__(self) -> None:
        self.clock, self.templates, self.metrics = ManualClock(), ToldTemplates(), Metrics(CollectorRegistry())
        self.placements = Placements()
        super().__init__(
            model_capabilities=self.placements, templates=self.templates, clock=self.clock, metrics=self.metrics
        )

    def switched(self, placement: str, source: str) -> float:
        labels = {"placement": placement, "source": source}
        return self.metrics.registry.get_sample_value("memproxy_placement_switched_total", labels) or 0.0


@pytest.fixture
def taught() -> Class:
    return Class()


async def test_refusals_in_the_middle_switch_that_model_alone_and_those_on_their_way_are_no_news(taught: Class) -> None:
    await asyncio.gather(*(taught.refused("strict", MIDDLE) for _ in range(10)))
    assert taught.placements.known.get("strict") is SYSTEM
    assert taught.placements.known.get("other") is None
    assert taught.switched("system", "refused") == 1


async def test_notes_are_switched_off_only_after_several_refusals_in_a_row(taught: Class) -> None:
    for _ in range(2):
        for _ in range(template_compatibility.LAST_REFUSALS_MIN - 1):
            await taught.refused("none", SYSTEM)
        assert taught.placements.known.get("none") is None
        taught.accepted("none", SYSTEM)
        taught.clock.now += template_compatibility.ACCEPTED_SECONDS_MAX + 1
    for _ in range(template_compatibility.LAST_REFUSALS_MIN):
        await taught.refused("none", SYSTEM)
    assert taught.placements.known.get("none") is OFF


async def test_bad_requests_take_nothing_from_a_model_that_has_taken_notes_lately(taught: Class) -> None:
    for placement in (MIDDLE, SYSTEM):
        taught.accepted("good", placement)
        for _ in range(20):
            await taught.refused("good", placement)
    assert taught.placements.known.get("good") is None
    taught.clock.now += template_compatibility.ACCEPTED_SECONDS_MAX + 1
    await taught.refused("good", MIDDLE)
    assert taught.placements.known.get("good") is SYSTEM, "the model behind the name may be another by now"


async def test_models_that_the_server_names_are_met_before_their_first_chat(taught: Class) -> None:
    taught.templates.told = {"strict": SYSTEM, "good": MIDDLE}
    await taught.probe_served_models()
    assert [taught.placements.known.get(model) for model in ("strict", "good")] == [SYSTEM, None]
    assert [taught.is_new(model) for model in ("strict", "good", "unlisted")] == [False, False, True]


async def test_a_server_that_says_nothing_is_not_waited_for(taught: Class, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(template_compatibility, "PROBE_SECONDS_MAX", 0.01)
    taught.templates.told, taught.templates.may_answer = {"slow": SYSTEM}, asyncio.Event()
    await taught.probe_served_models()
    assert taught.placements.known.get("slow") is None
    taught.clock.now += template_compatibility.ASK_AGAIN_SECONDS
    assert taught.is_new("slow")


async def test_the_server_s_own_word_is_learnt_when_a_model_is_met_and_goes_before_any_refusal(taught: Class) -> None:
    taught.templates.told = {"strict": SYSTEM, "good": MIDDLE, "none": OFF, "refused": OFF}
    for model in ("strict", "good", "none", "unknown"):
        await taught.probe(model)
    assert taught.placements.known == {"strict": SYSTEM, "none": OFF}
    for _ in range(20):
        await taught.refused("good", MIDDLE)
        await taught.refused("good", SYSTEM)
    await taught.refused("refused", MIDDLE)
    assert taught.placements.known == {"strict": SYSTEM, "none": OFF, "refused": OFF}
    assert taught.switched("off", "asked") == 2


async def test_a_model_is_met_once_and_asked_about_again_if_the_server_could_not_tell(taught: Class) -> None:
    taught.templates.told = {"m": MIDDLE}
    assert taught.is_new("m")
    assert taught.is_new("m")  # whoever asked was cut off before the answer
    for model in ("m", "untold"):
        await taught.probe(model)
        assert not taught.is_new(model)
    taught.clock.now += template_compatibility.ASK_AGAIN_SECONDS
    assert [taught.is_new(model) for model in ("m", "untold", "n")] == [False, True, True]


async def test_while_one_asks_about_a_model_nobody_else_does_nor_anyone_where_something_is_known(taught: Class) -> None:
    taught.templates.may_answer = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(taught.probe("m"))
        await asyncio.sleep(0)
        assert not taught.is_new("m")
        taught.templates.may_answer.set()
    taught.placements.known["known"] = SYSTEM
    await taught.probe("known")
    assert taught.templates.asked == ["m"]
    assert not taught.is_new("known")


async def test_a_database_that_is_down_is_nobody_s_trouble(taught: Class) -> None:
    taught.placements.is_down = True
    await taught.probe("m")
    await taught.refused("m", MIDDLE)


async def test_what_is_remembered_of_models_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(template_compatibility, "MODELS_MAX", 10)
    taught = Class()
    for number in range(11):
        await taught.probe(f"m{number}")
    assert [taught.is_new(f"m{number}") for number in (0, 1, 10)] == [True, False, False]
