"""What a chat model promises, on a server whose manners we decide and on the small real model."""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
import socket
from collections.abc import AsyncIterator, Iterator

import pytest
from chat_server import Cut, FakeModelServer, running_chat_server
from small_model import SMALL_MODEL, running_small_model

from memory.adapters.models.openai_chat import ANSWER_BYTES_MAX, ChatServer, OpenAiChatModel
from memory.errors import Unavailable, Unusable
from memory.model import Message
from memory.ports import Completion

ASKED = (Message("system", "Be brief."), Message("user", "Say hello, my pin is 4711."))
SCHEMA = {"type": "object", "properties": {"query": {"type": "string", "maxLength": 20}}, "required": ["query"]}


@pytest.fixture
async def server() -> AsyncIterator[FakeModelServer]:
    async with running_chat_server() as running:
        yield running


@pytest.fixture
async def model(server: FakeModelServer) -> AsyncIterator[OpenAiChatModel]:
    async with OpenAiChatModel(ChatServer(server.url, "m")) as opened:
        yield opened


@pytest.fixture(scope="module")
def small_model_url() -> Iterator[str]:
    with running_small_model() as url:
        yield url


@pytest.fixture(params=["our server", "the small model"])
async def any_model(request: pytest.FixtureRequest) -> AsyncIterator[OpenAiChatModel]:
    if request.param == "the small model":
        url: str = request.getfixturevalue("small_model_url")
        async with OpenAiChatModel(ChatServer(url, SMALL_MODEL, skips_thinking=True)) as opened:
            yield opened
        return
    async with running_chat_server() as running, OpenAiChatModel(ChatServer(running.url, "m")) as opened:
        running.content = '{"query": "hello"}'
        yield opened


async def test_a_question_gets_text(any_model: OpenAiChatModel) -> None:
    assert (await any_model.complete(ASKED, max_tokens=8, seconds=60)).text


async def test_an_answer_follows_the_schema(any_model: OpenAiChatModel) -> None:
    answer = await any_model.complete(ASKED, max_tokens=200, schema=SCHEMA, seconds=60)
    assert isinstance(json.loads(answer.text)["query"], str)
    assert not answer.is_cut


async def test_any_text_that_a_client_may_send_can_be_asked(any_model: OpenAiChatModel) -> None:
    assert (
        await any_model.complete([Message("user", "half \ud83d of a \x00 cat")], max_tokens=4, seconds=60) is not None
    )


async def test_a_call_that_takes_too_long_ends_on_time(any_model: OpenAiChatModel) -> None:
    with pytest.raises(Unavailable, match="model is unavailable: no answer within"):
        await any_model.complete(ASKED, max_tokens=500, seconds=0.0005)


async def test_the_request_says_what_was_asked_for_and_no_more(server: FakeModelServer, model: OpenAiChatModel) -> None:
    await model.complete(ASKED, max_tokens=7, schema=SCHEMA, seconds=5)
    await model.complete(ASKED, max_tokens=7, seconds=5)
    first, second = server.asked
    assert first.pop("response_format")["json_schema"]["schema"] == SCHEMA
    assert first == second
    assert set(second) == {"model", "messages", "max_tokens", "temperature", "stream"}
    assert (second["max_tokens"], second["messages"][1]["content"]) == (7, ASKED[1].content)
    assert "authorization" not in server.headers[0]


async def test_a_key_goes_along_where_there_is_one(server: FakeModelServer) -> None:
    async with OpenAiChatModel(ChatServer(f"{server.url}/v1/", "m", api_key="k3y")) as keyed:
        await keyed.complete(ASKED, max_tokens=7, seconds=5)
    assert server.headers[0]["authorization"] == "Bearer k3y"


async def test_calls_one_after_another_share_a_connection(server: FakeModelServer, model: OpenAiChatModel) -> None:
    for _ in range(3):
        await model.complete(ASKED, max_tokens=7, seconds=5)
    assert len(server.peers) == 1


JUNK = {
    "not JSON": b"<html>hello</html>",
    "not UTF-8": b'{"choices": [{"message": {"content": "\xff"}}]}',
    "empty": b"",
    "no choices": b'{"choices": []}',
    "no text": b'{"choices": [{"message": {"content": null}}]}',
    "an error": b'{"error": {"message": "my pin is 4711"}}',
    "a number": b'{"choices": [{"message": {"content": 5}}]}',
    "packed": gzip.compress(b'{"choices": [{"message": {"content": "x"}}]}'),
    "deep": b"[" * 100_000,
}


@pytest.mark.parametrize("body", JUNK.values(), ids=JUNK.keys())
async def test_junk_is_an_answer_of_no_use_from_a_model_that_is_up(
    server: FakeModelServer, model: OpenAiChatModel, body: bytes
) -> None:
    server.body = body
    with pytest.raises(Unusable) as raised:
        await model.complete(ASKED, max_tokens=7, seconds=5)
    assert raised.value.part == "model"
    assert "4711" not in str(raised.value)


@pytest.mark.parametrize("status", [204, 302, 401, 403, 404, 408, 429, 500, 502, 503])
async def test_a_status_that_would_meet_any_request_is_an_outage(
    server: FakeModelServer, model: OpenAiChatModel, status: int
) -> None:
    server.status = status
    with pytest.raises(Unavailable, match=str(status)) as raised:
        await model.complete(ASKED, max_tokens=7, seconds=5)
    assert not isinstance(raised.value, Unusable)


@pytest.mark.parametrize("status", [400, 413, 422])
async def test_a_status_that_refuses_this_request_says_nothing_of_the_others(
    server: FakeModelServer, model: OpenAiChatModel, status: int
) -> None:
    server.status = status
    with pytest.raises(Unusable, match=str(status)):
        await model.complete(ASKED, max_tokens=7, seconds=5)


@pytest.mark.parametrize("said", ['{"query": "a long st', '{"query": "whole by chance"}', ""])
async def test_an_answer_that_ended_for_want_of_tokens_says_so(
    server: FakeModelServer, model: OpenAiChatModel, said: str
) -> None:
    server.content = Cut(said)
    assert await model.complete(ASKED, max_tokens=7, seconds=5) == Completion(said, is_cut=True)


async def test_a_real_model_that_has_more_to_say_is_known_to_be_cut(small_model_url: str) -> None:
    async with OpenAiChatModel(ChatServer(small_model_url, SMALL_MODEL, skips_thinking=True)) as model:
        asked = [Message("user", "Tell me a long story about a dragon who lives in a lighthouse.")]
        assert (await model.complete(asked, max_tokens=4, seconds=60)).is_cut


async def test_an_answer_of_ten_megabytes_is_given_up_after_the_limit(
    server: FakeModelServer, model: OpenAiChatModel
) -> None:
    server.body = b'{"choices": [{"message": {"content": "' + b"x" * (10 << 20) + b'"}}]}'
    with pytest.raises(Unusable, match=str(ANSWER_BYTES_MAX)):
        await model.complete(ASKED, max_tokens=7, seconds=10)
    assert server.sent_bytes < 9 << 20
    server.body, server.content = None, "well again"
    assert await model.complete(ASKED, max_tokens=7, seconds=5) == Completion("well again")


async def test_an_answer_that_drips_ends_on_time(server: FakeModelServer, model: OpenAiChatModel) -> None:
    server.drips = True
    with pytest.raises(Unavailable, match="no answer within"):
        await model.complete(ASKED, max_tokens=7, seconds=0.2)


async def test_a_cancelled_call_hangs_up_so_that_the_server_stops(
    server: FakeModelServer, model: OpenAiChatModel
) -> None:
    server.seconds = 30.0
    async with asyncio.TaskGroup() as group:
        call = group.create_task(model.complete(ASKED, max_tokens=7, seconds=30))
        while not server.asked:
            await asyncio.sleep(0.005)
        call.cancel()
    async with asyncio.timeout(5):
        while not server.hung_up:
            await asyncio.sleep(0.005)


async def test_a_server_that_is_not_there_is_found_once_it_is() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    async with OpenAiChatModel(ChatServer(f"http://127.0.0.1:{port}", "m")) as model:
        with pytest.raises(Unavailable, match="ConnectError"):
            await model.complete(ASKED, max_tokens=7, seconds=5)
        for answer in ("here", "restarted"):
            async with running_chat_server(port) as server:
                server.content = answer
                assert await model.complete(ASKED, max_tokens=7, seconds=5) == Completion(answer)


async def test_no_word_of_question_or_answer_is_logged(
    server: FakeModelServer, model: OpenAiChatModel, caplog: pytest.LogCaptureFixture
) -> None:
    server.content = "your pin is 4711"
    with caplog.at_level(logging.DEBUG, logger="httpx"):
        await model.complete(ASKED, max_tokens=7, seconds=5)
    assert "4711" not in caplog.text
