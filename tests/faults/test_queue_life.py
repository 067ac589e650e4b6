"""The life of the queue with real parts: back-off, dead letters by command, and metrics that move."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from learning_parts import Bench
from learning_processes import LearningProcesses, Records, WorkerProcess, records_of
from misbehaving_model import PROMPT_TOKENS, Mood, MoodyModel, running_moody_model
from plain_reader import PlainReader
from turn_logs import sqlite_deployment

from memory.errors import Unavailable, Unusable
from memory.learn.worker import WorkerSettings
from memory.model import Claim, Turn
from memory.ports import LearnDue
from memory.processes.composition import SYSTEM_CLOCK

BASE, LONGEST, STEP_SECONDS = 2.0, 60.0, 0.25
ATTEMPTS, ANSWER_SECONDS = 3, 0.5
LUCKY_MAX = 3  # each shares the model's trials with windows that always fail, and 12 s are few of them
OUTAGE_SECONDS = 12.0  # while one is asking for all, the others have to come to their own turns, on slow cores as well
SHORT_OUTAGE_SECONDS = 4.0  # where all have the same trouble, whoever asks


ON_SQLITE = pytest.mark.parametrize("parts", ["sqlite"], indirect=True)  # of the model, whatever holds the queue


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.parametrize("jitter", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("trouble", [Unavailable("model", "away"), Unusable("model", "junk")])
async def test_waits_double_up_to_the_longest_and_lie_between_half_and_all_of_it(
    tmp_path: Path, trouble: Exception, jitter: float
) -> None:
    bench = Bench(sqlite_deployment(tmp_path))
    clock, waits = bench.deployment.clock, []
    settings = WorkerSettings(attempts_max=10, retry_base_seconds=BASE, retry_seconds_max=LONGEST)
    async with bench.deployment.start() as process:
        await bench.tell(process, "My cat is called Tom.")
        worker = bench.worker(process, model=_In(trouble), settings=settings, jitter=jitter)
        assert await worker.work_off() == 1
        for _ in range(8):
            tried = clock.now
            while not await worker.work_off():
                clock.now += STEP_SECONDS
            waits.append(clock.now - tried)
    whole = [min(BASE * 2**n, LONGEST) for n in range(8)]
    assert waits == pytest.approx([one * (0.5 + jitter / 2) for one in whole], abs=STEP_SECONDS)


class _In(PlainReader):
    def __init__(self, trouble: Exception) -> None:
        super().__init__()
        self._trouble = trouble

    async def read(self, turns: Sequence[Turn], *, context: Sequence[Turn]) -> list[Claim]:
        raise self._trouble


def with_model(port: int, **learn: float) -> dict[str, Any]:
    """Settings of a worker that has this model read, and is not patient."""
    endpoint = {"address": "127.0.0.1", "port": port}
    model = {"model_role": "memory_extraction", "llm_endpoint": endpoint, "llm_model_name": "moody"}
    retries = {"retry_attempts": ATTEMPTS, "retry_base_seconds": 0.1, "retry_max_seconds": 0.2}
    patience = {**retries, "model_outage_max_seconds": OUTAGE_SECONDS, "idle_seconds": 0.2}
    return {
        "external_models": [{**model, "llm_timeout_seconds": ANSWER_SECONDS}],
        "memory": {"learn": {"reader": "model", **patience, **learn}},
    }


def budget(town: str) -> str:
    """Plain enough for the trained reader, whichever weights it has."""
    return f"My budget for the {town} trip is $10,000."


# Where the user goes of whom it is asked while it is away, and what the dead letter says of it.
OUTAGES = {"Leeds": Mood.REFUSES, "York": Mood.HANGS_UP, "Bristol": Mood.REFUSES}
REASONS = {f"model is unavailable: {reason}" for reason in ("RemoteProtocolError", "it answered 503")}
BAD_ANSWERS = {"Oxford": Mood.JUNK, "Bath": Mood.HUGE}
CALLS = {"Oxford": 2, "Bath": 1}  # junk is sent back once; nobody reads what is too long
TOWNS = ("Leeds", "York", "Bristol", "Oxford", "Bath", "Hull")


@ON_SQLITE
@pytest.mark.slow("an outage has to last until it is given up")
async def test_a_model_in_trouble_is_retried_then_a_dead_letter_says_why_and_others_go_on(
    parts: LearningProcesses,
) -> None:
    async with records_of(parts) as records, running_moody_model(OUTAGES | BAD_ANSWERS) as model:
        worker = parts.start_worker(with_model(model.port), metrics_port=free_port())
        await worker.warm()
        for town in (*OUTAGES, *BAD_ANSWERS):
            await records.tell(f"{town}-1", town, budget(town), at=SYSTEM_CLOCK())
        lucky = 0
        async with asyncio.timeout(3 * OUTAGE_SECONDS):
            while not await _are_buried(records, len(OUTAGES)):
                if lucky == LUCKY_MAX:
                    await asyncio.sleep(0.1)
                    continue
                lucky += 1
                await records.tell(f"lucky-{lucky}", "lucky", budget("Hull"), at=SYSTEM_CLOCK(), session=f"{lucky}")
                await records.learnt("lucky", seconds=2 * OUTAGE_SECONDS)
        assert lucky > 1, "nothing was seen to go on meanwhile"
        assert [memory.content for memory in await records.memories("lucky")] == [budget("Hull")]
        await records.learnt(*BAD_ANSWERS)
        letters = {letter["user_id"]: letter for letter in await asyncio.to_thread(parts.dead_letters)}
        assert set(letters) == set(OUTAGES)
        for town in OUTAGES:  # whoever is spared a call hears what the last one met
            assert letters[town]["reason"] in REASONS
            assert letters[town]["attempts"] > ATTEMPTS
            assert letters[town]["turn_ids"] == [f"{town}-1"]
        await _are_read_by_the_trained_reader(records, model)
        assert await _eventually(worker, "memproxy_model_shortfalls_total", len(BAD_ANSWERS), of="window")
        assert await _eventually(worker, "memproxy_queue_turns", len(OUTAGES), state="dead")
        await _replay_by_command(parts, records, model, letters)
        assert worker.stop() == 0


async def _are_buried(records: Records, count: int) -> bool:
    return len(await records.turn_log.dead_letters(limit=count + 1)) == count


async def _are_read_by_the_trained_reader(records: Records, model: MoodyModel) -> None:
    """What the model makes nothing of costs no attempt and no dead letter."""
    for town, calls in CALLS.items():
        (memory,) = await records.memories(town)
        assert (memory.content, memory.made_by.split()[0]) == (budget(town), "trained")
        assert model.reads[town] == calls


async def _replay_by_command(
    parts: LearningProcesses, records: Records, model: MoodyModel, letters: dict[str, Any]
) -> None:
    """The model is well again: one letter is given up, one brought back by its id, then all that are left."""
    dropped, first, *others = OUTAGES
    shown = await asyncio.to_thread(parts.run, "dlq", "list")
    assert all(user in shown for user in letters)
    model.moods = {}
    said = await asyncio.to_thread(parts.run, "dlq", "drop", letters[dropped]["window_id"], "--yes", "--json")
    assert json.loads(said) == {"dropped": 1}
    said = await asyncio.to_thread(parts.run, "dlq", "replay", letters[first]["window_id"], "--json")
    assert json.loads(said) == {"replayed": 1}
    await records.learnt(first)
    assert [memory.content for memory in await records.memories(first)] == [budget(first)]
    assert await asyncio.to_thread(parts.run, "dlq", "replay", "--all") == f"due again: {len(others)}\n"
    await records.learnt(*others)
    for user in others:
        assert [memory.content for memory in await records.memories(user)] == [budget(user)]
    assert await records.memories(dropped) == []
    assert await asyncio.to_thread(parts.dead_letters) == []


@ON_SQLITE
async def test_what_a_model_takes_and_does_not_answer_in_time_is_read_by_the_trained_reader(
    parts: LearningProcesses,
) -> None:
    async with records_of(parts) as records, running_moody_model({"Leeds": Mood.SILENT}) as model:
        worker = parts.start_worker(with_model(model.port), metrics_port=free_port())
        await worker.warm()
        await records.tell("Leeds-1", "Leeds", budget("Leeds"), at=SYSTEM_CLOCK())
        await records.learnt("Leeds", seconds=OUTAGE_SECONDS)
        (memory,) = await records.memories("Leeds")
        assert (memory.content, memory.made_by.split()[0]) == (budget("Leeds"), "trained")
        assert await asyncio.to_thread(parts.dead_letters) == []
        assert await worker.metric("memproxy_model_calls_total", outcome="late")
        assert worker.stop() == 0


@ON_SQLITE
async def test_a_model_that_is_down_for_longer_than_allowed_costs_nothing_but_a_replay(
    parts: LearningProcesses,
) -> None:
    port = free_port()
    async with records_of(parts) as records:
        worker = parts.start_worker(with_model(port, model_outage_max_seconds=SHORT_OUTAGE_SECONDS))
        await worker.warm()
        for town in TOWNS:
            await records.tell(f"{town}-1", town, budget(town), at=SYSTEM_CLOCK())
        async with asyncio.timeout(3 * OUTAGE_SECONDS):
            while not await _are_buried(records, len(TOWNS)):
                await asyncio.sleep(0.05)
        letters = await asyncio.to_thread(parts.dead_letters)
        assert {one["reason"] for one in letters} == {"model is unavailable: ConnectError"}
        async with running_moody_model(port=port) as model:
            assert json.loads(await asyncio.to_thread(parts.run, "dlq", "replay", "--all", "--json")) == {"replayed": 6}
            await records.learnt(*TOWNS)
            assert model.reads == Counter(TOWNS)
        for town in TOWNS:
            assert [memory.content for memory in await records.memories(town)] == [budget(town)]
        assert worker.stop() == 0


@ON_SQLITE
async def test_a_model_that_is_down_for_less_than_allowed_costs_nothing_at_all(parts: LearningProcesses) -> None:
    port = free_port()
    async with records_of(parts) as records:
        worker = parts.start_worker(with_model(port, model_outage_max_seconds=600), metrics_port=free_port())
        await worker.warm()
        for town in TOWNS:
            await records.tell(f"{town}-1", town, budget(town), at=SYSTEM_CLOCK())
        async with asyncio.timeout(30):  # far more than the attempts that junk would have had
            while (await worker.metric("memproxy_windows_total", outcome="sat_out") or 0) < 5 * ATTEMPTS * len(TOWNS):
                await asyncio.sleep(0.1)
        spared = await worker.metric("memproxy_model_calls_total", outcome="spared") or 0
        assert spared > (await worker.metric("memproxy_model_calls_total", outcome="failed") or 0)
        assert await asyncio.to_thread(parts.dead_letters) == []
        async with running_moody_model(port=port) as model:
            await records.learnt(*TOWNS)
            assert model.reads == Counter(TOWNS)
        assert worker.stop() == 0


async def test_a_session_that_falls_silent_costs_one_call_however_many_turns_it_had(parts: LearningProcesses) -> None:
    async with records_of(parts) as records, running_moody_model() as model:
        worker = parts.start_worker(with_model(model.port, idle_seconds=1.0), metrics_port=free_port())
        await worker.warm()
        towns, others = ("Leeds", "York"), ("My cat is called Tom.", "My bicycle is green.")
        for round_, town in enumerate(towns):
            for number, text in enumerate((budget(town), *others)):
                await records.tell(f"{round_}-{number}", "ann", text, at=SYSTEM_CLOCK(), session=f"s{round_}")
                await asyncio.sleep(0.2)  # well within what counts as silence: each turn postpones it
            await records.learnt("ann")
        assert model.reads == dict.fromkeys(towns, 1)
        quoted = {evidence.turn_id for memory in await records.memories("ann") for evidence in memory.evidence}
        assert quoted == {f"{round_}-{number}" for round_ in range(2) for number in range(3)}
        assert await worker.metric("memproxy_model_calls_total") == model.calls
        assert await worker.metric("memproxy_model_tokens_total", kind="prompt") == PROMPT_TOKENS * model.calls
        assert worker.stop() == 0


async def test_depth_age_and_lag_move_on_the_metrics_endpoint(parts: LearningProcesses) -> None:
    async with records_of(parts) as records:
        await records.tell("t-1", "ann", budget("Leeds"), at=SYSTEM_CLOCK())
        held = await records.turn_log.lease(now=SYSTEM_CLOCK(), seconds=600, due=LearnDue())
        assert held is not None
        worker = parts.start_worker(metrics_port=free_port())
        await worker.warm()
        assert await _eventually(worker, "memproxy_queue_turns", 1.0, state="leased")
        age = await worker.metric("memproxy_queue_oldest_seconds")
        assert age is not None
        async with asyncio.timeout(15):
            while (older := await worker.metric("memproxy_queue_oldest_seconds") or 0.0) <= age:
                await asyncio.sleep(0.1)
        await records.turn_log.retry_at(held, due_at=SYSTEM_CLOCK(), reason="given back")
        await records.learnt("ann")
        assert await _eventually(worker, "memproxy_queue_turns", 0.0, state="leased")
        assert await _eventually(worker, "memproxy_queue_oldest_seconds", 0.0)
        assert await _eventually(worker, "memproxy_learn_lag_seconds_count", 1.0)
        assert (await worker.metric("memproxy_learn_lag_seconds_sum") or 0.0) >= older
        assert worker.stop() == 0


async def _eventually(worker: WorkerProcess, name: str, value: float, **labels: str) -> bool:
    deadline = time.monotonic() + 15
    while await worker.metric(name, **labels) != value:
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(0.2)
    return True
