"""The worker on a real turn log: what it learns, what it never learns, and what becomes of a window that fails."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from learning_parts import Bench, Faults, Killed, Moody
from plain_reader import PlainReader
from turn_logs import Process, a_turn, sqlite_deployment

from memory.errors import Unavailable
from memory.learn.worker import WorkerSettings
from memory.model import Claim, Turn
from memory.ports import LearnDue

BUDGET = "My budget for the Hawaii trip is $10,000"


async def test_a_told_fact_becomes_one_memory_with_its_evidence(bench: Bench, process: Process) -> None:
    turn = await bench.tell(process, f"{BUDGET}. Can you plan it?", project="p")
    assert await bench.worker(process).work_off() == 1
    (memory,) = await bench.memories(project="p")
    assert memory.content == f"{BUDGET}."
    assert (memory.evidence[0].quote, memory.evidence[0].turn_id) == (f"{BUDGET}.", turn.id)
    assert (memory.said_at, memory.session_id, memory.project_id) == (turn.at, "s1", "p")
    assert bench.count("memproxy_facts_total", outcome="created") == 1
    assert bench.count("memproxy_windows_total", outcome="learnt") == 1


async def test_the_same_statement_of_another_user_or_project_is_another_memory(bench: Bench, process: Process) -> None:
    places = (("ann", "p"), ("ann", "q"), ("bob", "p"))
    for user, project in places:
        await bench.learn(process, BUDGET, user=user, project=project)
    rows = [memory for user, project in places for memory in await bench.memories(user, project=project)]
    assert [(row.user_id, row.project_id) for row in rows] == list(places)
    assert len({row.id for row in rows}) == 3


async def test_a_running_worker_learns_what_is_closed_and_what_a_dead_process_left_open(bench: Bench) -> None:
    async with bench.deployment.start() as dying:
        await dying.log.open(a_turn("open-one", text=BUDGET))
    async with bench.deployment.start() as process, asyncio.timeout(60), asyncio.TaskGroup() as group:
        until = asyncio.Event()
        group.create_task(bench.worker(process).run(until))
        await bench.tell(process, "My cat is called Tom.")
        while len(await bench.memories()) < 2:
            await asyncio.sleep(0.01)
        until.set()
    assert await bench.contents() == [BUDGET, "My cat is called Tom."]


async def test_no_more_windows_are_learnt_at_once_than_are_allowed(bench: Bench, process: Process) -> None:
    model = _Busy(until=lambda: model.most_at_once >= 3)
    settings = WorkerSettings(windows_at_once=3)
    for number in range(7):
        await bench.tell(process, BUDGET, user=f"user-{number}")
    until = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(bench.worker(process, model=model, settings=settings).run(until))
        while model.finished < 7:
            await asyncio.sleep(0.01)
        until.set()
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
    await bench.tell(process, BUDGET)
    await bench.worker(process, faults=faults, model=model, settings=settings).work_off()
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
        until = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(bench.worker(one).run(until))
            group.create_task(bench.worker(two).run(until))
            while (await one.log.backlog("ann", opened_before=1e12)).pending:
                await asyncio.sleep(0.02)
            until.set()
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
