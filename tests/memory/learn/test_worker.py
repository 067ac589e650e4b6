"""The worker on a real turn log: what it learns, what becomes of a window that fails, and what ends an outage.

A part that is away costs a window no attempt, only time.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import pytest
from learning_parts import Bench, Faults, Killed, Moody, happens, running
from plain_reader import PlainReader
from turn_logs import Process, a_turn, sqlite_deployment

from memory.errors import Unavailable, Unusable
from memory.learn.worker import Worker, WorkerSettings
from memory.model import Change, Claim, Record, Turn, Vector
from memory.ports import DeadLetter, LearnDue, MemoryFilter

BUDGET = "My budget for the Hawaii trip is $10,000"


async def test_a_told_fact_becomes_one_memory_with_its_evidence_for_each_user_and_project(
    bench: Bench, process: Process
) -> None:
    places, found = (("ann", "p"), ("ann", "q"), ("bob", "p")), []
    for user, project in places:
        (turn,) = await bench.learn(process, f"{BUDGET}. Can you plan it?", user=user, project=project)
        (memory,) = await bench.memories(user, project=project)
        assert memory.content == f"{BUDGET}."
        assert (memory.evidence[0].quote, memory.evidence[0].turn_id) == (f"{BUDGET}.", turn.id)
        assert (memory.said_at, memory.session_id) == (turn.at, "s1")
        found.append(memory)
    assert [(row.user_id, row.project_id) for row in found] == list(places)
    assert len({row.id for row in found}) == 3
    assert bench.count("memproxy_facts_total", outcome="created") == 3
    assert bench.count("memproxy_windows_total", outcome="learnt") == 3


async def test_a_running_worker_learns_what_is_closed_and_what_a_dead_process_left_open(bench: Bench) -> None:
    async with bench.deployment.start() as dying:
        await dying.log.open(a_turn("open-one", text=BUDGET))
    async with bench.deployment.start() as process, running(bench.worker(process)):
        await bench.tell(process, "My cat is called Tom.")
        while len(await bench.memories()) < 2:
            await asyncio.sleep(0.01)
    assert await bench.contents() == [BUDGET, "My cat is called Tom."]


async def test_no_more_windows_are_learnt_at_once_than_are_allowed(bench: Bench, process: Process) -> None:
    model = _Busy(until=lambda: model.most_at_once >= 3)
    settings = WorkerSettings(windows_at_once=3)
    for number in range(7):
        await bench.tell(process, BUDGET, user=f"user-{number}")
    async with running(bench.worker(process, model=model, settings=settings)):
        await happens(lambda: model.finished == 7)
    assert model.most_at_once == 3


async def test_told_to_stop_it_finishes_what_is_under_way(bench: Bench, process: Process) -> None:
    until = asyncio.Event()
    model = _Busy(until=until.is_set)
    await bench.tell(process, BUDGET)
    async with asyncio.TaskGroup() as group:
        group.create_task(bench.worker(process, model=model).run(until))
        while not model.running:
            await asyncio.sleep(0.01)
        until.set()
    assert model.finished == 1
    assert await process.log.lease(now=bench.deployment.clock() + 1e6, seconds=1, due=LearnDue()) is None


async def test_the_lease_is_extended_while_the_model_thinks(bench: Bench, process: Process) -> None:
    faults, settings = Faults(), WorkerSettings(lease_seconds=0.06)
    model = _Busy(until=lambda: faults.calls.count("extend") >= 2)
    await bench.learn(process, BUDGET, worker=bench.worker(process, faults=faults, model=model, settings=settings))
    assert model.finished == 1


async def test_a_lost_lease_stops_the_work_before_anything_is_stored(bench: Bench) -> None:
    async with bench.deployment.start() as process, bench.deployment.start() as other:
        await bench.tell(process, BUDGET)

        async def take_over() -> None:
            bench.deployment.clock.now += 10
            assert await other.log.lease(now=bench.deployment.clock(), seconds=100, due=LearnDue()) is not None

        model = _Busy(until=lambda: False, meanwhile=take_over)
        await bench.worker(process, model=model, settings=WorkerSettings(lease_seconds=3.0)).work_off()
        assert await bench.memories() == []
    assert bench.count("memproxy_windows_total", outcome="lost") == 1


async def test_a_fault_of_ours_is_counted_retried_and_buried_and_others_go_on(bench: Bench, process: Process) -> None:
    settings = WorkerSettings(attempts_max=2, retry_base_seconds=1.0)
    await bench.tell(process, BUDGET, user="ann")
    await bench.tell(process, BUDGET, user="bob")
    worker = bench.worker(process, model=Moody(bench, *[RuntimeError("words of a message")] * 9), settings=settings)
    for _ in range(5):
        await worker.work_off()
        bench.deployment.clock.now += 10
    (letter,) = await process.log.dead_letters(limit=5)
    assert (letter.user_id, letter.reason) == ("ann", "unexpected RuntimeError")
    assert len(await bench.memories("bob")) == 1
    assert bench.count("memproxy_windows_total", outcome="buried") == 1


async def test_two_sessions_of_one_user_learning_at_once_lose_no_update(bench: Bench) -> None:
    async with bench.deployment.start() as one, bench.deployment.start() as two:
        for number in range(12):
            await bench.tell(one, BUDGET, session=f"s{number % 2}")
        async with running(bench.worker(one), bench.worker(two)):
            while (await one.log.backlog("ann", opened_before=1e12)).pending:
                await asyncio.sleep(0.02)
        (memory,) = await bench.memories()
        assert memory.evidence[0].turn_id == "turn-1"
        assert len(memory.evidence) == 5


TOLD = ("My budget for the Hawaii trip is $10,000. My cat is called Tom.", "My budget for the Hawaii trip is $10,000!")
KNOWN = "My sister lives in Oslo."
ERRORS = (Killed(), False), (asyncio.CancelledError(), True), (Unavailable("milvus", ""), False), (RuntimeError(), True)


@pytest.mark.parametrize(("error", "is_after"), ERRORS)
async def test_a_crash_at_any_call_loses_and_doubles_nothing(
    tmp_path: Path, error: BaseException, *, is_after: bool
) -> None:
    for number in itertools.count(1):
        bench = Bench(sqlite_deployment(tmp_path / str(number)))
        faults = Faults(number=number, error=error, is_after=is_after)
        async with bench.deployment.start() as dying:
            await bench.learn(dying, KNOWN, session="before")
            for message in (*TOLD, KNOWN):
                await bench.tell(dying, message)
            with suppress(type(error)):
                await bench.worker(dying, faults=faults).work_off()
        await check_after_recovery(bench)
        if len(faults.calls) < number:
            break
    assert {"lease", "read", "embed", "lock", "save_plan", "apply", "acknowledge"} <= set(faults.calls)


async def check_after_recovery(bench: Bench) -> None:
    """Somebody else takes over, and the outcome is that of a quiet run."""
    async with bench.later(1000) as survivor:
        await bench.worker(survivor).work_off()
        stored = {memory.content: [one.turn_id for one in memory.evidence] for memory in await bench.memories()}
        assert stored == {
            KNOWN: ["turn-1", "turn-4"],
            "My budget for the Hawaii trip is $10,000.": ["turn-2", "turn-3"],
            "My cat is called Tom.": ["turn-2"],
        }
        backlog = await survivor.log.backlog("ann", opened_before=1e12)
        assert (backlog.pending, backlog.failed) == (0, 0)
        assert (await survivor.ledger.revision("ann")).is_settled


class _Busy(PlainReader):
    """Reads until something has happened, finds nothing, and knows how many windows it read at once."""

    def __init__(self, *, until: Callable[[], bool], meanwhile: Callable[[], Awaitable[None]] | None = None) -> None:
        super().__init__()
        self.running = 0
        self.most_at_once = 0
        self.finished = 0
        self._until = until
        self._meanwhile = meanwhile

    async def read(self, turns: Sequence[Turn], *, context: Sequence[Turn]) -> list[Claim]:
        self.running += 1
        self.most_at_once = max(self.most_at_once, self.running)
        if self._meanwhile is not None:
            await self._meanwhile()
        async with asyncio.timeout(60):
            while not self._until():
                await asyncio.sleep(0.005)
        await asyncio.sleep(0.02)  # for one too many to come
        self.running -= 1
        self.finished += 1
        return []


# Outages

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
    """Also of turns that had waited for days."""
    await bench.tell(process, BUDGET)
    bench.deployment.clock.now += 30 * 24 * HOUR
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


@pytest.mark.parametrize("trouble", [DOWN, JUNK])
async def test_whoever_needs_no_model_goes_on_beside(bench: Bench, process: Process, trouble: Exception) -> None:
    model = Moody(bench, *[trouble] * 50)
    worker = bench.worker(process, model=model, settings=WorkerSettings(attempts_max=100))
    for number in range(5):
        await bench.tell(process, f"{BUDGET}{number}", user="ann", session=f"s{number}")
        await bench.learn(process, f"{BUDGET}{number}", user="bob", session=f"s{number}", worker=worker)
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
