"""What a part that is away costs a window: no attempt, only time. And what ends that, on a real turn log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, cast

import pytest
from learning_parts import Bench, Moody
from turn_logs import Process

from memory.errors import Unavailable, Unusable
from memory.learn.worker import Worker, WorkerSettings
from memory.model import Change, Record, Vector
from memory.ports import DeadLetter, MemoryFilter

BUDGET = "My budget for the Hawaii trip is $10,000"
DOWN = Unavailable("model", "no answer within 30 s")
JUNK = Unusable("model", "junk")
HOUR = 3_600.0


async def worked_for(bench: Bench, worker: Worker, seconds: float, *, step: float = 1.0) -> None:
    ends_at = bench.deployment.clock.now + seconds
    while bench.deployment.clock.now < ends_at:
        await worker.work_off()
        bench.deployment.clock.now += step


async def letters(process: Process) -> list[DeadLetter]:
    return await process.log.dead_letters(limit=9)


async def asked_at(
    bench: Bench, process: Process, troubles: Sequence[Exception], seconds: float, *, step: float = 1.0, **settings: Any
) -> list[float]:
    """When a model was asked about one turn, with which it meets one trouble after the other."""
    model = Moody(bench, *troubles)
    await bench.tell(process, BUDGET)
    worker = bench.worker(process, model=model, jitter=settings.pop("jitter", 1.0), settings=WorkerSettings(**settings))
    await worked_for(bench, worker, seconds, step=step)
    return model.at


async def test_an_hour_without_the_model_costs_no_attempt_and_no_dead_letter(bench: Bench, process: Process) -> None:
    at = await asked_at(bench, process, [DOWN] * 20, 2 * HOUR, step=10.0, attempts_max=2)
    assert await letters(process) == []
    assert at[20] - at[0] > HOUR
    assert await bench.contents() == [BUDGET]
    assert bench.count("memproxy_windows_total", outcome="sat_out") == 20
    assert bench.count("memproxy_windows_total", outcome="retried") == 0


async def test_while_it_is_down_the_model_is_asked_later_and_later(bench: Bench, process: Process) -> None:
    at = await asked_at(bench, process, [DOWN] * 5, 200.0, retry_base_seconds=10.0, retry_seconds_max=25.0)
    assert [after - before for before, after in pairwise(at)] == [10, 20, 25, 25, 25]


async def test_away_for_too_long_it_is_a_dead_letter_and_a_replay_gives_it_all_its_time_again(
    bench: Bench, process: Process
) -> None:
    settings = WorkerSettings(retry_seconds_max=20.0, model_outage_seconds_max=100.0)
    await bench.tell(process, BUDGET)
    worker = bench.worker(process, model=Moody(bench, *[DOWN] * 1_000), settings=settings)
    await worked_for(bench, worker, 99.0)
    assert await letters(process) == []
    await worked_for(bench, worker, 30.0)
    (letter,) = await letters(process)
    assert letter.reason == str(DOWN)
    assert letter.attempts == bench.count("memproxy_windows_total", outcome="sat_out") + 1
    bench.deployment.clock.now += HOUR
    await process.log.replay([])
    await worked_for(bench, worker, 99.0)
    assert await letters(process) == []
    await bench.worker(process).work_off()
    await worked_for(bench, bench.worker(process), 30.0)
    assert await bench.contents() == [BUDGET]


async def test_an_outage_between_two_bad_answers_leaves_the_attempts_as_they_were(
    bench: Bench, process: Process
) -> None:
    troubles = [JUNK, *[DOWN] * 9, JUNK, *[DOWN] * 9, JUNK]
    at = await asked_at(bench, process, troubles, 300.0, attempts_max=3, retry_seconds_max=10.0)
    (letter,) = await letters(process)
    assert (letter.reason, letter.attempts) == (str(JUNK), 3 + 9)  # those that met the last outage are told, too
    assert len(at) == 21
    assert bench.count("memproxy_windows_total", outcome="retried") == 2


async def test_each_outage_is_sat_out_for_itself(bench: Bench, process: Process) -> None:
    """One that ended is not added to the next."""
    troubles, limits = [*[DOWN] * 9, JUNK, *[DOWN] * 9], {"retry_seconds_max": 10.0, "model_outage_seconds_max": 100.0}
    at = await asked_at(bench, process, troubles, 300.0, **limits)
    assert await letters(process) == []
    assert at[-1] - at[0] > 100.0
    assert await bench.contents() == [BUDGET]


async def test_turns_that_waited_for_days_have_all_the_time_of_an_outage(bench: Bench, process: Process) -> None:
    await bench.tell(process, BUDGET)
    bench.deployment.clock.now += 30 * 24 * HOUR
    await asked_at(bench, process, [DOWN] * 10, HOUR, step=10.0, attempts_max=1, retry_seconds_max=60.0)
    assert await letters(process) == []
    assert await bench.contents() == [BUDGET]


@pytest.mark.parametrize("trouble", [DOWN, JUNK])
async def test_whoever_needs_no_model_goes_on_beside(bench: Bench, process: Process, trouble: Exception) -> None:
    model = Moody(bench, *[trouble] * 50)
    worker = bench.worker(process, model=model, settings=WorkerSettings(attempts_max=100))
    for number in range(5):
        await bench.tell(process, f"{BUDGET}{number}", user="ann", session=f"s{number}")
        await bench.tell(process, f"{BUDGET}{number}", user="bob", session=f"s{number}")
        await worker.work_off()
        assert len(await bench.memories("bob")) == number + 1
    assert not worker._is_part_down
    assert await bench.memories("ann") == []


async def test_an_outage_of_our_own_parts_is_sat_out_and_halts_all(bench: Bench, process: Process) -> None:
    await bench.tell(process, BUDGET)
    down, settings = _StoreDown(), WorkerSettings(attempts_max=3)
    while_down = _without_store(bench, down).worker(process, settings=settings)
    await worked_for(bench, while_down, 60.0, step=6.0)
    assert down.asked > 5
    assert while_down._is_part_down
    assert await letters(process) == []
    await bench.worker(process, settings=settings).work_off()
    assert await bench.contents() == [BUDGET]


async def test_our_own_parts_too_are_not_waited_for_for_ever(bench: Bench, process: Process) -> None:
    await bench.tell(process, BUDGET)
    settings = WorkerSettings(attempts_max=1, outage_seconds_max=50.0)
    worker = _without_store(bench, _StoreDown()).worker(process, settings=settings)
    await worked_for(bench, worker, 49.0)
    assert await letters(process) == []
    await worked_for(bench, worker, 3.0)
    (letter,) = await letters(process)
    assert "milvus" in letter.reason


class _StoreDown:
    def __init__(self) -> None:
        self.asked = 0

    async def load_few(self, where: MemoryFilter, *, most: int) -> list[Record] | None:
        self.asked += 1
        raise Unavailable("milvus", "connection refused")

    async def apply(self, user_id: str, changes: Sequence[Change], vectors: Vector) -> None:
        raise Unavailable("milvus", "connection refused")


def _without_store(bench: Bench, down: _StoreDown) -> Bench:
    return replace(bench, store=cast(Any, down), has_sets=False)


@pytest.mark.parametrize("jitter", [0.0, 1.0])
async def test_waits_after_bad_answers_double_up_to_the_longest_and_lie_between_half_and_all_of_it(
    bench: Bench, process: Process, jitter: float
) -> None:
    limits = {"attempts_max": 10, "retry_base_seconds": 2.0, "retry_seconds_max": 60.0}
    at = await asked_at(bench, process, [JUNK] * 9, 300.0, step=0.25, jitter=jitter, **limits)
    whole = [min(2.0 * 2**n, 60.0) for n in range(8)]
    waits = [after - before for before, after in pairwise(at)][:8]
    assert waits == pytest.approx([one * (0.5 + jitter / 2) for one in whole], abs=0.25)
