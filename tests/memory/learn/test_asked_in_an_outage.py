"""What a user asks of memory is done while the model is away: the trained reader reads those windows. A real server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from learning_parts import Bench, Faults
from plain_reader import PlainReader
from scripted_model import ScriptedModel, running_model
from turn_logs import Process

from memory.errors import Unavailable
from memory.learn.readers import FallbackReader
from memory.learn.reading.model_reader import ModelReader, ModelReaderSettings
from memory.learn.worker import Worker, WorkerSettings
from memory.model import Claim, Turn
from memory.ports import LearnDue, PairVerdict, StatementPair

ASKING = ModelReaderSettings("scripted", seconds=5.0)
SETTINGS = WorkerSettings(due=LearnDue(batch_turns_max=10, idle_seconds=30.0, turns_at_once=10), attempts_max=2)
SCHOOL, LOCKER = "I teach chemistry at a night school.", "Remember that my locker is number 41."
HOUR = 3_600.0


@pytest.fixture
async def scripted() -> AsyncIterator[ScriptedModel]:
    """It is away."""
    async with running_model() as running:
        running.server.status = 503
        yield running


@pytest.fixture
def worker(bench: Bench, process: Process, scripted: ScriptedModel) -> Worker:
    reader = ModelReader(scripted.model, ASKING, metrics=bench.metrics)
    model = FallbackReader(reader, PlainReader(), metrics=bench.metrics)
    return bench.worker(process, model=model, settings=SETTINGS)


async def silence(bench: Bench, process: Process, worker: Worker, *, turns: int = 1) -> None:
    """The session falls silent, is due, and waits."""
    bench.deployment.clock.now += 40.0
    await worker.work_off()
    assert await waiting(process) == turns


async def waiting(process: Process) -> int:
    return (await process.log.backlog("ann", opened_before=1e12)).waiting


async def model_is_back(bench: Bench, process: Process, scripted: ScriptedModel, worker: Worker) -> list[str]:
    """What is known then, of all that was said."""
    scripted.server.status = 200
    bench.deployment.clock.now += HOUR
    await worker.work_off()
    assert (await process.log.backlog("ann", opened_before=1e12)).pending == 0
    return await bench.contents()


@pytest.mark.parametrize(
    ("told", "order"),
    [
        ("My cat is called Tom.", "Please forget that my cat is called Tom."),
        ("Meine Katze heißt Tom.", "Vergiss bitte, dass meine Katze Tom heißt."),
        ("Mi gata se llama Tom.", "Olvida que mi gata se llama Tom."),
    ],
)
async def test_a_request_to_forget_is_carried_out_while_the_model_is_away(
    bench: Bench, process: Process, scripted: ScriptedModel, worker: Worker, told: str, order: str
) -> None:
    await bench.learn(process, f"{told} I live in Leeds.", session="before")
    assert told in await bench.contents()
    await bench.tell(process, SCHOOL)
    await silence(bench, process, worker)
    await bench.tell(process, order)
    await worker.work_off()
    assert await bench.contents() == ["I live in Leeds."]
    assert await waiting(process) == 1  # the talk waits on
    assert await model_is_back(bench, process, scripted, worker) == sorted(["I live in Leeds.", SCHOOL])


@pytest.mark.parametrize("trouble", [b"<html>junk</html>", None])
async def test_what_is_to_be_remembered_is_known_at_once_whatever_is_the_matter_with_the_model(
    bench: Bench, process: Process, scripted: ScriptedModel, worker: Worker, trouble: bytes | None
) -> None:
    scripted.server.body, scripted.server.status = trouble, 200 if trouble else 503
    await bench.tell(process, SCHOOL)
    await bench.tell(process, LOCKER)
    await worker.work_off()
    made_by = {memory.content: memory.made_by for memory in await bench.memories()}
    assert made_by == dict.fromkeys([LOCKER, SCHOOL], PlainReader.name)
    assert bench.count("memproxy_model_shortfalls_total", of="window") == 1


@pytest.mark.parametrize(
    "said", ["I always forget my keys at work on Mondays.", "No, that is wrong, my sister lives in Bergen."]
)
async def test_what_asks_nothing_of_memory_waits_for_the_model(
    bench: Bench, process: Process, worker: Worker, said: str
) -> None:
    await bench.tell(process, said)
    await silence(bench, process, worker)
    assert await bench.contents() == []
    assert bench.count("memproxy_model_shortfalls_total", of="window") == 0


class Guesses(PlainReader):
    """A trained reader that is sure of nothing."""

    async def read(self, turns: Sequence[Turn], *, context: Sequence[Turn]) -> list[Claim]:
        return [replace(claim, confidence=0.5) for claim in await super().read(turns, context=context)]


async def test_what_the_trained_reader_only_guesses_to_be_asked_of_memory_waits_for_the_model(
    bench: Bench, process: Process, scripted: ScriptedModel
) -> None:
    model = ModelReader(scripted.model, ASKING)
    worker = bench.worker(process, reader=Guesses(), model=model, settings=SETTINGS)
    await bench.tell(process, LOCKER)
    await silence(bench, process, worker)
    assert await model_is_back(bench, process, scripted, worker) == [LOCKER]


@pytest.mark.parametrize(
    ("said", "asked", "known"),
    [
        ((f"I live in Leeds. {SCHOOL}", "My cat is called Tom."), "Forget what I just said.", ["I live in Leeds."]),
        ((f"My cat is called Tom. {SCHOOL}",), f"Please forget that my cat is called Tom. {LOCKER}", [LOCKER]),
    ],
    ids=["what was said right before", "a topic"],
)
async def test_what_waits_for_the_model_heeds_what_was_asked_to_be_forgotten_meanwhile(
    bench: Bench, process: Process, scripted: ScriptedModel, worker: Worker, said: Any, asked: str, known: list[str]
) -> None:
    for one in said:
        await bench.tell(process, one)
    await silence(bench, process, worker, turns=len(said))
    await bench.tell(process, asked)
    await worker.work_off()
    assert await bench.contents() == ([LOCKER] if LOCKER in asked else [])
    assert await model_is_back(bench, process, scripted, worker) == sorted([*known, SCHOOL])


MONDAY, FRIDAY = "My dentist appointment is on Monday.", "My dentist appointment is on Friday."


@pytest.mark.parametrize(
    ("said", "is_learnt"),
    [(f"Remember: {FRIDAY}", True), (f"Please forget that my boat is Nereid. {FRIDAY}", True), (FRIDAY, False)],
    ids=["to remember", "to forget", "neither"],
)
async def test_only_what_is_asked_of_memory_goes_on_without_the_verdict_on_a_pair(
    bench: Bench, process: Process, said: str, *, is_learnt: bool
) -> None:
    asked: list[StatementPair] = []

    def away(pair: StatementPair) -> PairVerdict:
        asked.append(pair)
        raise Unavailable("model", "away")

    await bench.learn(process, f"My boat is Nereid. {MONDAY}", session="before")
    await bench.tell(process, said)
    await bench.worker(process, model=PlainReader(away)).work_off()
    assert await waiting(process) == (0 if is_learnt else 1)
    assert (MONDAY, FRIDAY) in [(pair.older, pair.newer[-len(FRIDAY) :]) for pair in asked]
    active = await bench.active()
    assert (MONDAY in active, any(content.endswith(FRIDAY) for content in active)) == (True, is_learnt)
    assert bench.count("memproxy_model_shortfalls_total", of="pair") == is_learnt


async def test_all_that_is_stored_is_looked_through_once_for_all_requests(bench: Bench, process: Process) -> None:
    faults = Faults()
    topics = ["the boat", "the cat", "the house", "the garden"]
    await bench.tell(process, *(f"I like {topic}." for topic in topics))
    await bench.worker(process).work_off()
    await bench.tell(process, *(f"Please forget that I like {topic}." for topic in topics), session="s2")
    await bench.worker(process, faults=faults).work_off()
    assert await bench.contents() == []
    assert faults.calls.count("load") == 1
    assert faults.calls.count("turns") == 2  # what is meant, and what says the same as what goes
