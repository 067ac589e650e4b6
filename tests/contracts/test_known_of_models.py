"""What one process found out about a model, all know: what its template takes, and how it did in its exam. Nothing
lasts for ever.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from turn_logs import Deployment, Process

from memory.adapters.sql import model_capabilities as sql_capabilities
from memory.model import Placement
from memory.ports import ModelCapabilities
from memory.ports.reading import ExamKey, ExamResult

DAY = 86_400.0
NAMES = ["Qwen/Qwen3-8B", "模型", "\ud800", "x" * 100_000, "it's"]
KEY = ExamKey("qwen3", "http://127.0.0.1:8000", "ab12-cd34")
PASSED = ExamResult(passed=True, score=0.91, failures=("a date",))
FAILED = ExamResult(passed=False, score=0.4, failures=("a date", '它\'s "two" pets', ""))


@pytest.fixture
def known(process: Process) -> ModelCapabilities:
    return process.capabilities


@pytest.fixture
async def others(deployment: Deployment) -> AsyncIterator[ModelCapabilities]:
    """Another process's."""
    async with deployment.start() as another:
        yield another.capabilities


async def test_what_was_learnt_is_known_at_once_here_and_within_seconds_elsewhere(
    known: ModelCapabilities, others: ModelCapabilities, deployment: Deployment
) -> None:
    assert await known.placement("qwen3") is None
    assert await others.placement("qwen3") is None
    assert await known.placement("") is None
    await known.learn("qwen3", Placement.SYSTEM)
    assert await known.placement("qwen3") is Placement.SYSTEM
    deployment.clock.now += 10
    assert await others.placement("qwen3") is Placement.SYSTEM
    assert await others.placement("other") is None


async def test_lessons_only_become_more_careful_whoever_learns_them(
    known: ModelCapabilities, others: ModelCapabilities
) -> None:
    await known.learn("gemma", Placement.SYSTEM)
    await others.learn("gemma", Placement.OFF)
    await known.learn("gemma", Placement.SYSTEM)
    assert await known.placement("gemma") is Placement.OFF


async def test_a_lesson_is_forgotten_in_the_end(known: ModelCapabilities, deployment: Deployment) -> None:
    await known.learn("qwen3", Placement.OFF)
    deployment.clock.now += 365 * 86_400
    assert await known.placement("qwen3") is None
    await known.learn("qwen3", Placement.SYSTEM)
    assert await known.placement("qwen3") is Placement.SYSTEM


@pytest.mark.parametrize("model", NAMES)
async def test_any_name_that_a_client_may_send_is_taken(known: ModelCapabilities, model: str) -> None:
    await known.learn(model, Placement.SYSTEM)
    assert await known.placement(model) is Placement.SYSTEM


# Exams


@pytest.mark.parametrize(("result", "days"), [(PASSED, 30), (FAILED, 1)])
async def test_a_result_is_known_everywhere_as_it_was_and_forgotten_in_the_end_a_failure_sooner(
    deployment: Deployment, result: ExamResult, days: int
) -> None:
    async with deployment.start() as here, deployment.start() as there:
        assert await there.exams.get(KEY) is None
        await here.exams.put(KEY, result)
        assert await here.exams.get(KEY) == await there.exams.get(KEY) == result
    async with deployment.start() as later:
        deployment.clock.now += days * DAY - 60
        assert await later.exams.get(KEY) == result
        deployment.clock.now += 120
        assert await later.exams.get(KEY) is None


async def test_another_model_server_or_version_is_another_exam_and_its_last_result_counts(process: Process) -> None:
    results = process.exams
    await results.put(KEY, FAILED)
    await results.put(KEY, PASSED)
    assert await results.get(KEY) == PASSED
    for other in (replace(KEY, model="qwen2"), replace(KEY, server="http://[::1]"), replace(KEY, version="ab12")):
        assert await results.get(other) is None
    for name in (*NAMES, ""):
        await results.put(ExamKey(name, name, name), FAILED)
        assert await results.get(ExamKey(name, name, name)) == FAILED


async def test_a_flood_of_names_or_exams_pushes_out_the_oldest_only(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sql_capabilities, "MODELS_MAX", 5)
    monkeypatch.setattr(sql_capabilities, "RESULTS_MAX", 5)
    async with deployment.start() as process:
        for n in range(15):
            deployment.clock.now += 0.001
            await process.capabilities.learn(f"model-{n}", Placement.SYSTEM)
            await process.exams.put(replace(KEY, model=f"model-{n}"), PASSED)
        deployment.clock.now += 60
        found = [
            (await process.capabilities.placement(name), await process.exams.get(replace(KEY, model=name)))
            for name in ("model-0", "model-14")
        ]
        assert found == [(None, None), (Placement.SYSTEM, PASSED)]
