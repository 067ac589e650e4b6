"""What one look says of a turn: when it is learnt, and what is shed first; and a worker that waits accordingly."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from claims import claim
from hashing_embedder import HashingEmbedder
from learning_parts import Bench, happens, running
from plain_reader import PlainReader
from prometheus_client import CollectorRegistry
from turn_logs import Process, lease_at, leased

from memory.learn import triggers
from memory.learn.readers import Readers
from memory.learn.trigger_scanner import TriggerScanner
from memory.learn.triggers import (
    CHARACTERS_MAX,
    DRIFT_SIMILARITY,
    MESSAGES_MAX,
    WORTH_NOTHING,
    examine,
    shortened,
    topic_text,
)
from memory.learn.worker import Worker, WorkerSettings
from memory.model import Act, Claim, Message, Scope, Turn, TurnStatus, Vector
from memory.ports import Embedder, LearnDue, StatementReader
from memory.processes.from_settings import worker_settings
from memory.runtime.metrics import Metrics
from memory.runtime.tracing import Telemetry
from memory.settings import Settings
from memory.typed import converted

NOTHING: tuple[Claim, ...] = ()


def a_turn(*texts: str, answer: str = "", role: str = "user", is_tool: bool = False) -> Turn:
    messages = tuple(Message(role, text, is_tool_traffic=is_tool) for text in texts)
    return Turn("t1", Scope("ann", session_id="s"), 0.0, messages, status=TurnStatus.CLOSED, answer=answer)


TURN = a_turn("Why does my script use so much memory?")


@pytest.mark.parametrize("act", Act)
def test_what_asks_for_memory_or_puts_something_right_is_explicit(act: Act) -> None:
    found, asks_memory = examine(TURN, [claim("something", act=act)]), act in {Act.REMEMBER, Act.FORGET, Act.WITHHOLD}
    assert (found.is_explicit, found.asks_memory) == (asks_memory or act is Act.CORRECT, asks_memory)


@pytest.mark.parametrize("fields", [{"confidence": 0.6}, {"turn": "t0"}], ids=["unsure", "of another turn"])
def test_a_claim_that_does_not_count_changes_nothing(fields: dict[str, Any]) -> None:
    assert examine(TURN, [claim("remember that", act=Act.REMEMBER, **fields)]) == examine(TURN, NOTHING)


def test_a_turn_is_worth_as_much_as_its_weightiest_statement_and_small_talk_next_to_nothing() -> None:
    of_nothing = examine(TURN, NOTHING).worth
    of_little = examine(TURN, [claim("I like tea", importance=0.2)]).worth
    of_much = examine(TURN, [claim("I like tea", importance=0.2), claim("I am allergic", importance=0.8)]).worth
    assert of_nothing == WORTH_NOTHING < of_little < of_much <= 1.0
    leaves_no_memory = claim("forget my cat", act=Act.FORGET, importance=1.0)
    assert examine(TURN, [leaves_no_memory]).worth == WORTH_NOTHING


def test_a_turn_ends_a_topic_only_if_it_is_hardly_alike() -> None:
    found = [examine(TURN, NOTHING, likeness=one) for one in (DRIFT_SIMILARITY / 2, 2 * DRIFT_SIMILARITY, None)]
    assert [one.ends_topic for one in found] == [True, False, False]


@pytest.mark.parametrize("text", ["thanks, that helps!", "and how much?", "yes", "好的谢谢", "", "```\nx = 1\n```"])
def test_what_says_too_little_has_no_topic(text: str) -> None:
    assert topic_text(a_turn(text)) == ""


def test_only_the_users_last_messages_are_looked_at_and_of_each_its_beginning() -> None:
    book = "The rain fell on the town and nobody went out. " * CHARACTERS_MAX
    turn = shortened(a_turn(*(f"{number}: {book}" for number in range(MESSAGES_MAX + 5))))
    assert [int(message.content.split(":")[0]) for message in turn.messages] == list(range(5, MESSAGES_MAX + 5))
    assert {len(message.content) for message in turn.messages} == {CHARACTERS_MAX}
    for turn in (a_turn(book, role="system"), a_turn(book, is_tool=True), a_turn(answer=book)):
        assert shortened(turn).messages == ()


MODEL = {
    "model_role": "memory_extraction",
    "llm_endpoint": {"address": "127.0.0.1", "port": 8000},
    "llm_model_name": "qwen3",
}
DUE = LearnDue(batch_turns_max=10, idle_seconds=30.0, turns_at_once=10)
HAWAII = "I am planning a trip to Hawaii in May with my sister"
ISLANDS = "Which island would you pick for snorkelling with beginners?"
SCRIPT = "Why does my Python script use so much memory with large csv files?"


class Windows(PlainReader):
    """A model that finds nothing and keeps what it was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.windows: list[list[str]] = []

    async def read(self, turns: Sequence[Turn], *, context: Sequence[Turn]) -> list[Claim]:
        self.windows.append([turn.messages[0].content for turn in turns])
        return []


def patient(bench: Bench, process: Process, model: Windows) -> Worker:
    settings = WorkerSettings(due=DUE, scan_seconds=0.01, measure_seconds=0.01)
    return bench.worker(process, model=model, settings=settings)


async def test_each_turn_is_learnt_at_once_until_a_model_is_promoted_which_is_waited_for(
    bench: Bench, process: Process
) -> None:
    """Whatever the settings say."""
    model, readers = Windows(), Readers(PlainReader())
    worker = bench.worker(process, readers=readers, settings=WorkerSettings(due=DUE))
    await bench.learn(process, HAWAII, worker=worker)
    assert await bench.contents() == [HAWAII]
    readers.first = model
    await bench.tell(process, ISLANDS)
    assert await worker.work_off() == 0
    bench.deployment.clock.now += 31
    assert await worker.work_off() == 1
    assert model.windows == [[ISLANDS]]


async def test_when_a_session_has_ended_all_that_waits_of_it_is_learnt_however_patient_the_settings_are(
    bench: Bench, process: Process
) -> None:
    told = {
        "memory": {"extraction_batch_size": 10, "learn": {"idle_seconds": 3_600, "session_end_seconds": 60}},
        "external_models": [MODEL],
    }
    model = Windows()
    worker = bench.worker(process, model=model, settings=worker_settings(converted(told, Settings)))
    await bench.learn(process, *(f"What is {number} times seven?" for number in range(13)), worker=worker)
    bench.deployment.clock.now += 59
    await worker.work_off()
    assert [len(window) for window in model.windows] == [10]
    bench.deployment.clock.now += 2
    await worker.work_off()
    assert [len(window) for window in model.windows] == [10, 3]


async def test_remember_jumps_the_wait_in_a_running_worker(bench: Bench, process: Process) -> None:
    model = Windows()
    await bench.tell(process, "hello there")
    await bench.tell(process, "What is the weather?", session="s2")
    assert await patient(bench, process, model).work_off() == 0
    async with running(patient(bench, process, model)):
        await bench.tell(process, "记住我对花生过敏")
        await happens(lambda: bool(model.windows))
    assert model.windows == [["hello there", "记住我对花生过敏"]]


class Topics(HashingEmbedder):
    """Trips are one topic, scripts are another."""

    async def embed(self, texts: Sequence[str], *, is_urgent: bool, as_query: bool = False) -> Vector:
        of_trips = ["island" in text or "trip" in text for text in texts]
        return np.array([[1.0, 0.0] if one else [0.0, 1.0] for one in of_trips], np.float32)


async def test_another_topic_ends_the_window_before_it(bench: Bench, process: Process) -> None:
    for text in (HAWAII, ISLANDS, SCRIPT, "thanks!"):
        await bench.tell(process, text)
        await a_scanner(bench, process, Topics(), model=Windows()).scan()
    lease = await leased(process.log, bench.deployment.clock(), DUE)
    assert [turn.messages[0].content for turn in lease.turns] == [HAWAII, ISLANDS]
    await process.log.acknowledge(lease)
    assert await lease_at(process.log, bench.deployment.clock(), DUE) is None


def a_scanner(
    bench: Bench, process: Process, embedder: Embedder, *, model: StatementReader | None = None, turns_max: int = 99
) -> TriggerScanner:
    return TriggerScanner(
        turn_log=process.log,
        embedder=embedder,
        readers=Readers(PlainReader(), model),
        due=DUE,
        telemetry=Telemetry(bench.deployment.clock, bench.metrics),
        queue_turns_max=turns_max,
    )


async def test_without_the_embedder_a_look_still_sees_what_is_explicit(bench: Bench, process: Process) -> None:
    model, bench.embedder.is_down = Windows(), True
    said = (HAWAII, SCRIPT, "Remember that I am allergic to nuts")
    await bench.learn(process, *said, worker=patient(bench, process, model))
    assert [len(window) for window in model.windows] == [3]


async def test_too_long_a_queue_sheds_what_promises_least_and_says_so(bench: Bench, process: Process) -> None:
    """Also where no model reads, and otherwise nobody looks."""
    for number in range(4):
        await bench.tell(process, "thanks!", session=f"thanks-{number}")
        await bench.tell(process, "My sister lives in Oslo", session=f"told-{number}")
    await bench.tell(process, "remember: nuts", session="asked")
    for model in (None, Windows()):
        await a_scanner(bench, process, bench.embedder, model=model, turns_max=6).relieve()
    letters = await process.log.dead_letters(limit=9)
    assert {letter.session_id[:6] for letter in letters} == {"thanks"}
    assert len(letters) == 3
    depth = await process.log.depth(now=bench.deployment.clock())
    assert (depth.due, depth.dead, depth.shed) == (6, 0, 3)
    assert bench.count("memproxy_turns_shed_total") == 3


async def test_many_new_turns_are_looked_at_and_none_twice(bench: Bench, process: Process) -> None:
    for number in range(300):
        await bench.tell(process, f"I told you {number} times that my cat likes fish", session=f"s{number % 30}")
    await a_scanner(bench, process, bench.embedder).scan()  # where no model reads, nobody looks
    assert (len(await process.log.unexamined(limit=999)), bench.embedder.texts) == (300, [])
    triggers = a_scanner(bench, process, bench.embedder, model=Windows())
    await triggers.scan()
    assert await process.log.unexamined(limit=1) == []
    embedded = len(bench.embedder.texts)
    await triggers.scan()
    assert len(bench.embedder.texts) == embedded <= 4 * 300  # with those before it, which the real one has in its cache


async def test_a_fault_in_the_watch_is_survived(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it cannot look at is learnt in its time all the same."""
    model, is_looked_at = Windows(), asyncio.Event()

    def broken(*_: object, **__: object) -> None:
        is_looked_at.set()
        raise RecursionError

    monkeypatch.setattr(triggers, "examine", broken)
    async with bench.deployment.start() as process, running(patient(bench, process, model)):
        await bench.tell(process, "remember: nuts")
        await is_looked_at.wait()
        assert model.windows == []
        bench.deployment.clock.now += 31
        await happens(lambda: bool(model.windows))
    assert model.windows == [["remember: nuts"]]


async def test_the_lag_of_learning_and_depth_and_age_of_the_queue_are_measured(bench: Bench, process: Process) -> None:
    bench.metrics = Metrics(CollectorRegistry())
    await bench.tell(process, "What is seven times seven?")
    bench.deployment.clock.now += 31
    await patient(bench, process, Windows()).work_off()
    assert bench.count("memproxy_learn_lag_seconds_sum") == 31.0
    await bench.tell(process, "And eight times eight?")
    bench.deployment.clock.now += 31
    assert await process.log.lease(now=bench.deployment.clock.now, seconds=600, due=LearnDue())
    await bench.worker(process)._measure()
    assert bench.count("memproxy_queue_turns", state="leased") == 1.0
    assert bench.count("memproxy_queue_turns", state="due") == 0.0
    assert bench.count("memproxy_queue_oldest_seconds") >= 30.0
