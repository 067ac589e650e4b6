"""Exam results: what one worker's exam showed, all know; nothing lasts for ever. On every adapter."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest
from reading_parts import InMemoryExamResults
from redis_parts import REDIS_KINDS, shared_client
from turn_logs import ManualClock

from memory.adapters.redis.exams import RedisExamResults
from memory.adapters.sqlite.database import SqliteDatabase
from memory.adapters.sqlite.exams import SqliteExamResults
from memory.ports.reading import ExamKey, ExamResult, ExamResults

DAY = 86_400.0
KEY = ExamKey("qwen3", "http://127.0.0.1:8000", "ab12-cd34")
PASSED = ExamResult(passed=True, score=0.91, failures=("a date",))
FAILED = ExamResult(passed=False, score=0.4, failures=("a date", '它\'s "two" pets', ""))

Opener = Callable[[], AbstractAsyncContextManager[ExamResults]]
"""One more process on the same results."""


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(params=["sqlite", "in memory", *REDIS_KINDS])
def start(request: pytest.FixtureRequest, tmp_path: Path, clock: ManualClock) -> Opener:
    shared = InMemoryExamResults(clock, {})

    @asynccontextmanager
    async def process() -> AsyncIterator[ExamResults]:
        if request.param == "in memory":
            yield shared
            return
        if request.param in REDIS_KINDS:
            async with shared_client(tmp_path, is_cluster=REDIS_KINDS[request.param]) as client:
                yield RedisExamResults(client, clock=clock)
            return
        async with SqliteDatabase(tmp_path / "turns.sqlite") as database:
            yield SqliteExamResults(database, clock=clock)

    return process


@pytest.fixture
async def results(start: Opener) -> AsyncIterator[ExamResults]:
    async with start() as opened:
        yield opened


async def test_of_an_exam_that_nobody_sat_nothing_is_known(results: ExamResults) -> None:
    assert await results.get(KEY) is None
    assert await results.get(ExamKey("", "", "")) is None


@pytest.mark.parametrize("result", [PASSED, FAILED, ExamResult(passed=True, score=1.0)])
async def test_a_result_comes_back_as_it_was_here_and_elsewhere(start: Opener, result: ExamResult) -> None:
    async with start() as here, start() as there:
        assert await there.get(KEY) is None
        await here.put(KEY, result)
        assert await here.get(KEY) == result
        assert await there.get(KEY) == result


async def test_a_result_outlives_the_process(start: Opener) -> None:
    async with start() as first:
        await first.put(KEY, PASSED)
    async with start() as second:
        assert await second.get(KEY) == PASSED


@pytest.mark.parametrize(
    "other",
    [
        ExamKey("qwen2", KEY.server, KEY.version),
        ExamKey(KEY.model, "http://127.0.0.1:8001", KEY.version),
        ExamKey(KEY.model, KEY.server, "ab12-cd35"),
    ],
)
async def test_another_model_server_or_version_is_another_exam(results: ExamResults, other: ExamKey) -> None:
    await results.put(KEY, PASSED)
    assert await results.get(other) is None


async def test_a_later_result_takes_the_place_of_an_earlier_one(results: ExamResults) -> None:
    await results.put(KEY, FAILED)
    await results.put(KEY, PASSED)
    assert await results.get(KEY) == PASSED


@pytest.mark.parametrize(("result", "days"), [(PASSED, 30), (FAILED, 1)])
async def test_a_result_is_forgotten_in_the_end_and_a_failure_sooner(
    results: ExamResults, clock: ManualClock, result: ExamResult, days: int
) -> None:
    await results.put(KEY, result)
    clock.now += days * DAY - 60
    assert await results.get(KEY) == result
    clock.now += 120
    assert await results.get(KEY) is None


@pytest.mark.parametrize("name", ["Qwen/Qwen3-8B", "模型", "\ud800", "x" * 100_000, "it's", ""])
async def test_any_name_that_a_server_may_give_is_taken(results: ExamResults, name: str) -> None:
    key = ExamKey(name, name, name)
    await results.put(key, PASSED)
    assert await results.get(key) == PASSED


async def test_a_flood_of_names_pushes_out_the_oldest_only(results: ExamResults, clock: ManualClock) -> None:
    for n in range(1_005):
        clock.now += 0.001
        await results.put(ExamKey(f"model-{n}", "s", "v"), PASSED)
    assert await results.get(ExamKey("model-0", "s", "v")) is None
    assert await results.get(ExamKey("model-1004", "s", "v")) == PASSED
