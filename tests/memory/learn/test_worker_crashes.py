"""A crash before and after every call that the worker makes, one after the other: nothing lost, nothing doubled."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from learning_parts import Bench, Faults, Killed
from turn_logs import sqlite_deployment

from memory.errors import Unavailable
from memory.learn.plan import Plan, encode

TOLD = ("My budget for the Hawaii trip is $10,000. My cat is called Tom.", "My budget for the Hawaii trip is $10,000!")
KNOWN = "My sister lives in Oslo."
STORED = sorted([KNOWN, "My budget for the Hawaii trip is $10,000.", "My cat is called Tom."])


async def calls_of_a_quiet_run(folder: Path) -> list[str]:
    faults = Faults()
    bench = Bench(sqlite_deployment(folder))
    await _prepare(bench)
    async with bench.deployment.start() as process:
        await bench.worker(process, faults=faults).work_off()
    assert await bench.contents() == STORED
    return faults.calls


async def _prepare(bench: Bench) -> None:
    async with bench.deployment.start() as process:
        await bench.tell(process, KNOWN, session="before")
        await bench.worker(process).work_off()
        for message in (*TOLD, KNOWN):
            await bench.tell(process, message)


async def _check_after_recovery(bench: Bench) -> None:
    """Somebody else takes over, and the outcome is that of a quiet run."""
    bench.deployment.clock.now += 1_000
    async with bench.deployment.start() as survivor:
        await bench.worker(survivor).work_off()
        assert await bench.contents() == STORED
        sister = next(m for m in await bench.memories() if m.content == KNOWN)
        budget = next(m for m in await bench.memories() if "budget" in m.content)
        assert [e.turn_id for e in sister.evidence] == ["turn-1", "turn-4"]
        assert [e.turn_id for e in budget.evidence] == ["turn-2", "turn-3"]
        backlog = await survivor.log.backlog("ann", opened_before=1e12)
        assert (backlog.pending, backlog.failed) == (0, 0)
        assert (await survivor.ledger.revision("ann")).is_settled


@pytest.mark.parametrize(
    "error", [Killed(), asyncio.CancelledError(), Unavailable("milvus", "gone"), RuntimeError("bug")]
)
@pytest.mark.parametrize("is_after", [False, True])
async def test_a_crash_at_any_call_loses_and_doubles_nothing(
    tmp_path: Path, error: BaseException, *, is_after: bool
) -> None:
    calls = await calls_of_a_quiet_run(tmp_path)
    assert {"lease", "read", "embed", "lock", "save_plan", "apply", "acknowledge"} <= set(calls)
    for number in range(1, len(calls) + 1):
        bench = Bench(sqlite_deployment(tmp_path / str(number)))
        (tmp_path / str(number)).mkdir()
        await _prepare(bench)
        async with bench.deployment.start() as dying:
            faults = Faults(number=number, error=error, is_after=is_after)
            try:
                await bench.worker(dying, faults=faults).work_off()
            except type(error):
                pass
        await _check_after_recovery(bench)


async def test_a_task_that_is_cancelled_at_any_moment_leaves_all_in_order(tmp_path: Path) -> None:
    for number in range(25):
        bench = Bench(sqlite_deployment(tmp_path / str(number)))
        (tmp_path / str(number)).mkdir()
        await _prepare(bench)
        async with bench.deployment.start() as dying, asyncio.TaskGroup() as group:
            task = group.create_task(bench.worker(dying).work_off())
            for _ in range(number):
                await asyncio.sleep(0.0005)
            task.cancel()
        await _check_after_recovery(bench)


def test_a_plan_is_bytes_that_any_attempt_reads_alike() -> None:
    assert encode(Plan()) == b'{"version": 5, "forget": [], "changes": [], "outcomes": {}, "basis": null}'
