"""Chat models and embedders on servers that are slow, wrong, full, away or back again: what is asked, and who waits."""

from __future__ import annotations

import asyncio
import math
import socket
from collections.abc import AsyncIterator

import numpy as np
import pytest
from chat_server import FakeModelServer, running_chat_server
from foreign_embeddings import DIMENSION, ForeignEmbeddings, Mood, running_foreign_embeddings, vector_of
from prometheus_client import CollectorRegistry

from memory.adapters.breaker import FAILURES_MAX, Breaker
from memory.adapters.models import openai_embeddings
from memory.adapters.models.openai_chat import ChatServer, OpenAiChatModel
from memory.adapters.models.openai_embeddings import EmbeddingServer, OpenAiEmbedder
from memory.adapters.models.recent_vectors import Prefixes
from memory.errors import Busy, Late, Unavailable, Unusable
from memory.model import Message
from memory.ports import Completion
from memory.runtime.metrics import Metrics

ASKED = (Message("user", "Say hello."),)
HANG_SECONDS = 60.0
REST_SECONDS = 1_000.0
TAKEN_SECONDS = 1.0  # a server on this machine has taken a request by then, however busy


class SteppedBreaker(Breaker):
    """Rests for very long, until it is told that this is over."""

    def __init__(self, part: str, *, failures_max: int = FAILURES_MAX) -> None:
        super().__init__(part, failures_max=failures_max, rest_seconds=REST_SECONDS)
        self._later = 0.0

    def end_rest(self) -> None:
        self._later += REST_SECONDS + 1

    def admit(self, now: float, *, seconds: float = 0.0) -> None:
        super().admit(now + self._later, seconds=seconds)

    def failed(self, now: float, *, reason: str, is_certain: bool, began_at: float = math.inf) -> None:
        later = self._later
        super().failed(now + later, reason=reason, is_certain=is_certain, began_at=began_at + later)


class Guarded:
    """A model behind a breaker that opens at the second slow answer, and its counters."""

    server: FakeModelServer

    def __init__(self, url: str) -> None:
        self.metrics = Metrics(CollectorRegistry())
        self.breaker = SteppedBreaker("model", failures_max=2)
        self.model = OpenAiChatModel(ChatServer(url, "m"), metrics=self.metrics, breaker=self.breaker)

    async def ask(self, *, seconds: float = HANG_SECONDS) -> Completion:
        return await self.model.complete(ASKED, max_tokens=7, seconds=seconds)

    async def fail(self, *, seconds: float = HANG_SECONDS) -> str:
        with pytest.raises(Unavailable) as raised:
            await self.ask(seconds=seconds)
        assert not isinstance(raised.value, Unusable)
        return str(raised.value)

    def calls(self, outcome: str) -> float:
        labels = {"role": "model", "outcome": outcome}
        return self.metrics.registry.get_sample_value("memproxy_model_calls_total", labels) or 0.0


@pytest.fixture
async def guarded() -> AsyncIterator[Guarded]:
    async with running_chat_server() as server:
        made = Guarded(server.url)
        made.server = server
        async with made.model:
            yield made


async def test_a_connection_that_was_kept_and_closed_meanwhile_costs_one_more_sending(guarded: Guarded) -> None:
    await guarded.ask()
    guarded.server.hang_ups = 1
    assert (await guarded.ask()).text == "{}"
    assert len(guarded.server.asked) == 3


@pytest.mark.parametrize(("hang_ups", "sendings"), [(9, 2), (0, 1)])
async def test_a_server_that_hangs_up_is_asked_again_once(guarded: Guarded, hang_ups: int, sendings: int) -> None:
    guarded.server.hang_ups, guarded.server.breaks_off = hang_ups, True
    assert "Error" in await guarded.fail()
    assert len(guarded.server.asked) == sendings


async def test_while_a_frozen_model_is_tried_nobody_else_waits_for_it(guarded: Guarded) -> None:
    guarded.server.seconds = 9 * HANG_SECONDS
    for _ in range(2):
        await guarded.fail(seconds=TAKEN_SECONDS)
    guarded.breaker.end_rest()
    asked = len(guarded.server.asked)
    async with asyncio.TaskGroup() as group:
        probe = group.create_task(guarded.ask(seconds=3 * REST_SECONDS))
        while len(guarded.server.asked) == asked:
            await asyncio.sleep(0.001)
        guarded.breaker.end_rest()  # the probe is still under way
        async with asyncio.timeout(HANG_SECONDS / 2):
            for _ in range(20):
                assert "no answer within" in await guarded.fail()
        assert not probe.done()
        probe.cancel()
    assert len(guarded.server.asked) == asked + 1
    assert (guarded.calls("late"), guarded.calls("failed"), guarded.calls("spared")) == (2, 0, 20)


async def test_an_answer_too_late_is_told_from_a_server_that_is_away_until_it_is_back(guarded: Guarded) -> None:
    """Also by those who are spared; the next try finds it."""
    guarded.server.seconds = 9 * HANG_SECONDS
    for _ in range(3):
        with pytest.raises(Late, match="no answer within 1 s"):
            await guarded.ask(seconds=TAKEN_SECONDS)
    assert guarded.calls("spared") == 1
    guarded.server.status, guarded.server.seconds = 503, 0.0
    guarded.breaker.end_rest()
    for _ in range(2):
        with pytest.raises(Unavailable, match="503") as raised:
            await guarded.ask()
        assert not isinstance(raised.value, Late)
    guarded.server.status = 200
    assert "it answered 503" in await guarded.fail()  # it still rests, and says what was wrong
    guarded.breaker.end_rest()
    assert [(await guarded.ask()).text for _ in range(3)] == ["{}"] * 3


async def test_a_server_that_does_not_take_the_connection_is_away_rather_than_late() -> None:
    with socket.socket() as full, socket.socket() as first, socket.socket() as second:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for one in (first, second):  # more than it lets wait
            one.setblocking(False)
            one.connect_ex(full.getsockname())
        guarded = Guarded(f"http://127.0.0.1:{full.getsockname()[1]}")
        async with guarded.model:
            with pytest.raises(Unavailable) as raised:
                await guarded.ask(seconds=0.3)
    assert not isinstance(raised.value, Late)


async def test_a_refused_connection_needs_no_second_try_to_be_believed() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        guarded = Guarded(f"http://127.0.0.1:{free.getsockname()[1]}")
    async with guarded.model:
        assert "ConnectError" in await guarded.fail()
        assert "ConnectError" in await guarded.fail()
    assert (guarded.calls("failed"), guarded.calls("spared")) == (1, 1)


@pytest.fixture
async def embeddings() -> AsyncIterator[ForeignEmbeddings]:
    async with running_foreign_embeddings() as running:
        yield running


@pytest.fixture
def breaker(monkeypatch: pytest.MonkeyPatch) -> SteppedBreaker:
    """That of embedders which are made from here on."""
    made = SteppedBreaker("embedder")
    monkeypatch.setattr(openai_embeddings, "Breaker", lambda _: made)
    return made


def embedder_of(url: str, *, metrics: Metrics | None = None, **rest: float) -> OpenAiEmbedder:
    server = EmbeddingServer(url, "some-model", DIMENSION, **({"urgent_seconds": HANG_SECONDS} | rest))  # type: ignore[arg-type]
    return OpenAiEmbedder(server, metrics=metrics or Metrics(CollectorRegistry()))


@pytest.mark.parametrize(
    ("endpoint", "url"),
    [
        ("http://h:8000", "http://h:8000/v1/embeddings"),
        ("http://h:8000/", "http://h:8000/v1/embeddings"),
        ("http://h:8000/v1", "http://h:8000/v1/embeddings"),
        ("https://h/v1/embeddings", "https://h/v1/embeddings"),
        ("unix:/run/e.sock", "http://embedder/v1/embeddings"),
    ],
)
def test_a_base_url_may_be_given_in_any_of_its_usual_forms(endpoint: str, url: str) -> None:
    assert EmbeddingServer(endpoint, "m", 3).url == url


async def test_a_hanging_server_rests_for_a_while(embeddings: ForeignEmbeddings, breaker: SteppedBreaker) -> None:
    embeddings.may_answer.clear()
    async with embedder_of(embeddings.url, urgent_seconds=TAKEN_SECONDS) as embedder:
        for attempt in range(6):
            with pytest.raises(Unavailable, match="embedder"):
                await embedder.embed([f"text {attempt}"], is_urgent=True)
        assert len(embeddings.texts) == FAILURES_MAX
    embeddings.may_answer.set()
    breaker.end_rest()
    async with embedder_of(embeddings.url) as embedder:
        assert (await embedder.embed(["again"], is_urgent=True)).shape == (1, DIMENSION)


async def test_a_server_that_is_away_is_reported_and_found_when_it_is_back(breaker: SteppedBreaker) -> None:
    async with running_foreign_embeddings() as first:
        url = first.url
    async with embedder_of(url) as embedder:
        with pytest.raises(Unavailable):
            await embedder.embed(["a"], is_urgent=True)
        async with running_foreign_embeddings(port=int(url.rsplit(":", 1)[1])):
            breaker.end_rest()
            assert (await embedder.embed(["a"], is_urgent=True)).shape == (1, DIMENSION)


async def test_a_kept_connection_that_the_server_drops_under_a_call_is_replaced_by_a_new_one() -> None:
    calls_on_connection: list[int] = []

    async def answer_once_then_hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        calls_on_connection.append(0)
        connection = len(calls_on_connection) - 1
        while head := await reader.readuntil(b"\r\n\r\n"):
            calls_on_connection[connection] += 1
            if connection == 0 and calls_on_connection[0] == 2:
                break
            length = next(int(line.split(b":")[1]) for line in head.lower().splitlines() if b"content-length" in line)
            await reader.readexactly(length)
            numbers = ",".join(["1.0"] * DIMENSION)
            body = b'{"data":[{"index":0,"embedding":[' + numbers.encode() + b"]}]}"
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: " + str(len(body)).encode() + b"\r\n\r\n" + body)
            if connection == 1:
                break
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(answer_once_then_hang_up, "127.0.0.1", 0)
    async with server, embedder_of(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}") as embedder:
        await embedder.embed(["first"], is_urgent=True)
        assert (await embedder.embed(["second"], is_urgent=True)).shape == (1, DIMENSION)
    assert calls_on_connection == [2, 1]


WRONG: dict[str, Mood] = {
    "another length": lambda a: a | {"data": [{"index": 0, "embedding": [1.0, 2.0]}]},
    "too few": lambda a: a | {"data": a["data"][1:]},
    "twice the same": lambda a: a | {"data": [a["data"][0], a["data"][0]]},
    "another index": lambda a: a | {"data": [item | {"index": item["index"] + 5} for item in a["data"]]},
    "no direction": lambda a: a | {"data": [item | {"embedding": [0.0] * DIMENSION} for item in a["data"]]},
    "not base64": lambda a: a | {"data": [item | {"embedding": "%%%%"} for item in a["data"]]},
    "half a number": lambda a: a | {"data": [item | {"embedding": "AAAA"} for item in a["data"]]},
    "deep": lambda a: {"as it is": '{"x": ' + "[" * 50_000 + "]" * 50_000 + "}"},
    "no data": lambda a: {"error": "odd"},
    "text for numbers": lambda a: a | {"data": [item | {"embedding": ["x"]} for item in a["data"]]},
}


@pytest.mark.parametrize("wrong", [400, 500, *WRONG], ids=str)
async def test_an_answer_that_was_not_asked_for_is_never_used(embeddings: ForeignEmbeddings, wrong: str | int) -> None:
    usual: Mood = lambda answer: answer  # noqa: E731
    embeddings.mood, embeddings.status = WRONG.get(str(wrong), usual), wrong if isinstance(wrong, int) else 200
    async with embedder_of(embeddings.url) as embedder:
        with pytest.raises(Unavailable, match=str(wrong) if isinstance(wrong, int) else "."):
            await embedder.embed(["a", "b"], is_urgent=False)
        embeddings.mood, embeddings.status = usual, 200
        expected = vector_of("a") / np.linalg.norm(vector_of("a"))
        np.testing.assert_allclose((await embedder.embed(["a"], is_urgent=False))[0], expected, atol=1e-6)


@pytest.mark.parametrize("status", [429, 503])
async def test_a_server_that_says_it_is_busy_is_none_that_is_away(embeddings: ForeignEmbeddings, status: int) -> None:
    embeddings.status = status
    async with embedder_of(embeddings.url) as embedder:
        for attempt in range(6):
            with pytest.raises(Busy):
                await embedder.embed([f"text {attempt}"], is_urgent=True)
        assert len(embeddings.texts) == 6  # each was sent: it may have room for the next
        embeddings.status = 200
        assert (await embedder.embed(["again"], is_urgent=True)).shape == (1, DIMENSION)


async def test_the_wrong_dimension_is_named_so_that_the_setting_can_be_mended(embeddings: ForeignEmbeddings) -> None:
    other = EmbeddingServer(embeddings.url, "some-model", 768)
    async with OpenAiEmbedder(other, metrics=Metrics(CollectorRegistry())) as embedder:
        with pytest.raises(Unavailable, match=r"384 .*768"):
            await embedder.embed(["a"], is_urgent=False)


async def test_past_the_bound_a_question_is_shed_and_a_cancelled_one_makes_room(embeddings: ForeignEmbeddings) -> None:
    metrics = Metrics(CollectorRegistry())
    embeddings.may_answer.clear()
    async with (
        embedder_of(embeddings.url, metrics=metrics, urgent_in_flight_max=2) as embedder,
        asyncio.TaskGroup() as group,
    ):
        waiting = [group.create_task(embedder.embed([f"t{i}"], is_urgent=True)) for i in range(2)]
        while len(embeddings.texts) < 2:
            await asyncio.sleep(0.001)
        with pytest.raises(Unavailable, match="under way"):
            await embedder.embed(["one too many"], is_urgent=True)
        waiting.pop().cancel()
        await asyncio.sleep(0)
        waiting.append(group.create_task(embedder.embed(["in its place"], is_urgent=True)))
        while len(embeddings.texts) < 3:
            await asyncio.sleep(0.001)
        embeddings.may_answer.set()
        await asyncio.gather(*waiting)
        await embedder.embed(["now there is room"], is_urgent=True)
    assert metrics.registry.get_sample_value("memproxy_embed_shed_total") == 1


async def test_of_a_list_only_what_is_new_is_asked_for_in_calls_of_bearable_size(embeddings: ForeignEmbeddings) -> None:
    texts = [f"{i} " + "\x01" * 40_000 for i in range(10)]
    async with embedder_of(embeddings.url) as embedder:
        assert (await embedder.embed(texts, is_urgent=False)).shape == (10, DIMENSION)
        assert len(embeddings.calls) == 3
        assert [text.split()[0] for text in embeddings.texts] == [str(i) for i in range(10)]
        await embedder.embed(["a"], is_urgent=False)
        vectors = await embedder.embed(["b", "a", "b", "c"], is_urgent=False)
    assert embeddings.texts[10:] == ["a", "b", "c"]
    np.testing.assert_allclose(vectors[1], vector_of("a") / np.linalg.norm(vector_of("a")), atol=1e-6)
    np.testing.assert_array_equal(vectors[0], vectors[2])


async def test_a_model_that_wants_it_is_told_what_is_a_question(embeddings: ForeignEmbeddings) -> None:
    types = {"query_input_type": "search_query", "document_input_type": "search_document"}
    wanted = EmbeddingServer(embeddings.url, "e5", DIMENSION, prefixes=Prefixes("query: ", "passage: "), **types)
    async with OpenAiEmbedder(wanted, metrics=Metrics(CollectorRegistry())) as embedder:
        asked = await embedder.embed(["my cat"], is_urgent=True, as_query=True)
        kept = await embedder.embed(["my cat"], is_urgent=False)
    assert [(call["input"], call["input_type"]) for call in embeddings.calls] == [
        (["query: my cat"], "search_query"),
        (["passage: my cat"], "search_document"),
    ]
    assert not np.allclose(asked, kept)
    async with embedder_of(embeddings.url) as embedder:  # one that asks for nothing gets no more than OpenAI has
        await embedder.embed(["my cat"], is_urgent=True, as_query=True)
    assert embeddings.calls[2:] == [{"model": "some-model", "input": ["my cat"], "encoding_format": "base64"}]
