"""The embedding process from outside: its socket, its HTTP, its two lanes. The model is a small one of our own."""

from __future__ import annotations

import asyncio
import base64
import io
import stat
import threading
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import numpy as np
import pytest
from prometheus_client import CollectorRegistry

from memory.embedder import QUESTION_BATCH_SECONDS_MAX, QUEUED_TEXTS_MAX, TEXTS_MAX, serve_model
from memory.metrics import Metrics
from memory.model import Vector

DIMENSION = 4


class SlowModel:
    """Vectors that follow from the length of a text; each batch waits for `may_go`, and is remembered."""

    name = "small"
    dimension = DIMENSION

    def __init__(self) -> None:
        self.may_go = threading.Event()
        self.may_go.set()
        self.batches: list[list[str]] = []
        self.seconds_each = 0.0

    def encode(self, texts: Sequence[str]) -> Vector:
        self.batches.append(list(texts))
        time.sleep(self.seconds_each * len(texts))  # as a model's work does, it takes its thread
        assert self.may_go.wait(10)
        vectors = np.array([[1.0, len(text), 0.5, 0.0] for text in texts], dtype=np.float32)
        return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), dtype=np.float32)

    def count_tokens(self, texts: Sequence[str]) -> int:
        return sum(len(text.split()) for text in texts)


class Running:
    """A served model and a client of it."""

    def __init__(self, session: aiohttp.ClientSession, model: SlowModel, metrics: Metrics) -> None:
        self.model = model
        self.metrics = metrics
        self._session = session

    async def post(
        self, body: object, *, lane: str = "request", path: str = "/v1/embeddings", patience_ms: str = ""
    ) -> tuple[int, Any]:
        headers = {"x-memproxy-lane": lane} if lane else {}
        headers |= {"x-memproxy-patience-ms": patience_ms} if patience_ms else {}
        content = {"data": io.BytesIO(body)} if isinstance(body, bytes) else {"json": body}
        async with self._session.post(f"http://e{path}", headers=headers, **content) as response:  # type: ignore[arg-type]
            return response.status, await response.json()

    async def get(self, path: str) -> tuple[int, Any]:
        async with self._session.get(f"http://e{path}") as response:
            return response.status, await response.json()

    async def until_batches(self, count: int) -> None:
        async with asyncio.timeout(5):
            while len(self.model.batches) < count:
                await asyncio.sleep(0.005)


@pytest.fixture
async def embedder(tmp_path: Path) -> AsyncIterator[Running]:
    async with running(tmp_path / "e.sock") as served:
        yield served


@asynccontextmanager
async def running(path: Path) -> AsyncIterator[Running]:
    model, metrics, until = SlowModel(), Metrics(CollectorRegistry()), asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(serve_model(model, socket_path=path, metrics=metrics, until=until))
        async with asyncio.timeout(5):
            while not path.exists():
                await asyncio.sleep(0.005)
        async with aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(path), limit=0)) as session:
            yield Running(session, model, metrics)
        model.may_go.set()
        until.set()


async def test_an_answer_has_the_shape_of_openai(embedder: Running) -> None:
    asked = {"input": ["one two", "three"], "model": "whatever they call it"}
    status, answer = await embedder.post(asked, lane="")  # our own processes name their lane, and count no tokens
    assert status == 200
    assert (answer["object"], answer["model"]) == ("list", "whatever they call it")
    assert answer["usage"] == {"prompt_tokens": 3, "total_tokens": 3}
    assert [(item["object"], item["index"]) for item in answer["data"]] == [("embedding", 0), ("embedding", 1)]
    assert all(len(item["embedding"]) == DIMENSION for item in answer["data"])


async def test_numbers_and_base64_say_the_same(embedder: Running) -> None:
    _, numbers = await embedder.post({"input": "one two"})
    _, packed = await embedder.post({"input": "one two", "encoding_format": "base64"})
    unpacked = np.frombuffer(base64.b64decode(packed["data"][0]["embedding"]), dtype="<f4")
    np.testing.assert_array_equal(unpacked, np.array(numbers["data"][0]["embedding"], dtype=np.float32))
    assert numbers["model"] == "small"


@pytest.mark.parametrize(
    ("body", "word"),
    [
        (b"", "JSON"),
        (b"{", "JSON"),
        (b"[1]", "JSON"),
        (b'{"input": "\xff"}', "JSON"),
        ({}, "input"),
        ({"input": 3}, "input"),
        ({"input": None}, "input"),
        ({"input": []}, "at least one"),
        ({"input": ""}, "empty"),
        ({"input": ["a", ""]}, "empty"),
        ({"input": [[1, 2]]}, "input"),
        ({"input": ["a"] * (TEXTS_MAX + 1)}, str(TEXTS_MAX)),
        ({"input": "a", "encoding_format": "int8"}, "int8"),
        ({"input": "a", "dimensions": 512}, "dimensions"),
    ],
)
async def test_bad_input_is_answered_with_400_and_what_was_expected(embedder: Running, body: object, word: str) -> None:
    status, answer = await embedder.post(body)
    assert status == 400
    assert word in answer["error"]["message"]
    assert answer["error"]["type"] == "invalid_request_error"
    assert (await embedder.post({"input": "fine"}))[0] == 200


async def test_a_body_without_end_is_refused(embedder: Running) -> None:
    status, answer = await embedder.post(b"x" * (17 << 20))
    assert (status, answer["error"]["type"]) == (413, "invalid_request_error")


async def test_other_paths_and_methods_are_named_as_such(embedder: Running) -> None:
    assert (await embedder.get("/health"))[0] == 200
    assert (await embedder.get("/v1/embeddings"))[0] == 405
    assert (await embedder.post({}, path="/elsewhere"))[0] == 404


async def test_our_own_processes_pay_for_no_count_of_tokens(embedder: Running) -> None:
    for lane in ("request", "learn"):
        _, answer = await embedder.post({"input": ["one two", "three"]}, lane=lane)
        assert answer["usage"] == {"prompt_tokens": 0, "total_tokens": 0}


async def test_questions_that_wait_together_become_one_batch(
    embedder: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However slow this machine is just now: how many a batch may hold for its pace, the next test shows."""
    monkeypatch.setattr("memory.embedder.QUESTION_BATCH_SECONDS_MAX", 60.0)
    embedder.model.may_go.clear()
    async with asyncio.TaskGroup() as group:
        group.create_task(embedder.post({"input": "first"}))
        await embedder.until_batches(1)
        waiting = [group.create_task(embedder.post({"input": "x" * n})) for n in range(1, 9)]
        await asyncio.sleep(0.1)
        embedder.model.may_go.set()
    assert [len(batch) for batch in embedder.model.batches] == [1, 8]
    vectors = [task.result()[1]["data"][0]["embedding"] for task in waiting]
    assert [vector[1] / vector[0] for vector in vectors] == pytest.approx(list(range(1, 9)), rel=1e-5)


async def test_where_texts_take_long_a_batch_holds_few_so_that_no_question_waits_long(embedder: Running) -> None:
    embedder.model.seconds_each = QUESTION_BATCH_SECONDS_MAX / 3.5
    await embedder.post({"input": "first"})
    async with asyncio.TaskGroup() as group:
        for n in range(1, 13):
            group.create_task(embedder.post({"input": "x" * n}))
    assert max(len(batch) for batch in embedder.model.batches) <= 3
    assert sum(len(batch) for batch in embedder.model.batches) == 13


async def test_a_question_goes_before_whatever_learning_still_wants(embedder: Running) -> None:
    embedder.model.may_go.clear()
    async with asyncio.TaskGroup() as group:
        group.create_task(embedder.post({"input": [f"learn {i}" + "." * 100 for i in range(20)]}, lane="learn"))
        await embedder.until_batches(1)
        group.create_task(embedder.post({"input": "question"}))
        await asyncio.sleep(0.1)
        embedder.model.may_go.set()
    assert embedder.model.batches[1] == ["question"]
    assert sum(len(batch) for batch in embedder.model.batches) == 21


async def test_who_says_nothing_waits_with_learning(embedder: Running) -> None:
    embedder.model.may_go.clear()
    async with asyncio.TaskGroup() as group:
        group.create_task(embedder.post({"input": "first"}))
        await embedder.until_batches(1)
        group.create_task(embedder.post({"input": "unmarked"}, lane=""))
        await asyncio.sleep(0.05)
        group.create_task(embedder.post({"input": "question"}))
        await asyncio.sleep(0.05)
        embedder.model.may_go.set()
    assert embedder.model.batches[1:] == [["question"], ["unmarked"]]


async def test_a_batch_for_learning_stays_short_so_that_a_question_waits_little(embedder: Running) -> None:
    await embedder.post({"input": ["x" * 100] * 40 + ["y" * 5_000]}, lane="learn")
    assert max(len(batch) for batch in embedder.model.batches) == 4
    assert embedder.model.batches[-1] == ["y" * 5_000]


async def test_a_full_lane_answers_503_counts_it_and_leaves_the_other_lane_open(embedder: Running) -> None:
    embedder.model.may_go.clear()
    async with asyncio.TaskGroup() as group:
        group.create_task(embedder.post({"input": "first"}))
        await embedder.until_batches(1)
        filling = group.create_task(embedder.post({"input": ["q"] * QUEUED_TEXTS_MAX["request"]}))
        await asyncio.sleep(0.1)
        status, answer = await embedder.post({"input": ["one", "two"]})
        assert (status, answer["error"]["type"]) == (503, "server_error")
        learning = group.create_task(embedder.post({"input": "room here"}, lane="learn"))
        embedder.model.may_go.set()
    assert filling.result()[0] == learning.result()[0] == 200
    assert embedder.metrics.registry.get_sample_value("memproxy_embed_shed_total") == 2


async def test_a_question_that_nobody_waits_for_any_more_is_not_worked_on(embedder: Running) -> None:
    embedder.model.may_go.clear()
    async with asyncio.TaskGroup() as group:
        group.create_task(embedder.post({"input": "first"}))
        await embedder.until_batches(1)
        late = group.create_task(embedder.post({"input": "late"}))
        await asyncio.sleep(0.6)
        embedder.model.may_go.set()
    assert late.result()[0] == 503
    assert (await embedder.post({"input": "next"}))[0] == 200
    assert embedder.model.batches == [["first"], ["next"]]


@pytest.mark.parametrize("lane", ["request", "learn"])
async def test_who_says_how_long_they_wait_costs_nothing_after_that(embedder: Running, lane: str) -> None:
    embedder.model.may_go.clear()
    async with asyncio.TaskGroup() as group:
        group.create_task(embedder.post({"input": "first"}))
        await embedder.until_batches(1)
        hurried = group.create_task(embedder.post({"input": "hurried"}, lane=lane, patience_ms="30"))
        patient = group.create_task(embedder.post({"input": "patient"}, lane=lane, patience_ms="soon"))
        await asyncio.sleep(0.1)
        embedder.model.may_go.set()
    assert hurried.result()[0] == 503
    assert patient.result()[0] == 200
    assert embedder.model.batches == [["first"], ["patient"]]


async def test_the_socket_is_private_replaces_a_stale_one_and_goes_with_the_process(tmp_path: Path) -> None:
    path = tmp_path / "e.sock"
    for _ in range(2):
        async with running(path) as embedder:
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            assert (await embedder.post({"input": "a"}))[0] == 200
        assert not path.exists()


async def test_metrics_say_how_long_batches_take_and_how_large_they_are(embedder: Running) -> None:
    await embedder.post({"input": ["a", "b"]})
    await embedder.post({"input": "c"}, lane="learn")
    value = embedder.metrics.registry.get_sample_value
    assert value("memproxy_embed_seconds_count", {"lane": "request"}) == 1
    assert value("memproxy_embed_seconds_count", {"lane": "learn"}) == 1
    assert value("memproxy_embed_batch_texts_sum") == 3
