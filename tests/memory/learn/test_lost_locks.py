"""Others write to a user while the worker learns: who was frozen until the lock went to somebody else writes nothing
more, or mends what came too late; what was written while the reader is asked about pairs is looked at, too."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from frozen_parts import Frozen, OnTheWire
from learning_parts import Bench, Faults, Killed, running
from plain_reader import PlainReader
from suspensions import (
    AROUND_THE_JOBS,
    EVERY,
    LOCK_LOST,
    WRITTEN_TO,
    BrokenOff,
    ProcessKilled,
    awaits_of,
    crash_points,
    crash_seed,
)
from turn_logs import Process, a_turn, sqlite_deployment

from memory.adapters.milvus.store import MilvusTimeouts
from memory.adapters.sql.job_writer import CALL_SECONDS_MAX
from memory.adapters.sql.ledger import LOCK_SECONDS, WORK_SECONDS_MAX
from memory.errors import Conflict
from memory.learn import trigger_scanner, window, worker
from memory.learn.window import VERDICT_ROUNDS_MAX
from memory.learn.worker import Worker, WorkerSettings
from memory.model import Claim, Turn
from memory.ports import LearnDue, PairVerdict, StatementPair

FROZEN_SECONDS = 31.0


def frozen_worker(
    bench: Bench, frozen: Process, other: Process, *, frozen_in: str, meanwhile: str, faults: Faults | None = None
) -> tuple[Worker, Frozen]:
    """A worker that is frozen once, in a write or in saving its plan, while another one does all the work there is."""

    async def others_learn() -> None:
        bench.deployment.clock.now += FROZEN_SECONDS
        if meanwhile:
            await bench.tell(other, meanwhile, session="s2")
        await bench.worker(other).work_off()

    if frozen_in == "plan":
        part = Frozen(frozen.log, "save_plan", others_learn)
        process = replace(frozen, log=cast(Any, part))
        return bench.worker(process, faults=faults), part
    part = Frozen(bench.store, "apply", others_learn, is_sending=frozen_in == "sending")
    return replace(bench, store=cast(Any, part)).worker(frozen, faults=faults), part


async def outcome(bench: Bench, other: Process) -> list[str]:
    """What is active in the end, with nothing left to do or held."""
    bench.deployment.clock.now += FROZEN_SECONDS
    await other.log.recover()
    await bench.worker(other).work_off()
    assert (await other.ledger.revision("ann")).is_settled
    assert (await other.log.backlog("ann", opened_before=1e12)).pending == 0
    return await bench.active()


async def prepare(bench: Bench, process: Process) -> None:
    await bench.learn(process, "I live in Paris.", session="s0")
    await bench.tell(process, "I live in Rome.", session="s1")


@pytest.mark.parametrize(
    ("frozen_in", "meanwhile"),
    [
        ("store", "I live in Berlin."),
        ("sending", "I live in Berlin."),
        ("plan", "I live in Berlin."),
        ("store", ""),
        ("sending", ""),
    ],
)
async def test_a_worker_that_was_frozen_leaves_what_everybody_said(
    bench: Bench, frozen_in: str, meanwhile: str
) -> None:
    async with bench.deployment.start() as frozen, bench.deployment.start() as other:
        await prepare(bench, frozen)
        worker, part = frozen_worker(bench, frozen, other, frozen_in=frozen_in, meanwhile=meanwhile)
        await worker.work_off()
        assert part.has_arrived is (frozen_in == "sending")
        assert await outcome(bench, other) == [meanwhile or "I live in Rome."]
        assert len(await bench.memories()) == (3 if meanwhile else 2)


async def test_a_row_of_a_killed_worker_that_arrives_late_does_not_stand_twice(bench: Bench) -> None:
    through = replace(bench, store=cast(Any, OnTheWire(bench.store, Killed())))
    async with bench.deployment.start() as killed:
        await bench.tell(killed, "My harp is red.", session="s1")
        with pytest.raises(Killed):
            await through.worker(killed).work_off()
        await bench.tell(killed, "My harp is red.", session="s2")
        await killed.log.make_due_now("ann")  # urgent, so it is learnt before what was begun
    async with bench.later(FROZEN_SECONDS) as survivor:
        await through.worker(survivor).work_off()
    (memory,) = await bench.memories()
    assert {one.turn_id for one in memory.evidence} == {"turn-1", "turn-2"}


@pytest.mark.parametrize("every", EVERY)
@pytest.mark.parametrize("frozen_in", ["store", "plan"])
async def test_who_was_frozen_and_then_dies_at_any_await_leaves_what_everybody_said(
    tmp_path: Path, frozen_in: str, every: int
) -> None:
    is_reached, lines = True, set[tuple[str, int]]()
    for number in crash_points(every):
        if not is_reached:
            break
        bench, faults = Bench(sqlite_deployment(tmp_path / str(number))), Faults(is_slow=True)
        async with bench.deployment.start() as other:
            async with bench.deployment.start() as frozen:
                await prepare(bench, frozen)
                worker, _ = frozen_worker(
                    bench, frozen, other, frozen_in=frozen_in, meanwhile="I live in Berlin.", faults=faults
                )
                run = BrokenOff(worker.work_off(), at=number, error=Killed())
                with suppress(Killed):
                    await run
            is_reached = run.suspensions >= number
            lines |= faults.callers | run.lines
            bench.deployment.clock.now += FROZEN_SECONDS
            await bench.worker(other).work_off()
            if "I live in Berlin." not in await bench.contents():  # it died before others had to wait for it
                await bench.tell(other, "I live in Berlin.", session="s2")
            assert await outcome(bench, other) == ["I live in Berlin."], f"died at suspension {number}"
    assert number > 30
    if frozen_in == "store" and every == 1:  # there the plan was stored, so there is something to mend
        places = awaits_of(Path(str(window.__file__)), only=LOCK_LOST)
        assert [str(place) for place in places if not place.is_among(lines)] == []


async def test_a_window_whose_lock_is_lost_again_and_again_becomes_a_dead_letter(bench: Bench) -> None:
    async with bench.deployment.start() as slow, bench.deployment.start() as other:

        async def others_write() -> None:
            bench.deployment.clock.now += FROZEN_SECONDS
            async with other.ledger.write("ann"):
                pass

        await bench.tell(slow, "I live in Rome.")
        for attempt in range(1, WorkerSettings().attempts_max + 1):
            part = Frozen(bench.store, "apply", others_write)
            assert await replace(bench, store=cast(Any, part)).worker(slow).work_off() == 1, f"attempt {attempt}"
            assert await bench.worker(other).work_off() == 0  # not at once
            bench.deployment.clock.now += WorkerSettings().retry_seconds_max
        assert (await slow.log.depth(now=bench.deployment.clock.now)).dead == 1
        assert await bench.contents() == []
        assert bench.count("memproxy_windows_total", outcome="retried") == WorkerSettings().attempts_max - 1


async def test_nothing_is_written_or_forgotten_under_a_lock_that_somebody_else_took(bench: Bench) -> None:
    deployment = bench.deployment
    async with deployment.start() as slow, deployment.start() as other:
        lock = slow.ledger.write("ann")
        held = await lock.__aenter__()
        deployment.clock.now += FROZEN_SECONDS
        await held.renew()  # nobody was faster
        deployment.clock.now += FROZEN_SECONDS
        async with other.ledger.write("ann") as theirs:
            with pytest.raises(Conflict):
                await held.renew()
            with pytest.raises(Conflict):
                await held.forget(["m"])
            assert await theirs.forgotten(["m"]) == frozenset()
        with pytest.raises(Conflict):
            await lock.__aexit__(None, None, None)


async def test_a_renewed_lock_outlives_its_first_term(bench: Bench, process: Process) -> None:
    async with process.ledger.write("ann") as held:
        for _ in range(3):
            bench.deployment.clock.now += LOCK_SECONDS - 1
            await held.renew()
            await process.log.recover()
    revision = await process.ledger.revision("ann")
    assert (revision.is_settled, revision.number) == (True, 0)
    assert await process.ledger.changed_since("ann", revision.number) == frozenset()  # it was not repaired


def test_one_write_takes_less_time_than_the_lock_lasts_and_what_is_left_out_elsewhere_is_there() -> None:
    store = MilvusTimeouts()
    assert CALL_SECONDS_MAX + store.read + store.write <= WORK_SECONDS_MAX < LOCK_SECONDS
    assert awaits_of(Path(str(window.__file__)), only=WRITTEN_TO)


class WrittenTo(PlainReader):
    """While it is asked about pairs, another process moves the user once more, the first `times`."""

    def __init__(self, bench: Bench, other: Process, *, times: int) -> None:
        super().__init__()
        self._bench = bench
        self._other = other
        self._times = times
        self.asked = 0

    async def relate(self, pairs: Sequence[StatementPair]) -> list[PairVerdict]:
        self.asked += 1
        if self.asked <= self._times:
            await self._bench.learn(self._other, f"I live in Town{self.asked}.", session=f"other-{self.asked}")
        return await super().relate(pairs)


@pytest.mark.parametrize("times", [1, VERDICT_ROUNDS_MAX])
async def test_the_newest_statement_alone_stands_however_often_others_wrote(bench: Bench, times: int) -> None:
    async with bench.deployment.start() as process, bench.deployment.start() as other:
        await prepare(bench, process)
        reader = WrittenTo(bench, other, times=times)
        await bench.worker(process, reader=reader).work_off()
    assert reader.asked >= times
    assert await bench.active() == [f"I live in Town{times}."]  # it was said last
    assert len(await bench.memories()) == times + 2


# Killed at every await of what a worker runs around its jobs: nothing is lost, doubled or left locked

BEFORE_THE_PAUSE, LAST, OPEN = ("ann", "bob", "carl"), "dora", "eve"
TOLD = {user: f"Please remember that {user}'s car is blue." for user in (*BEFORE_THE_PAUSE, LAST)}
TOLD[OPEN] = "My cat is called Tom."
SETTINGS = WorkerSettings(
    due=LearnDue(idle_seconds=0.001),
    queue_turns_max=1,
    windows_at_once=2,
    lease_seconds=0.03,
    poll_seconds=0.002,
    **dict.fromkeys(("drain_seconds", "recover_seconds", "scan_seconds", "measure_seconds"), 0.01),
)
LATER_SECONDS = 1_000.0
PLACES = [
    place
    for module in (worker, trigger_scanner)
    for place in awaits_of(Path(str(module.__file__)), only=AROUND_THE_JOBS)
]


class SlowModel(PlainReader):
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
    model = SlowModel()
    async with running(bench.worker(process, faults=Faults(is_slow=True), model=model, settings=SETTINGS)):
        while await bench.contents(BEFORE_THE_PAUSE[-1]) == []:
            await asyncio.sleep(0.005)
        await asyncio.sleep(0.02)
        model.asked.clear()
        await bench.tell(process, TOLD[LAST], user=LAST)
        bench.deployment.clock.now += 1
        await model.asked.wait()


async def left_of_all(bench: Bench, process: Process) -> list[str]:
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
        return await left_of_all(bench, survivor)


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
