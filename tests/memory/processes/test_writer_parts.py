"""Who writes: the chat model that reads messages, from the time at which it has passed its exam."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from chat_server import FakeModelServer, running_chat_server
from prometheus_client import CollectorRegistry
from reading_parts import InMemoryExamResults

from memory.errors import Unavailable
from memory.learn.reading.exam import exam_version
from memory.ports.reading import ExamKey, ExamResult
from memory.ports.writing import GroundedSentence, WritingTask
from memory.processes import reader_parts, writer_parts
from memory.processes.writer_parts import ExaminedWriter, open_writer
from memory.runtime.metrics import Metrics
from memory.settings import Settings
from memory.settings.loader import from_process, load

TASK = WritingTask("test", "Repeat the lines.")
SAID = json.dumps({"sentences": [{"text": "I row.", "lines": [1]}]})
LINES = ["I row."]


def content(sentences: Sequence[GroundedSentence]) -> list[str]:
    del sentences
    return []


def settings_with(folder: Path, url: str, *, reader: str = "auto", is_named: bool = True, **more: Any) -> Settings:
    address, _, port = url.rpartition(":")
    endpoint = {"address": address, "port": int(port)}
    named = {"model_role": "memory_extraction", "llm_model_name": "m", "llm_endpoint": endpoint}
    written: dict[str, Any] = {
        "memory": {"learn": {"reader": reader}, "extraction": {"priority": 7}},
        "models_dir": from_process(None, {}).models_dir,
        "external_models": [named] if is_named else [],
        **more,
    }
    file = folder / "settings.yaml"
    file.write_text(json.dumps(written))
    return load(file, {}, {})


def no_metrics() -> Metrics:
    return Metrics(CollectorRegistry())


async def passed(settings: Settings, results: InMemoryExamResults, name: str, url: str, *, has_passed: bool) -> None:
    """The model's result, as a worker stores it."""
    model, _ = await reader_parts.examinee(settings)
    async with reader_parts.open_model_reader(settings, model, no_metrics(), endpoint=url) as reader:
        version = f"{reader.prompt_version}-{exam_version()}"
    await results.put(ExamKey(name, url, version), ExamResult(passed=has_passed, score=0.9))


@pytest.fixture
async def server() -> AsyncIterator[FakeModelServer]:
    async with running_chat_server() as running:
        running.content = SAID
        yield running


@pytest.fixture
def results() -> InMemoryExamResults:
    return InMemoryExamResults(lambda: 0.0, {})


async def test_a_model_writes_once_it_has_passed_and_is_looked_up_now_and_then(
    tmp_path: Path, server: FakeModelServer, results: InMemoryExamResults, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings_with(tmp_path, server.url)
    async with ExaminedWriter(settings, exams=results, metrics=no_metrics()) as writer:
        with pytest.raises(Unavailable):
            await writer.write(TASK, LINES, objections=content)
        await passed(settings, results, "m", server.url, has_passed=True)
        with pytest.raises(Unavailable):
            await writer.name_for(TASK)
        monkeypatch.setattr(writer_parts, "CHECK_SECONDS", 0.0)
        writer._check_at = 0.0
        assert list(await writer.write(TASK, LINES, objections=content)) == [GroundedSentence("I row.", (1,))]
        assert (await writer.name_for(TASK)).startswith("m test-")
    assert [asked["priority"] for asked in server.asked] == [7], "as learning asks it"


async def test_a_model_that_has_failed_never_writes_and_one_whose_result_is_gone_stops(
    tmp_path: Path, server: FakeModelServer, results: InMemoryExamResults
) -> None:
    settings = settings_with(tmp_path, server.url)
    await passed(settings, results, "m", server.url, has_passed=False)
    async with ExaminedWriter(settings, exams=results, metrics=no_metrics()) as writer:
        with pytest.raises(Unavailable):
            await writer.write(TASK, LINES, objections=content)
        assert server.asked == []
        await passed(settings, results, "m", server.url, has_passed=True)
        writer._check_at = 0.0
        await writer.write(TASK, LINES, objections=content)
        results.kept.clear()
        writer._check_at = 0.0
        with pytest.raises(Unavailable):
            await writer.write(TASK, LINES, objections=content)


async def test_a_model_that_must_read_writes_without_an_exam(
    tmp_path: Path, server: FakeModelServer, results: InMemoryExamResults
) -> None:
    settings = settings_with(tmp_path, server.url, reader="model")
    async with ExaminedWriter(settings, exams=results, metrics=no_metrics()) as writer:
        assert await writer.write(TASK, LINES, objections=content)


async def test_the_upstream_s_first_model_writes_where_none_is_named(
    tmp_path: Path, server: FakeModelServer, results: InMemoryExamResults
) -> None:
    settings = settings_with(tmp_path, server.url, is_named=False, upstream=server.url)
    await passed(settings, results, "scripted", server.url, has_passed=True)
    async with ExaminedWriter(settings, exams=results, metrics=no_metrics()) as writer:
        assert await writer.write(TASK, LINES, objections=content)
    assert [asked["model"] for asked in server.asked] == ["scripted"]


async def test_an_upstream_that_is_down_is_asked_again_later(tmp_path: Path, results: InMemoryExamResults) -> None:
    async with running_chat_server() as server:
        url = server.url
    settings = settings_with(tmp_path, url, is_named=False, upstream=url)
    async with ExaminedWriter(settings, exams=results, metrics=no_metrics()) as writer:
        for _ in range(2):
            with pytest.raises(Unavailable):
                await writer.write(TASK, LINES, objections=content)


@pytest.mark.parametrize(("reader", "is_one"), [("auto", True), ("model", True), ("trained", False), ("off", False)])
async def test_there_is_a_writer_only_where_a_model_is_to_read(
    tmp_path: Path, results: InMemoryExamResults, reader: str, *, is_one: bool
) -> None:
    settings = settings_with(tmp_path, "http://127.0.0.1:1", reader=reader)
    async with AsyncExitStack() as stack:
        assert (await open_writer(settings, stack, exams=results, metrics=no_metrics()) is not None) is is_one
    nobody = settings_with(tmp_path, "http://127.0.0.1:1", is_named=False)
    async with AsyncExitStack() as stack:
        assert await open_writer(nobody, stack, exams=results, metrics=no_metrics()) is None
