"""A model reads once it has passed; an outage delays its exam and fails nobody; the trained reader works meanwhile."""

from __future__ import annotations

import asyncio

import pytest
from plain_reader import PlainReader
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from memory.errors import Late, Unavailable
from memory.learn import examination
from memory.learn.examination import examine
from memory.learn.readers import OffReader, Readers
from memory.ports import ExamResult, PairRelation, StatementPair, StatementReader
from memory.runtime.metrics import Metrics


@pytest.fixture
def metrics() -> Metrics:
    return Metrics(CollectorRegistry())


def score(metrics: Metrics) -> float | None:
    return metrics.registry.get_sample_value("memproxy_reader_exam_score")


@pytest.mark.parametrize("passed", [True, False])
async def test_a_model_reads_if_and_only_if_it_passes(metrics: Metrics, *, passed: bool) -> None:
    trained, model = PlainReader(), PlainReader()
    readers = Readers(trained)

    async def sit() -> tuple[StatementReader, ExamResult]:
        return model, ExamResult(passed, 0.7, () if passed else ("a chat",))

    assert await examine(readers, sit, metrics=metrics) is passed
    assert readers.first is (model if passed else trained)
    assert readers.ready is trained
    assert readers.is_slow is passed
    assert score(metrics) == 0.7


async def test_a_model_that_is_away_is_asked_again_and_the_trained_reader_works_meanwhile(
    metrics: Metrics, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(examination, "RETRY_SECONDS", 0.01)
    trained, model = PlainReader(), PlainReader()
    readers, tries = Readers(trained), []

    async def sit() -> tuple[StatementReader, ExamResult]:
        tries.append(readers.first)
        if len(tries) < 3:
            raise Unavailable("model", "away")
        return model, ExamResult(passed=True, score=1.0)

    async with asyncio.timeout(5):
        assert await examine(readers, sit, metrics=metrics)
    assert tries == [trained] * 3
    assert readers.first is model


async def test_a_model_that_is_up_and_always_too_late_has_failed_after_a_few_tries(
    metrics: Metrics, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(examination, "RETRY_SECONDS", 0.001)
    readers, tries = Readers(PlainReader()), []

    async def sit() -> tuple[StatementReader, ExamResult]:
        tries.append(readers.first)
        raise Late("model", "no answer within 30 s")

    with capture_logs() as logs:
        async with asyncio.timeout(5):
            assert not await examine(readers, sit, metrics=metrics)
    assert len(tries) == examination.LATE_TRIES_MAX
    assert not readers.is_slow
    assert score(metrics) == 0.0
    assert [(one["log_level"], one["failed"]) for one in logs] == [("warning", [examination.TOO_LATE])]


async def test_whoever_wants_nothing_learnt_gets_no_claim_and_no_change() -> None:
    off = OffReader()
    assert await off.read([], context=()) == []
    (verdict,) = await off.relate([StatementPair("I live in Leeds", "I live in Oslo")])
    assert verdict.relation is PairRelation.UNRELATED
