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
from learning_processes import LearningProcesses, WorkerProcess, records_of
from misbehaving_model import Mood, running_moody_model
from plain_reader import PlainReader
from turn_logs import sqlite_deployment

from memory.errors import Unusable
from memory.learn.worker import WorkerSettings
from memory.model import Claim, Turn
from memory.ports import LearnDue
from memory.processes.composition import SYSTEM_CLOCK

BASE, LONGEST, STEP_SECONDS = 2.0, 60.0, 0.25
ANSWER_SECONDS, OUTAGE_SECONDS = 0.5, 4.0
HANG_SECONDS = 120.0
TOWNS = ("Leeds", "York", "Bristol", "Oxford", "Bath", "Hull")
USELESS = {"Leeds": Mood.SILENT, "Oxford": Mood.JUNK, "Bath": Mood.HUGE}
CALLS = {"Oxford": 2, "Bath": 1}  # junk is sent back once; nobody reads what is too long
REAL = pytest.mark.full("workers are started")
ON_SQLITE = pytest.mark.parametrize("parts", ["sqlite"], indirect=True)  # of the model, whatever holds the queue


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.parametrize("jitter", [0.0, 1.0])
async def test_waits_double_up_to_the_longest_and_lie_between_half_and_all_of_it(tmp_path: Path, jitter: float) -> None:
    bench = Bench(sqlite_deployment(tmp_path))
    clock, waits = bench.deployment.clock, []
    settings = WorkerSettings(attempts_max=10, retry_base_seconds=BASE, retry_seconds_max=LONGEST)
    async with bench.deployment.start() as process:
        await bench.tell(process, "My cat is called Tom.")
        worker = bench.worker(process, model=_Junk(), settings=settings, jitter=jitter)
        assert await worker.work_off() == 1
        for _ in range(8):
            tried = clock.now
            while not await worker.work_off():
                clock.now += STEP_SECONDS
            waits.append(clock.now - tried)
    whole = [min(BASE * 2**n, LONGEST) for n in range(8)]
    assert waits == pytest.approx([one * (0.5 + jitter / 2) for one in whole], abs=STEP_SECONDS)


class _Junk(PlainReader):
    async def read(self, turns: Sequence[Turn], *, context: Sequence[Turn]) -> list[Claim]:
        raise Unusable("model", "junk")


def with_model(port: int) -> dict[str, Any]:
    """Settings of a worker that has this model read, and is not patient."""
    endpoint = {"address": "127.0.0.1", "port": port}
    model = {"model_role": "memory_extraction", "llm_endpoint": endpoint, "llm_model_name": "moody"}
    retries = {"retry_attempts": 3, "retry_base_seconds": 0.1, "retry_max_seconds": 0.2}
    patience = {**retries, "model_outage_max_seconds": OUTAGE_SECONDS, "idle_seconds": 0.2}
    return {
        "external_models": [{**model, "llm_timeout_seconds": ANSWER_SECONDS}],
        "memory": {"learn": {"reader": "model", **patience}},
    }


def budget(town: str) -> str:
    """Plain enough for the trained reader, whichever weights it has."""
    return f"My budget for the {town} trip is $10,000."


@REAL
@ON_SQLITE
async def test_what_a_model_gives_no_use_of_is_read_by_the_trained_reader_and_is_no_dead_letter(
    parts: LearningProcesses,
) -> None:
    async with records_of(parts) as records, running_moody_model(USELESS) as model:
        worker = parts.start_worker(with_model(model.port), metrics_port=free_port())
        await worker.warm()
        for town in USELESS:
            await records.tell(f"{town}-1", town, budget(town), at=SYSTEM_CLOCK())
        await records.learnt(*USELESS, seconds=HANG_SECONDS)
        for town in USELESS:
            (memory,) = await records.memories(town)
            assert (memory.content, memory.made_by.split()[0]) == (budget(town), "trained")
        assert {town: model.reads[town] for town in CALLS} == CALLS
        assert await asyncio.to_thread(parts.dead_letters) == []
        assert await worker.metric("memproxy_model_calls_total", outcome="late")
        assert worker.stop() == 0


@REAL
@ON_SQLITE
async def test_a_model_that_is_down_for_longer_than_allowed_costs_nothing_but_a_replay(
    parts: LearningProcesses,
) -> None:
    port = free_port()
    async with records_of(parts) as records:
        worker = parts.start_worker(with_model(port))
        await worker.warm()
        for town in TOWNS:
            await records.tell(f"{town}-1", town, budget(town), at=SYSTEM_CLOCK())
        async with asyncio.timeout(HANG_SECONDS):
            while len(await records.turn_log.dead_letters(limit=len(TOWNS) + 1)) < len(TOWNS):
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


@REAL
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
        async with asyncio.timeout(HANG_SECONDS):
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
    deadline = time.monotonic() + HANG_SECONDS
    while await worker.metric(name, **labels) != value:
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(0.2)
    return True
