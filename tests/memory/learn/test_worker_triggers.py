"""A real worker that waits for a session to be worth a model's call: how often it calls, and what cannot wait."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec
import pytest
from learning_parts import Bench
from own_embedder import own_embedder
from plain_reader import PlainReader
from prometheus_client import CollectorRegistry
from turn_logs import Process

from memory.learn import triggers
from memory.learn.readers import Readers
from memory.learn.trigger_scanner import TriggerScanner, TriggerSettings
from memory.learn.worker import Worker, WorkerSettings
from memory.model import Claim, Turn
from memory.ports import Embedder, LearnDue, StatementReader
from memory.processes.from_settings import worker_settings
from memory.runtime.instruments import Instruments
from memory.runtime.metrics import Metrics
from memory.settings import Settings

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


def patient(bench: Bench, process: Process, model: Windows, triggers: TriggerSettings | None = None) -> Worker:
    settings = WorkerSettings(due=DUE, triggers=triggers or TriggerSettings(), scan_seconds=0.01, measure_seconds=0.01)
    return bench.worker(process, model=model, settings=settings)


async def test_a_burst_is_one_call_for_every_ten_turns_and_one_more_when_it_has_been_quiet(bench: Bench) -> None:
    model = Windows()
    async with bench.deployment.start() as process:
        worker = patient(bench, process, model)
        for number in range(54):
            await bench.tell(process, f"What is {number} times seven?")
            if number % 7 == 0:
                await worker.work_off()
        await worker.work_off()
        assert [len(window) for window in model.windows] == [10] * 5
        bench.deployment.clock.now += 31
        assert await worker.work_off() == 1
        assert await worker.work_off() == 0
    assert len(model.windows[-1]) == 4


async def test_where_no_model_reads_each_turn_is_learnt_at_once_whatever_the_settings_say(bench: Bench) -> None:
    async with bench.deployment.start() as process:
        worker = bench.worker(process, settings=WorkerSettings(due=DUE))
        await bench.tell(process, HAWAII)
        assert await worker.work_off() == 1
    assert await bench.contents() == [HAWAII]


async def test_a_model_that_is_promoted_reads_what_comes_next_and_is_waited_for(bench: Bench) -> None:
    model = Windows()
    async with bench.deployment.start() as process:
        readers = Readers(PlainReader())
        worker = bench.worker(process, readers=readers, settings=WorkerSettings(due=DUE))
        await bench.tell(process, HAWAII)
        assert await worker.work_off() == 1
        readers.promote(model)
        await bench.tell(process, ISLANDS)
        assert await worker.work_off() == 0
        bench.deployment.clock.now += 31
        assert await worker.work_off() == 1
    assert model.windows == [[ISLANDS]]


async def test_when_a_session_has_ended_all_that_waits_of_it_is_learnt_however_patient_the_settings_are(
    bench: Bench,
) -> None:
    told = {
        "memory": {"extraction_batch_size": 10, "learn": {"idle_seconds": 3_600, "session_end_seconds": 60}},
        "external_models": [MODEL],
    }
    model = Windows()
    async with bench.deployment.start() as process:
        worker = bench.worker(process, model=model, settings=worker_settings(msgspec.convert(told, Settings)))
        for number in range(13):
            await bench.tell(process, f"What is {number} times seven?")
        await worker.work_off()
        bench.deployment.clock.now += 59
        await worker.work_off()
        assert [len(window) for window in model.windows] == [10]
        bench.deployment.clock.now += 2
        await worker.work_off()
    assert [len(window) for window in model.windows] == [10, 3]


async def test_a_new_turn_postpones_what_waits_for_silence(bench: Bench) -> None:
    model = Windows()
    async with bench.deployment.start() as process:
        worker = patient(bench, process, model)
        for _ in range(4):
            await bench.tell(process, "What is seven times seven?")
            bench.deployment.clock.now += 29
            await worker.work_off()
        assert model.windows == []
        bench.deployment.clock.now += 1
        await worker.work_off()
        assert [len(window) for window in model.windows] == [4]


async def test_remember_jumps_the_wait_in_a_running_worker(bench: Bench) -> None:
    model, until = Windows(), asyncio.Event()
    async with bench.deployment.start() as process, asyncio.TaskGroup() as group:
        group.create_task(patient(bench, process, model).run(until))
        await bench.tell(process, "hello there")
        await bench.tell(process, "What is the weather?", session="s2")
        await asyncio.sleep(0.3)
        assert model.windows == []
        await bench.tell(process, "记住我对花生过敏")
        async with asyncio.timeout(5):
            while not model.windows:
                await asyncio.sleep(0.01)
        await bench.tell(process, "and thanks")
        await asyncio.sleep(0.3)
        until.set()
    assert model.windows == [["hello there", "记住我对花生过敏"]]


async def test_another_topic_ends_the_window_before_it_with_the_real_embedder(bench: Bench) -> None:
    """English only, as the model is; in other languages silence and the number of turns decide."""
    async with own_embedder() as real, bench.deployment.start() as process:
        for text in (HAWAII, ISLANDS, SCRIPT, "thanks!"):
            await bench.tell(process, text)
            await a_scanner(bench, process, real, model=Windows()).scan()
        lease = await process.log.lease(now=bench.deployment.clock(), seconds=9, due=DUE)
        assert lease is not None
        assert [turn.messages[0].content for turn in lease.turns] == [HAWAII, ISLANDS]
        await process.log.acknowledge(lease)
        assert await process.log.lease(now=bench.deployment.clock(), seconds=9, due=DUE) is None


def a_scanner(
    bench: Bench, process: Process, embedder: Embedder, *, model: StatementReader | None = None, turns_max: int = 99
) -> TriggerScanner:
    return TriggerScanner(
        turn_log=process.log,
        embedder=embedder,
        readers=Readers(PlainReader(), model),
        due=DUE,
        instruments=Instruments(bench.deployment.clock, bench.metrics),
        settings=TriggerSettings(drift_similarity=0.1, queue_turns_max=turns_max),
    )


async def test_without_the_embedder_a_look_still_sees_what_is_explicit(bench: Bench) -> None:
    model = Windows()
    bench.embedder.is_down = True
    async with bench.deployment.start() as process:
        for text in (HAWAII, SCRIPT, "Remember that I am allergic to nuts"):
            await bench.tell(process, text)
        await patient(bench, process, model, TriggerSettings(drift_similarity=0.1)).work_off()
    assert [len(window) for window in model.windows] == [3]


async def test_where_no_model_reads_nobody_looks_and_nothing_is_embedded_for_it(bench: Bench) -> None:
    async with bench.deployment.start() as process:
        await bench.tell(process, HAWAII)
        await bench.tell(process, SCRIPT)
        await a_scanner(bench, process, bench.embedder).scan()
        assert len(await process.log.unexamined(limit=9)) == 2
    assert bench.embedder.texts == []


async def test_too_long_a_queue_sheds_what_promises_least_and_says_so(bench: Bench) -> None:
    """Also where no model reads, and otherwise nobody looks."""
    async with bench.deployment.start() as process:
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


async def test_a_thousand_new_turns_are_looked_at_in_seconds_and_none_twice(bench: Bench) -> None:
    async with bench.deployment.start() as process:
        for number in range(1_000):
            await bench.tell(process, f"I told you {number} times that my cat likes fish", session=f"s{number % 100}")
        triggers = a_scanner(bench, process, bench.embedder, model=Windows())
        await triggers.scan()
        assert await process.log.unexamined(limit=1) == []
        embedded = len(bench.embedder.texts)
        for _ in range(20):
            await triggers.scan()
    assert len(bench.embedder.texts) == embedded <= 4_000  # with those before it, which the real one has in its cache


async def test_two_workers_that_watch_the_same_log_call_once_for_each_window(bench: Bench) -> None:
    model, until = Windows(), asyncio.Event()
    async with bench.deployment.start() as one, bench.deployment.start() as two, asyncio.TaskGroup() as group:
        for process in (one, two):
            group.create_task(patient(bench, process, model).run(until))
        for number in range(20):
            await bench.tell(one, f"What is {number}?", session=f"s{number % 4}")
        await bench.tell(two, "Remember that my cat is called Tom", session="s0")
        await asyncio.sleep(0.5)
        bench.deployment.clock.now += 31
        async with asyncio.timeout(10):
            while (await one.log.depth(now=bench.deployment.clock())).due or len(model.windows) < 4:
                await asyncio.sleep(0.01)
        until.set()
    assert sorted(map(len, model.windows)) == [5, 5, 5, 6]


async def test_a_fault_in_the_watch_is_survived(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it cannot look at is learnt in its time all the same."""
    model, until = Windows(), asyncio.Event()

    def broken(*_: object, **__: object) -> None:
        raise RecursionError

    monkeypatch.setattr(triggers, "examine", broken)
    async with bench.deployment.start() as process, asyncio.TaskGroup() as group:
        group.create_task(patient(bench, process, model).run(until))
        await bench.tell(process, "remember: nuts")
        await asyncio.sleep(0.1)
        assert model.windows == []
        bench.deployment.clock.now += 31
        async with asyncio.timeout(5):
            while not model.windows:
                await asyncio.sleep(0.01)
        until.set()
    assert model.windows == [["remember: nuts"]]


async def test_the_lag_from_what_was_said_to_what_is_learnt_is_measured(bench: Bench) -> None:
    bench.metrics = Metrics(CollectorRegistry())
    async with bench.deployment.start() as process:
        await bench.tell(process, "What is seven times seven?")
        bench.deployment.clock.now += 31
        await patient(bench, process, Windows()).work_off()
    assert bench.count("memproxy_learn_lag_seconds_sum") == 31.0
