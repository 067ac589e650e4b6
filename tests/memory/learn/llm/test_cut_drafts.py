"""A draft that ends at `max_tokens` is never taken for all that was said: halves, the rest, and at last the rules."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from chat_server import Cut
from learning_parts import Bench, Faults, Killed
from prometheus_client import CollectorRegistry
from scripted_model import ScriptedModel, a_fact, facts, in_turn, running_model

from memory.learn.llm import drafting
from memory.learn.llm.heard import Heard
from memory.learn.llm.model_learner import HALVINGS_MAX, RESTS_MAX, Asking, DraftLearner
from memory.metrics import Metrics
from memory.model import Message, Scope, Turn, TurnStatus

ASKING = Asking(name="scripted-7b", seconds=5.0)
STATEMENT = re.compile(r"I have a \w+ boat called \w+\.")
COLOURS = ("red", "green", "blue", "white", "black", "brown", "pink", "grey")
NAMES = ("Anna", "Berta", "Carla", "Dora", "Emma", "Frida", "Greta", "Hanna")


def boats(number: int) -> list[str]:
    return [f"I have a {COLOURS[n % 8]} boat called {NAMES[n // 8 % 8]}." for n in range(number)]


class ShortOfBreath:
    """Drafts every boat, in order, and ends after so many characters, as a server does at `max_tokens`.

    Asked for the rest, it goes on behind the last boat that it is shown; one that `repeats` begins at the beginning.
    """

    def __init__(self, breath: int, *, repeats: bool = False) -> None:
        self._breath = breath
        self._repeats = repeats

    def __call__(self, body: dict[str, Any]) -> str:
        asked = [message["content"] for message in body["messages"] if message["role"] == "user"]
        told = STATEMENT.findall(next(text for text in reversed(asked) if "Date:" in text))
        if "broke off" in asked[-1] and not self._repeats:
            told = [text for text in told if text not in body["messages"][-2]["content"]]
        whole = json.dumps({"facts": [a_fact(text, text) for text in told]})
        return whole if len(whole) <= self._breath else Cut(whole[: self._breath])


FOUR_FACTS = 4 * len(json.dumps(a_fact(boats(1)[0], boats(1)[0]))) + 60


def told(text: str, number: int) -> Turn:
    scope, said = Scope("ann", session_id="s1"), (Message("user", text),)
    return Turn(f"t{number}", scope, 1_700_000_000.0 + 60 * number, said, status=TurnStatus.CLOSED, answer="Noted.")


class Drafting:
    """A learner on that server; what it found, and how often it fell short."""

    def __init__(self, scripted: ScriptedModel) -> None:
        self.scripted = scripted
        self.metrics = Metrics(CollectorRegistry())
        self.learner = DraftLearner(scripted.model, ASKING, metrics=self.metrics)

    async def drafted(self, *texts: str, heard: Heard | None = None) -> list[str]:
        turns = [told(text, number) for number, text in enumerate(texts)]
        return [fact.content for fact in await self.learner.extract(turns, context=[], heard=heard)]

    def shortfalls(self, of: str) -> float:
        return self.metrics.registry.get_sample_value("memproxy_model_shortfalls_total", {"of": of}) or 0.0


async def test_a_window_with_more_facts_than_fit_is_asked_about_in_halves_until_all_are_told() -> None:
    async with running_model() as scripted:
        scripted.server.says = ShortOfBreath(FOUR_FACTS)
        model = Drafting(scripted)
        assert await model.drafted(*boats(16)) == boats(16)
    assert len(scripted.asked) == 1 + 2 + 4
    assert model.shortfalls("draft") == 3
    assert model.shortfalls("rest") == 0


async def test_a_window_whose_facts_fit_is_one_call(bench: Bench) -> None:
    async with running_model() as scripted:
        scripted.server.says = ShortOfBreath(FOUR_FACTS)
        model = Drafting(scripted)
        assert await model.drafted(*boats(4)) == boats(4)
    assert (len(scripted.asked), model.shortfalls("draft")) == (1, 0)


async def test_of_a_single_turn_the_rest_is_asked_for_as_long_as_there_is_any() -> None:
    async with running_model() as scripted:
        scripted.server.says = ShortOfBreath(FOUR_FACTS)
        model = Drafting(scripted)
        assert await model.drafted(" ".join(boats(14))) == boats(14)
    assert len(scripted.asked) == 4
    assert (model.shortfalls("draft"), model.shortfalls("rest")) == (1, 0)


@pytest.mark.parametrize("repeats", [True, False])
async def test_what_is_still_missing_then_rules_tell(*, repeats: bool) -> None:
    async with running_model() as scripted:
        scripted.server.says = ShortOfBreath(FOUR_FACTS, repeats=repeats)
        model = Drafting(scripted)
        assert await model.drafted(" ".join(boats(30))) == boats(30)
    assert len(scripted.asked) == (2 if repeats else 1 + RESTS_MAX)
    assert model.shortfalls("rest") == 1


async def test_an_answer_that_was_cut_is_not_complete_because_it_can_be_read() -> None:
    halves = (json.dumps({"facts": [a_fact(text, text)]}) for text in boats(2))
    async with running_model(draft=in_turn(Cut('{"facts":[]}'), *halves)) as scripted:
        assert await Drafting(scripted).drafted(*boats(2)) == boats(2)
    assert len(scripted.asked) == 3


async def test_a_server_that_does_not_say_that_it_cut_is_found_out_by_what_it_sent() -> None:
    first, second = (a_fact(text, text) for text in boats(2))
    broken = json.dumps({"facts": [first, second]})[:-30]
    async with running_model(draft=in_turn(broken, json.dumps({"facts": [second]}))) as scripted:
        assert await Drafting(scripted).drafted(*boats(2)) == boats(2)
    assert "broke off" in scripted.questions[1]


async def test_a_model_without_breath_ends_after_a_bounded_number_of_calls_and_nothing_is_lost() -> None:
    async with running_model() as scripted:
        scripted.server.says = ShortOfBreath(30)
        model = Drafting(scripted)
        assert await model.drafted(*boats(20)) == boats(20)
    pieces = 2**HALVINGS_MAX
    assert len(scripted.asked) <= 2 * pieces - 1 + RESTS_MAX * pieces


async def test_a_mended_answer_that_was_cut_takes_nothing_from_the_first(bench: Bench) -> None:
    wrong, right = a_fact(boats(2)[0], "I have a red boat called Otto."), a_fact(boats(2)[1], boats(2)[1])
    mended = Cut(json.dumps({"facts": [right, a_fact(boats(2)[0], boats(2)[0])]})[:-40])
    async with running_model(draft=in_turn(json.dumps({"facts": [wrong, right]}), mended)) as scripted:
        assert sorted(await Drafting(scripted).drafted(*boats(2))) == sorted(boats(2))
    assert len(scripted.asked) == 2


async def test_junk_that_was_cut_is_junk_all_the_same() -> None:
    async with running_model(draft=lambda _: Cut("Ahoy! " * 100)) as scripted:
        model = Drafting(scripted)
        with pytest.raises(Exception, match="cannot be used"):
            await model.drafted(*boats(8))
    assert len(scripted.asked) == 2


async def test_halves_that_were_answered_are_not_asked_about_again_at_the_repeat(bench: Bench) -> None:
    async with running_model() as scripted, bench.deployment.start() as process:
        scripted.server.says = ShortOfBreath(FOUR_FACTS)
        learner = DraftLearner(scripted.model, ASKING)
        for text in boats(8):
            await bench.tell(process, text)
        for _ in range(3):  # the cut one, then each half
            faults = Faults(name="save_plan", error=Killed(), is_after=True)
            with pytest.raises(Killed):
                await bench.worker(process, learner=learner, faults=faults).work_off()
            bench.deployment.clock.now += 1_000
        assert len(scripted.asked) == 3
        await bench.worker(process, learner=learner).work_off()
    assert len(scripted.asked) == 3
    assert await bench.contents() == sorted(boats(8))


async def test_what_rules_had_to_tell_they_tell_at_the_repeat_too() -> None:
    heard = Heard()
    async with running_model() as scripted:
        scripted.server.says = ShortOfBreath(FOUR_FACTS, repeats=True)
        model = Drafting(scripted)
        for _ in range(2):
            assert await model.drafted(" ".join(boats(9)), heard=heard) == boats(9)
    assert len(scripted.asked) == 2


@pytest.mark.parametrize("quote", ["I live in Ghent", "half \ud83d of it"])
def test_a_draft_comes_back_as_it_was_kept(quote: str) -> None:
    for is_whole in (True, False):
        draft = drafting.Draft([drafting.Drafted(quote, quote)], is_whole=is_whole)
        assert drafting.decode(drafting.encode(draft)) == draft


@pytest.mark.parametrize("kept", ["", "[]", "{}", '{"facts":[{"quote":1}]}', "[" * 100_000])
def test_what_is_no_draft_is_drafted_anew(kept: str) -> None:
    assert drafting.decode(kept) is None


async def test_a_whole_answer_without_facts_is_believed() -> None:
    async with running_model(draft=facts()) as scripted:
        assert await Drafting(scripted).drafted(*boats(2)) == []
    assert len(scripted.asked) == 1
