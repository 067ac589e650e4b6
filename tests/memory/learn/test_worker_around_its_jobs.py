"""The worker killed at every await of what it runs around its jobs: nothing is lost, doubled or left locked."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from learning_parts import Bench, Faults
from plain_reader import PlainReader
from suspensions import AROUND_THE_JOBS, EVERY, ProcessKilled, awaits_of, crash_seed
from turn_logs import Process, a_turn, sqlite_deployment

from memory.learn import trigger_scanner, worker
from memory.learn.worker import WorkerSettings
from memory.model import Claim, Turn
from memory.ports import LearnDue

BEFORE_THE_PAUSE, LAST, OPEN = ("ann", "bob", "carl"), "dora", "eve"
TOLD = {user: f"Please remember that {user}'s car is blue." for user in (*BEFORE_THE_PAUSE, LAST)}
TOLD[OPEN] = "My cat is called Tom."
SETTINGS = WorkerSettings(
    due=LearnDue(idle_seconds=0.001),
    queue_turns_max=1,
    windows_at_once=2,
    drain_seconds=0.01,
    lease_seconds=0.03,
    poll_seconds=0.002,
    recover_seconds=0.01,
    scan_seconds=0.01,
    measure_seconds=0.01,
)
LATER_SECONDS = 1_000.0
PLACES = [
    place
    for module in (worker, trigger_scanner)
    for place in awaits_of(Path(str(module.__file__)), only=AROUND_THE_JOBS)
]


class Slow(PlainReader):
    """A model that takes several extensions of the lease, and longer than a worker that is told to stop waits."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = asyncio.Event()

    async def read(self, turns: Sequence[Turn], *, context: Sequence[Turn]) -> list[Claim]:
        self.asked.set()
        await asyncio.sleep(0.05)
        return await super().read(turns, context=context)


async def a_working_day(bench: Bench, process: Process) -> None:
    """More sessions than are learnt at once, a turn left open, a pause; then it is told to stop while it works."""
    until, model = asyncio.Event(), Slow()
    worker = bench.worker(process, faults=Faults(is_slow=True), model=model, settings=SETTINGS)
    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        group.create_task(worker.run(until))
        while await bench.contents(BEFORE_THE_PAUSE[-1]) == []:
            await asyncio.sleep(0.005)
        await asyncio.sleep(0.02)
        model.asked.clear()
        await bench.tell(process, TOLD[LAST], user=LAST)
        bench.deployment.clock.now += 1
        await model.asked.wait()
        until.set()


async def outcome(bench: Bench, process: Process) -> list[str]:
    """What stands in the end, with nothing left to do or held."""
    for user in TOLD:
        assert (await process.ledger.revision(user)).is_settled
        assert (await process.log.backlog(user, opened_before=1e12)).pending == 0
    assert await process.log.dead_letters(limit=5) == []
    return sorted([content for user in TOLD for content in await bench.contents(user)])


async def killed_at(bench: Bench, kill: ProcessKilled) -> list[str]:
    async with bench.deployment.start() as other, bench.deployment.start() as dying:
        for user in BEFORE_THE_PAUSE:
            await bench.tell(dying, TOLD[user], user=user)
        await dying.log.open(a_turn("left open", user=OPEN, text=TOLD[OPEN]))
        bench.deployment.clock.now += 1
        await kill.run(a_working_day(bench, dying))
        if not [turn async for turn in other.log.turns(LAST)]:  # who tells it does not wait for the worker
            await bench.tell(other, TOLD[LAST], user=LAST)
    await kill.move_to_dead_letters()
    async with bench.later(LATER_SECONDS) as survivor:
        await survivor.log.recover()
        for _ in range(2):
            bench.deployment.clock.now += LATER_SECONDS
            await bench.worker(survivor).work_off()
        return await outcome(bench, survivor)


@pytest.mark.parametrize("every", EVERY)
@pytest.mark.parametrize("number", [1, 2, 3])
async def test_a_kill_beside_the_jobs_leaves_what_an_undisturbed_run_leaves(
    tmp_path: Path, number: int, every: int
) -> None:
    """`number`: the first, second and third moment of waiting there: before the call, within it, after it."""
    undisturbed = await killed_at(Bench(sqlite_deployment(tmp_path / "quiet")), ProcessKilled(None))
    assert len(undisturbed) == len(TOLD)
    unreached: list[str] = []
    for index, place in enumerate(PLACES[crash_seed() % every :: every]):
        bench, kill = Bench(sqlite_deployment(tmp_path / str(index))), ProcessKilled(place, number=number)
        assert await killed_at(bench, kill) == undisturbed, f"killed at {place}"
        if not kill.is_dead:
            unreached.append(str(place))
    assert number > 1 or unreached == []
