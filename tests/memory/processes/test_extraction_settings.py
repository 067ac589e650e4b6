"""What the settings of reading lead to: who reads and writes, and what goes over the wire. On a scripted server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, aclosing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from chat_server import FakeModelServer, running_chat_server
from prometheus_client import CollectorRegistry
from reading_parts import examined_with
from scripted_model import scripted
from structlog.testing import capture_logs
from turn_logs import ManualClock, a_turn
from written_settings import named_model, written_settings

from memory.adapters.sql.model_capabilities import SqlExamResults
from memory.adapters.sql.sqlite_database import SqliteDatabase
from memory.errors import Unavailable
from memory.learn.readers import FallbackReader, OffReader, Readers
from memory.learn.reading.trained import TrainedReader
from memory.model import Message
from memory.ports.reading import ExamKey, ExamResult, ExamResults
from memory.processes import reader_parts
from memory.processes.from_settings import chat_server
from memory.processes.reader_parts import ExaminedModel
from memory.runtime.metrics import Metrics
from memory.settings import ExternalModel, ModelEndpoint, Settings

SCHOOL = "I teach chemistry at a night school."
NOWHERE = "http://127.0.0.1:1"
SAID = "I row."


@pytest.fixture
async def server() -> AsyncIterator[FakeModelServer]:
    async with running_chat_server() as running:
        running.content = SAID
        yield running


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def results(tmp_path: Path, clock: ManualClock) -> AsyncIterator[ExamResults]:
    async with SqliteDatabase(tmp_path / "turns.sqlite") as database:
        yield SqlExamResults(database, clock=clock)


def settings_with(
    folder: Path, url: str = NOWHERE, *, model: Mapping[str, Any] | None = None, reader: str = "auto", **more: Any
) -> Settings:
    """As an operator writes them. `model`: None where none is named. `more`: `upstream`, or settings of extraction."""
    upstream = {"upstream": more.pop("upstream")} if "upstream" in more else {}
    named = [] if model is None else [named_model(url, **model)]
    memory = {"extraction": more, "learn": {"reader": reader}}
    return written_settings(folder, memory=memory, external_models=named, **upstream)


def unwatched() -> Metrics:
    return Metrics(CollectorRegistry())


@pytest.mark.parametrize(
    ("reader", "model", "kind"),
    [
        ("off", {}, OffReader),
        ("trained", {}, TrainedReader),
        ("trained", None, TrainedReader),
        ("auto", None, TrainedReader),
        ("auto", {}, TrainedReader),  # until the model has passed the exam
        ("model", {}, FallbackReader),
        ("model", None, TrainedReader),  # until the upstream has said which models it has
    ],
)
async def test_each_setting_has_its_reader_and_needs_no_server_to_start(
    tmp_path: Path, reader: str, model: Mapping[str, Any] | None, kind: type
) -> None:
    async with reader_parts.open_readers(settings_with(tmp_path, model=model, reader=reader), unwatched()) as readers:
        assert isinstance(readers.first, kind)
        assert readers.is_slow == (kind is FallbackReader)
        assert isinstance(readers.ready, OffReader if reader == "off" else TrainedReader)


async def sent(server: FakeModelServer, settings: Settings, *, metrics: Metrics | None = None) -> dict[str, Any]:
    """What the model is asked about a statement."""
    server.says = server.says or scripted()
    model = settings.model_for("memory_extraction")
    assert model is not None
    async with reader_parts.open_model_reader(settings, model, metrics or unwatched()) as reader:
        await reader.read([a_turn("t", text=SCHOOL)], context=[])
    return server.asked[-1]


async def test_what_is_set_reaches_the_server_and_calls_are_counted(tmp_path: Path, server: FakeModelServer) -> None:
    metrics = unwatched()
    assert "priority" not in await sent(server, settings_with(tmp_path, server.url, model={}), metrics=metrics)

    def count(name: str, **labels: str) -> float | None:
        return metrics.registry.get_sample_value(name, {"role": "memory_extraction", **labels})

    assert count("memproxy_model_calls_total", outcome="answered") == 1
    tokens = [count("memproxy_model_tokens_total", kind=kind) for kind in ("prompt", "cached", "answer")]
    assert tokens == [100, 90, 5]
    examples = tmp_path / "examples.json"
    examples.write_text('[{"said": "the boiler is a Vaillant", "keep": true}, {"said": "it is cold", "keep": false}]')
    model = {"llm_model_name": "qwen3", "temperature": 0.4, "max_tokens": 99}
    told: dict[str, Any] = {"topics": ["boilers"], "examples": str(examples), "priority": 10}
    body = await sent(server, settings_with(tmp_path, server.url, model=model, **told))
    assert [body[name] for name in ("model", "temperature", "max_tokens", "priority")] == ["qwen3", 0.4, 99, 10]
    assert "boilers" in body["messages"][0]["content"]
    kept, kept_answer, left, left_answer, question = [message["content"] for message in body["messages"][-5:]]
    assert "the boiler is a Vaillant" in kept
    assert len(json.loads(kept_answer)["claims"]) == 1
    assert "it is cold" in left
    assert json.loads(left_answer)["claims"] == []
    assert SCHOOL in question


async def test_a_call_takes_no_longer_than_the_model_is_given(tmp_path: Path, server: FakeModelServer) -> None:
    server.seconds = 5.0
    settings = settings_with(tmp_path, server.url, model={"llm_timeout_seconds": 0.2})
    with pytest.raises(Unavailable, match=r"within 0\.2 s"):
        await sent(server, settings)


async def examined(settings: Settings, results: ExamResults, metrics: Metrics | None = None) -> Readers:
    """The readers once it is clear who reads."""
    seen = metrics or unwatched()
    async with reader_parts.open_readers(settings, seen) as readers, asyncio.timeout(30), asyncio.TaskGroup() as group:
        examining = group.create_task(reader_parts.examining(settings, readers, results, seen))
        while not (examining.done() or readers.is_slow):
            await asyncio.sleep(0.01)
        examining.cancel()
    return readers


async def test_a_model_that_failed_never_reads_and_one_that_passed_does_without_being_asked_again(
    tmp_path: Path, results: ExamResults, server: FakeModelServer
) -> None:
    metrics = unwatched()
    server.says = scripted(without=lambda unit: True)
    settings = settings_with(tmp_path, server.url, model={})
    readers = await examined(settings, results, metrics)
    sat = len(server.asked)
    again = await examined(settings, results)
    assert (sat > 0, len(server.asked)) == (True, sat)  # it sits it once
    assert (readers.is_slow, again.is_slow) == (False, False)
    assert (metrics.registry.get_sample_value("memproxy_reader_exam_score") or 1.0) < 0.9
    await examined_with(settings, results, has_passed=True)
    readers = await examined(settings, results)
    assert len(server.asked) == sat
    assert isinstance(readers.first, FallbackReader)
    assert readers.first.name.startswith("m read-")


@pytest.mark.parametrize("reader", ["trained", "off"])
async def test_where_no_model_is_to_read_none_is_examined(
    tmp_path: Path, reader: str, server: FakeModelServer, results: ExamResults
) -> None:
    settings = settings_with(tmp_path, server.url, model={}, reader=reader, upstream=server.url)
    readers = await examined(settings, results)
    assert server.asked == []
    assert not readers.is_slow


async def test_where_none_is_named_the_upstreams_first_model_reads(tmp_path: Path, results: ExamResults) -> None:
    async with running_chat_server(prefix="/llm") as server:
        settings = settings_with(tmp_path, reader="model", upstream=server.url)
        named: dict[str, Any] = {"model_role": "memory_extraction", "llm_model_name": "scripted", "max_tokens": 1_000}
        expected = ExternalModel(llm_endpoint=ModelEndpoint(address=server.url), **named)
        assert await reader_parts.examinee(settings) == (expected, server.url)
        readers = await examined(settings, results)
    assert (server.asked, readers.is_slow) == ([], True)
    assert readers.first.name.startswith("scripted read-")


@pytest.mark.parametrize(
    "upstream", ["http://gw:8000/llm", "http://[::1]:8000", "https://gw/llm/v1", "http://gw:8000/", "http://user.gw"]
)
def test_the_upstreams_own_model_is_asked_under_the_very_url_that_is_set(upstream: str) -> None:
    model = ExternalModel(
        model_role="memory_extraction", llm_endpoint=ModelEndpoint(address=upstream), llm_model_name="m"
    )
    expected = upstream.rstrip("/").removesuffix("/v1") + "/v1/chat/completions"
    assert chat_server(model, endpoint=upstream).url == expected


async def test_nothing_that_goes_wrong_in_the_exam_ends_the_worker(tmp_path: Path, server: FakeModelServer) -> None:
    class Broken:
        async def get(self, key: ExamKey) -> ExamResult | None:
            raise ZeroDivisionError("what ann said")

    settings = settings_with(tmp_path, server.url, model={})
    with capture_logs() as logs:
        readers = await examined(settings, Broken())  # type: ignore[arg-type]
    assert not readers.is_slow
    assert [(one["log_level"], one["error"]) for one in logs if "exam" in one["event"]] == [
        ("error", "ZeroDivisionError")
    ]


# Who writes: the model that reads, from the time at which it has passed


def model_of(settings: Settings, results: ExamResults) -> AbstractAsyncContextManager[ExaminedModel]:
    return aclosing(ExaminedModel(settings, exams=results, metrics=unwatched()))


async def written_by(model: ExaminedModel) -> str:
    return (await model.complete([Message("user", "Repeat: I row.")], max_tokens=9, seconds=60)).text


async def test_a_model_writes_from_when_it_has_passed_until_its_result_is_gone(
    tmp_path: Path, server: FakeModelServer, results: ExamResults, clock: ManualClock
) -> None:
    settings = settings_with(tmp_path, server.url, model={}, priority=7)
    async with model_of(settings, results) as model:
        with pytest.raises(Unavailable):
            await written_by(model)
        for has_passed in (False, True):  # a passed one is looked up now and then, and not at once
            await examined_with(settings, results, has_passed=has_passed)
            model._check_at = model._check_at if has_passed else 0.0
            with pytest.raises(Unavailable):
                await written_by(model)
        assert server.asked == []
        model._check_at = 0.0
        assert (await written_by(model), model.name) == (SAID, "m")
        clock.now += 365 * 86_400.0
        model._check_at = 0.0
        with pytest.raises(Unavailable):
            await written_by(model)
    assert [asked["priority"] for asked in server.asked] == [7], "as learning asks it"


async def test_the_upstreams_first_one_may_write(tmp_path: Path, server: FakeModelServer, results: ExamResults) -> None:
    settings = settings_with(tmp_path, upstream=server.url)
    await examined_with(settings, results, has_passed=True)
    async with model_of(settings, results) as model:
        assert await written_by(model)
    assert [asked["model"] for asked in server.asked] == ["scripted"]


async def test_an_upstream_that_is_down_or_cannot_be_is_asked_again_later(tmp_path: Path, results: ExamResults) -> None:
    settings = settings_with(tmp_path, upstream=NOWHERE)
    async with model_of(settings, results) as model:
        for _ in range(2):
            with pytest.raises(Unavailable):
                await written_by(model)
    with pytest.raises(Unavailable):
        await reader_parts.examinee(msgspec.structs.replace(settings, upstream="http://127.0.0.1:99999"))
