"""What a chat model and the writer on it promise, on a server whose manners we decide and on the small real model."""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
import subprocess
import sys
import urllib.request
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass
from typing import Any

import pytest
from chat_server import Cut, FakeModelServer, running_chat_server
from product import eventually
from served_app import free_port

from memory.adapters.models.chat_writer import ECHO_CHARACTERS_MAX, ChatWriter
from memory.adapters.models.openai_chat import ANSWER_BYTES_MAX, ChatServer, OpenAiChatModel
from memory.errors import Late, Unavailable, Unusable
from memory.model import Message
from memory.ports import Completion
from memory.ports.reading import GroundedSentence, GroundedWriter, WritingTask

ASKED = (Message("system", "Be brief."), Message("user", "Say hello, my pin is 4711."))
SCHEMA = {"type": "object", "properties": {"query": {"type": "string", "maxLength": 20}}, "required": ["query"]}
PATIENCE_SECONDS = 60.0  # what is tested here is not speed


@dataclass(frozen=True)
class Chat:
    """A server that says what it is told to, and who asks it."""

    server: FakeModelServer
    model: OpenAiChatModel

    @property
    def writer(self) -> GroundedWriter:
        return writer_on(self.model)


@asynccontextmanager
async def chatting() -> AsyncIterator[Chat]:
    async with running_chat_server() as running, OpenAiChatModel(ChatServer(running.url, "m")) as opened:
        yield Chat(running, opened)


@pytest.fixture
async def chat() -> AsyncIterator[Chat]:
    async with chatting() as one:
        yield one


@pytest.fixture(params=["our server", "the small model"])
async def any_model(request: pytest.FixtureRequest) -> AsyncIterator[OpenAiChatModel]:
    if request.param == "the small model":
        url: str = request.getfixturevalue("small_model_url")
        async with OpenAiChatModel(ChatServer(url, "smollm2-135m-instruct", skips_thinking=True)) as opened:
            yield opened
        return
    async with chatting() as one:
        one.server.says = as_asked
        yield one.model


@pytest.fixture(scope="module")
def small_model_url() -> Iterator[str]:
    """The packaged small chat model behind its own server, in a process of its own, once it answers."""
    port = free_port()
    code = f"from extproc.supervisor.local_model import serve; serve('127.0.0.1', {port})"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def is_healthy() -> bool:
        assert process.poll() is None
        with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=1) as answer:
            return bool(answer.status == 200)
        return False

    try:
        eventually(is_healthy, seconds=60.0)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.kill()
        process.wait()


def as_asked(body: dict[str, Any]) -> str:
    if "response_format" not in body:
        return Cut("Once")
    if "sentences" not in body["response_format"]["json_schema"]["schema"]["properties"]:
        return '{"query": "hello"}'
    return answer({"kind": "fact", "text": "My locker is number 4711.", "lines": [1]})


async def test_any_text_gets_text_which_follows_the_schema(any_model: OpenAiChatModel) -> None:
    asked = [Message("user", "Tell me a long story about a dragon, half \ud83d of a \x00 cat.")]
    whole = await any_model.complete(asked, max_tokens=200, schema=SCHEMA, seconds=PATIENCE_SECONDS)
    assert (type(json.loads(whole.text)["query"]), whole.is_cut) == (str, False)
    some = await any_model.complete(asked, max_tokens=4, seconds=PATIENCE_SECONDS)
    assert some.text
    assert some.is_cut  # there was more to say


async def test_the_request_says_what_was_asked_for_and_no_more(chat: Chat) -> None:
    for schema in (SCHEMA, None):
        await chat.model.complete(ASKED, max_tokens=7, schema=schema, seconds=PATIENCE_SECONDS)
    first, second = chat.server.asked
    assert first.pop("response_format")["json_schema"]["schema"] == SCHEMA
    assert first == second
    assert set(second) == {"model", "messages", "max_tokens", "temperature", "stream"}
    assert (second["max_tokens"], second["messages"][1]["content"]) == (7, ASKED[1].content)
    assert "authorization" not in chat.server.headers[0]


@pytest.mark.parametrize("drips", [False, True])
async def test_a_call_that_takes_too_long_ends(chat: Chat, *, drips: bool) -> None:
    chat.server.drips, chat.server.seconds = drips, 0.0 if drips else 3_600.0
    with pytest.raises(Unavailable, match="model is unavailable: no answer within"):
        await chat.model.complete(ASKED, max_tokens=500, seconds=0.05)


STATUSES = dict.fromkeys((204, 302, 401, 403, 404, 408, 429, 500, 502, 503), Unavailable)  # as any request


@pytest.mark.parametrize(("status", "error"), [*STATUSES.items(), *((status, Unusable) for status in (400, 413, 422))])
async def test_a_status_tells_an_outage_from_a_bad_request(chat: Chat, status: int, error: type[Unavailable]) -> None:
    chat.server.status = status
    with pytest.raises(Unavailable, match=str(status)) as raised:
        await chat.model.complete(ASKED, max_tokens=7, seconds=PATIENCE_SECONDS)
    assert type(raised.value) is error


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
    "deep inside": b'{"x": ' + b"[" * 100_000,
}


@pytest.mark.parametrize("body", JUNK.values(), ids=JUNK.keys())
async def test_junk_is_an_answer_of_no_use_from_a_model_that_is_up(chat: Chat, body: bytes) -> None:
    chat.server.body = body
    with pytest.raises(Unusable) as raised:
        await chat.model.complete(ASKED, max_tokens=7, seconds=PATIENCE_SECONDS)
    assert raised.value.part == "model"
    assert "4711" not in str(raised.value)


@pytest.mark.parametrize("said", ['{"query": "a long st', '{"query": "whole by chance"}', ""])
async def test_an_answer_that_ended_for_want_of_tokens_says_so(chat: Chat, said: str) -> None:
    chat.server.content = Cut(said)
    assert await chat.model.complete(ASKED, max_tokens=7, seconds=PATIENCE_SECONDS) == Completion(said, is_cut=True)


async def test_an_answer_of_ten_megabytes_is_given_up_after_the_limit(chat: Chat) -> None:
    chat.server.body = b'{"choices": [{"message": {"content": "' + b"x" * (10 << 20) + b'"}}]}'
    with pytest.raises(Unusable, match=str(ANSWER_BYTES_MAX)):
        await chat.model.complete(ASKED, max_tokens=7, seconds=PATIENCE_SECONDS)
    assert chat.server.sent_bytes < 9 << 20
    chat.server.body, chat.server.content = None, "well again"
    assert await chat.model.complete(ASKED, max_tokens=7, seconds=PATIENCE_SECONDS) == Completion("well again")


async def test_a_server_that_is_not_there_is_found_once_it_is() -> None:
    port = free_port()
    async with OpenAiChatModel(ChatServer(f"http://127.0.0.1:{port}", "m")) as model:
        with pytest.raises(Unavailable, match="ConnectError"):
            await model.complete(ASKED, max_tokens=7, seconds=PATIENCE_SECONDS)
        for answer in ("here", "restarted"):
            async with running_chat_server(port) as server:
                server.content = answer
                assert await model.complete(ASKED, max_tokens=7, seconds=PATIENCE_SECONDS) == Completion(answer)


async def test_no_word_of_question_or_answer_is_logged(chat: Chat, caplog: pytest.LogCaptureFixture) -> None:
    chat.server.content = "your pin is 4711"
    with caplog.at_level(logging.DEBUG, logger="httpx"):
        await chat.model.complete(ASKED, max_tokens=7, seconds=PATIENCE_SECONDS)
    assert "4711" not in caplog.text


async def test_calls_share_a_connection_with_their_key_and_one_that_is_cancelled_hangs_up(chat: Chat) -> None:
    async with OpenAiChatModel(ChatServer(f"{chat.server.url}/v1/", "m", api_key="k3y")) as keyed:
        for _ in range(3):
            await keyed.complete(ASKED, max_tokens=7, seconds=PATIENCE_SECONDS)
        assert {one["authorization"] for one in chat.server.headers} == {"Bearer k3y"}
        assert len(chat.server.peers) == 1
        chat.server.seconds = 3_600.0
        async with asyncio.timeout(PATIENCE_SECONDS), asyncio.TaskGroup() as group:
            call = group.create_task(keyed.complete(ASKED, max_tokens=7, seconds=3_600))
            while len(chat.server.asked) < 4:
                await asyncio.sleep(0.005)
            call.cancel()
            while not chat.server.hung_up:  # so that the server stops
                await asyncio.sleep(0.005)


# The writer


LINES = ("My locker is number 4711.", "I row on Sundays.")
TASK = WritingTask("Repeat each line as a sentence.", ("fact", "decision"), sentences_max=3, answer_tokens_max=120)


def answer(*sentences: dict[str, Any]) -> str:
    """Of facts, where nothing else is said."""
    return json.dumps({"sentences": [{"kind": "fact", **one} for one in sentences]})


BOTH = answer({"text": "My locker is number 4711.", "lines": [1]}, {"text": " I row\non Sundays. ", "lines": [2, 2]})
READ = [GroundedSentence(line, (number,), "fact") for number, line in enumerate(LINES, start=1)]


def content(_: Sequence[GroundedSentence]) -> list[str]:
    """No objection to anything."""
    return []


def writer_on(model: OpenAiChatModel, *, seconds: float = PATIENCE_SECONDS) -> ChatWriter:
    return ChatWriter(model, seconds=seconds, answer_tokens_max=400)


async def test_each_sentence_names_lines_that_exist_and_has_one_of_the_kinds(any_model: OpenAiChatModel) -> None:
    writer, written = writer_on(any_model), list[GroundedSentence]()
    with suppress(Unusable):  # what a small model says is nobody's promise, but it has the form
        written = list(await writer.write(TASK, LINES, objections=content))
    assert len(written) <= TASK.sentences_max
    assert all(one.text == " ".join(one.text.split()) != "" for one in written)
    assert {number for one in written for number in one.sources} <= {1, 2}
    assert all(one.sources and one.kind in TASK.kinds for one in written)


async def test_the_model_gets_the_rules_the_numbered_lines_and_a_schema(chat: Chat) -> None:
    chat.server.content = BOTH
    assert list(await chat.writer.write(TASK, LINES, objections=content)) == READ
    (asked,) = chat.server.asked
    system, question = (one["content"] for one in asked["messages"])
    assert system.startswith(TASK.instruction)
    assert question == "[1] My locker is number 4711.\n[2] I row on Sundays."
    assert asked["max_tokens"] == 120
    items = asked["response_format"]["json_schema"]["schema"]["properties"]["sentences"]["items"]
    assert items["properties"]["lines"]["items"]["maximum"] == 2


async def test_a_faulty_text_is_sent_back_once_and_the_better_one_is_used(chat: Chat) -> None:
    answers = iter([answer({"text": "I swim.", "lines": [2]}), BOTH])
    chat.server.says = lambda body: next(answers)

    def swims(sentences: Sequence[GroundedSentence]) -> list[str]:
        return ["nobody swims"] if any("swim" in one.text for one in sentences) else []

    assert list(await chat.writer.write(TASK, LINES, objections=swims)) == READ
    first, second = chat.server.asked
    assert second["messages"][: len(first["messages"])] == first["messages"]
    assert "nobody swims" in second["messages"][-1]["content"]
    answers = iter([answer({"text": "I row.", "lines": [2]}), answer({"text": "I swim.", "lines": [2]})])

    def rather_not(sentences: Sequence[GroundedSentence]) -> list[str]:
        return ["one", "two"][: 1 + ("swim" in sentences[0].text)]

    assert [one.text for one in await chat.writer.write(TASK, LINES, objections=rather_not)] == ["I row."]


@pytest.mark.parametrize(
    "said",
    [
        "As a sailor I would say: Ahoy!",
        "",
        "[]",
        '{"sentences": 3}',
        answer(),
        answer({"text": "", "lines": [1]}),
        answer({"text": "I row.", "lines": []}),
        answer({"text": "I row.", "lines": [3]}),
        answer({"text": "I row.", "lines": [0, -1]}),
        '{"sentences": [{"text": "I row.", "lines": [2]}, {"te',
        "[" * 100_000,
    ],
)
async def test_an_answer_without_a_usable_sentence_is_asked_for_twice_and_no_more(chat: Chat, said: str) -> None:
    chat.server.content = said
    with pytest.raises(Unusable):
        await chat.writer.write(TASK, LINES, objections=content)
    assert len(chat.server.asked) == 2
    assert all(len(one["content"]) <= ECHO_CHARACTERS_MAX for one in chat.server.asked[1]["messages"])


@pytest.mark.parametrize("has_first", [True, False])
async def test_what_there_is_counts_if_no_better_text_comes(chat: Chat, *, has_first: bool) -> None:
    def says(body: dict[str, Any]) -> str:
        chat.server.status = 200 if len(chat.server.asked) == 1 else 503
        return BOTH if has_first else "Ahoy!"

    chat.server.says = says
    with nullcontext() if has_first else pytest.raises(Unavailable):
        assert list(await chat.writer.write(TASK, LINES, objections=lambda sentences: ["not quite"])) == READ


async def test_unknown_kinds_are_left_out_and_no_word_is_logged(chat: Chat, caplog: pytest.LogCaptureFixture) -> None:
    chat.server.content = answer(*({"kind": kind, "text": "I row.", "lines": [2]} for kind in ("poem", "fact")))
    assert list(await chat.writer.write(TASK, LINES, objections=content)) == [GroundedSentence("I row.", (2,), "fact")]
    chat.server.content = answer({"text": "My locker is number 4711.", "lines": [9]})
    with caplog.at_level(logging.DEBUG), pytest.raises(Unusable) as raised:
        await chat.writer.write(TASK, LINES, objections=content)
    assert "4711" not in caplog.text + str(raised.value)


async def test_a_late_answer_and_an_outage_are_told_apart(chat: Chat) -> None:
    chat.server.seconds = 3_600.0
    with pytest.raises(Late):
        await writer_on(chat.model, seconds=1.0).write(TASK, LINES, objections=content)
    chat.server.seconds, chat.server.status = 0.0, 503
    with pytest.raises(Unavailable) as raised:
        await writer_on(chat.model).write(TASK, LINES, objections=content)
    assert not isinstance(raised.value, Unusable | Late)
