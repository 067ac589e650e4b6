"""What one process found out about a model, all know for a while: its template, and how it did in its exam."""

from __future__ import annotations

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


async def test_a_lesson_spreads_and_expires(known: ModelCapabilities, other: Process, deployment: Deployment) -> None:
    others = other.capabilities
    for model in ("qwen3", ""):
        assert await known.placement(model) is await others.placement(model) is None
    await known.learn("qwen3", Placement.SYSTEM)
    await others.learn("qwen3", Placement.OFF)
    await known.learn("qwen3", Placement.SYSTEM)  # lessons only become more careful, whoever learns them
    assert await known.placement("qwen3") is Placement.OFF
    deployment.clock.now += 10
    assert await others.placement("qwen3") is Placement.OFF
    assert await others.placement("other") is None
    deployment.clock.now += 365 * DAY
    assert await known.placement("qwen3") is None
    await known.learn("qwen3", Placement.SYSTEM)
    assert await known.placement("qwen3") is Placement.SYSTEM


async def test_any_name_that_a_client_may_send_is_taken(process: Process) -> None:
    for name in (*NAMES, ""):
        await process.exams.put(ExamKey(name, name, name), FAILED)
        assert await process.exams.get(ExamKey(name, name, name)) == FAILED
    for name in NAMES:
        await process.capabilities.learn(name, Placement.SYSTEM)
        assert await process.capabilities.placement(name) is Placement.SYSTEM


@pytest.mark.parametrize(("result", "days"), [(PASSED, 30), (FAILED, 1)])
async def test_a_result_is_known_everywhere_as_it_was_and_forgotten_in_the_end_a_failure_sooner(
    deployment: Deployment, process: Process, other: Process, result: ExamResult, days: int
) -> None:
    assert await other.exams.get(KEY) is None
    await process.exams.put(KEY, result)
    assert await process.exams.get(KEY) == await other.exams.get(KEY) == result
    deployment.clock.now += days * DAY - 60
    async with deployment.start() as later:
        assert await later.exams.get(KEY) == result
        deployment.clock.now += 120
        assert await later.exams.get(KEY) is None


async def test_another_model_server_or_version_is_another_exam_and_its_last_result_counts(process: Process) -> None:
    results = process.exams
    for result in (FAILED, PASSED):
        await results.put(KEY, result)
        assert await results.get(KEY) == result
    for other in (replace(KEY, model="qwen2"), replace(KEY, server="http://[::1]"), replace(KEY, version="ab12")):
        assert await results.get(other) is None


async def test_a_flood_pushes_out_the_oldest_only(deployment: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql_capabilities, "MODELS_MAX", 5)
    monkeypatch.setattr(sql_capabilities, "RESULTS_MAX", 5)
    async with deployment.start() as process:
        for n in range(15):
            deployment.clock.now += 0.001
            await process.capabilities.learn(f"model-{n}", Placement.SYSTEM)
            await process.exams.put(replace(KEY, model=f"model-{n}"), PASSED)
        deployment.clock.now += 60
        for name, placement, result in (("model-0", None, None), ("model-14", Placement.SYSTEM, PASSED)):
            assert await process.capabilities.placement(name) is placement
            assert await process.exams.get(replace(KEY, model=name)) == result
