"""The embedder's adapter against a server that is slow, wrong, full, away, or back again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

import numpy as np
import pytest
from foreign_embeddings import DIMENSION, ForeignEmbeddings, Mood, running_foreign_embeddings, vector_of
from prometheus_client import CollectorRegistry

from memory.adapters.models.openai_embeddings import EmbeddingServer, OpenAiEmbedder
from memory.adapters.models.recent_vectors import Prefixes
from memory.errors import Busy, Unavailable
from memory.runtime.metrics import Metrics


@pytest.fixture
async def server() -> AsyncIterator[ForeignEmbeddings]:
    async with running_foreign_embeddings() as running:
        yield running


def embedder_of(url: str, *, metrics: Metrics | None = None, **rest: float) -> OpenAiEmbedder:
    server = EmbeddingServer(url, "some-model", DIMENSION, **({"urgent_seconds": 0.1} | rest))  # type: ignore[arg-type]
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


@pytest.mark.soak("judges some hundredths of a second")
async def test_a_server_that_hangs_costs_a_chat_no_more_than_its_limit_and_then_nothing(
    server: ForeignEmbeddings,
) -> None:
    server.may_answer.clear()
    async with embedder_of(server.url) as embedder:
        for attempt in range(6):
            began = time.monotonic()
            with pytest.raises(Unavailable, match="embedder"):
                await embedder.embed([f"text {attempt}"], is_urgent=True)
            took = time.monotonic() - began
            assert took < 0.4
        assert took < 0.02
        assert len(server.texts) == 3
        server.may_answer.set()
        await asyncio.sleep(0.6)
        assert (await embedder.embed(["again"], is_urgent=True)).shape == (1, DIMENSION)


async def test_a_server_that_is_away_is_reported_at_once_and_found_when_it_is_back() -> None:
    async with running_foreign_embeddings() as first:
        url = first.url
    async with embedder_of(url) as embedder:
        with pytest.raises(Unavailable):
            await embedder.embed(["a"], is_urgent=True)
        async with running_foreign_embeddings(port=int(url.rsplit(":", 1)[1])):
            await asyncio.sleep(0.6)
            assert (await embedder.embed(["a"], is_urgent=True)).shape == (1, DIMENSION)


async def test_a_restart_between_two_calls_goes_unnoticed() -> None:
    async with running_foreign_embeddings() as first:
        url = first.url
        embedder = embedder_of(url)
        await embedder.__aenter__()
        await embedder.embed(["a"], is_urgent=True)
    async with running_foreign_embeddings(port=int(url.rsplit(":", 1)[1])):
        assert (await embedder.embed(["b"], is_urgent=True)).shape == (1, DIMENSION)
        await embedder.__aexit__(None, None, None)


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


@pytest.mark.parametrize("mood", WRONG.values(), ids=WRONG.keys())
async def test_an_answer_that_is_not_what_was_asked_for_is_never_used(server: ForeignEmbeddings, mood: Mood) -> None:
    server.mood = mood
    async with embedder_of(server.url) as embedder:
        with pytest.raises(Unavailable):
            await embedder.embed(["a", "b"], is_urgent=False)
        server.mood = lambda answer: answer
        expected = vector_of("a") / np.linalg.norm(vector_of("a"))
        np.testing.assert_allclose((await embedder.embed(["a"], is_urgent=False))[0], expected, atol=1e-6)


@pytest.mark.parametrize("status", [400, 401, 404, 429, 500, 503])
async def test_an_error_of_the_server_is_the_embedder_being_unavailable(server: ForeignEmbeddings, status: int) -> None:
    server.status = status
    async with embedder_of(server.url) as embedder:
        with pytest.raises(Unavailable, match=str(status)):
            await embedder.embed(["a"], is_urgent=False)


@pytest.mark.parametrize("status", [429, 503])
async def test_a_server_that_says_it_is_busy_is_none_that_is_away(server: ForeignEmbeddings, status: int) -> None:
    server.status = status
    async with embedder_of(server.url) as embedder:
        for attempt in range(6):
            with pytest.raises(Busy):
                await embedder.embed([f"text {attempt}"], is_urgent=True)
        assert len(server.texts) == 6  # each was sent: it may have room for the next
        server.status = 200
        assert (await embedder.embed(["again"], is_urgent=True)).shape == (1, DIMENSION)


async def test_the_wrong_dimension_is_named_so_that_the_setting_can_be_mended(server: ForeignEmbeddings) -> None:
    other = EmbeddingServer(server.url, "some-model", 768)
    async with OpenAiEmbedder(other, metrics=Metrics(CollectorRegistry())) as embedder:
        with pytest.raises(Unavailable, match=r"384 .*768"):
            await embedder.embed(["a"], is_urgent=False)


@pytest.mark.soak("judges some hundredths of a second")
async def test_past_the_bound_a_question_is_turned_away_at_once_and_counted(server: ForeignEmbeddings) -> None:
    metrics = Metrics(CollectorRegistry())
    server.may_answer.clear()
    async with (
        embedder_of(server.url, metrics=metrics, urgent_seconds=5.0, urgent_in_flight_max=2) as embedder,
        asyncio.TaskGroup() as group,
    ):
        waiting = [group.create_task(embedder.embed([f"t{i}"], is_urgent=True)) for i in range(2)]
        await asyncio.sleep(0.05)
        began = time.monotonic()
        with pytest.raises(Unavailable, match="under way"):
            await embedder.embed(["one too many"], is_urgent=True)
        assert time.monotonic() - began < 0.05
        server.may_answer.set()
        await asyncio.gather(*waiting)
        await embedder.embed(["now there is room"], is_urgent=True)
    assert metrics.registry.get_sample_value("memproxy_embed_shed_total") == 1


async def test_a_cancelled_call_frees_its_place(server: ForeignEmbeddings) -> None:
    server.may_answer.clear()
    async with embedder_of(server.url, urgent_seconds=5.0, urgent_in_flight_max=1) as embedder:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await embedder.embed(["a"], is_urgent=True)
        server.may_answer.set()
        await embedder.embed(["b"], is_urgent=True)


async def test_recent_texts_are_not_asked_for_again_and_old_ones_make_room(server: ForeignEmbeddings) -> None:
    async with embedder_of(server.url, cache_texts=2) as embedder:
        for text in ("a", "b", "a", "c", "a", "b"):
            await embedder.embed([text], is_urgent=False)
    assert server.texts == ["a", "b", "c", "b"]


async def test_a_long_list_of_long_texts_goes_in_several_calls_of_bearable_size(server: ForeignEmbeddings) -> None:
    texts = [f"{i} " + "\x01" * 40_000 for i in range(10)]
    async with embedder_of(server.url) as embedder:
        assert (await embedder.embed(texts, is_urgent=False)).shape == (10, DIMENSION)
    assert len(server.calls) == 3
    assert [text.split()[0] for text in server.texts] == [str(i) for i in range(10)]


async def test_of_a_list_only_what_is_new_is_asked_for_and_each_once(server: ForeignEmbeddings) -> None:
    async with embedder_of(server.url) as embedder:
        await embedder.embed(["a"], is_urgent=False)
        vectors = await embedder.embed(["b", "a", "b", "c"], is_urgent=False)
    assert server.texts == ["a", "b", "c"]
    np.testing.assert_allclose(vectors[1], vector_of("a") / np.linalg.norm(vector_of("a")), atol=1e-6)
    np.testing.assert_array_equal(vectors[0], vectors[2])


async def test_a_model_that_wants_it_is_told_what_is_a_question(server: ForeignEmbeddings) -> None:
    wanted = EmbeddingServer(
        server.url,
        "e5",
        DIMENSION,
        prefixes=Prefixes("query: ", "passage: "),
        query_input_type="search_query",
        document_input_type="search_document",
    )
    async with OpenAiEmbedder(wanted, metrics=Metrics(CollectorRegistry())) as embedder:
        asked = await embedder.embed(["my cat"], is_urgent=True, as_query=True)
        kept = await embedder.embed(["my cat"], is_urgent=False)
    assert [(call["input"], call["input_type"]) for call in server.calls] == [
        (["query: my cat"], "search_query"),
        (["passage: my cat"], "search_document"),
    ]
    assert not np.allclose(asked, kept)


async def test_a_server_that_asks_for_nothing_gets_no_more_than_openai_has(server: ForeignEmbeddings) -> None:
    async with embedder_of(server.url) as embedder:
        await embedder.embed(["my cat"], is_urgent=True, as_query=True)
    assert server.calls == [{"model": "some-model", "input": ["my cat"], "encoding_format": "base64"}]
