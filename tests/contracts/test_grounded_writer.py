"""What a writer promises, on a server whose answers we decide and on the small real model."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

import pytest
from chat_server import FakeModelServer, running_chat_server
from small_model import SMALL_MODEL, running_small_model

from memory.adapters.models.chat_writer import ECHO_CHARACTERS_MAX, ChatWriter
from memory.adapters.models.openai_chat import ChatServer, OpenAiChatModel
from memory.errors import Late, Unavailable, Unusable
from memory.ports.writing import GroundedSentence, GroundedWriter, WritingTask

LINES = ("My locker is number 4711.", "I row on Sundays.")
TASK = WritingTask("test", "Repeat each line as a sentence.", sentences_max=3, answer_tokens_max=120)
KINDS = WritingTask("kinds", "Repeat each line as a sentence.", kinds=("fact", "decision"), sentences_max=3)


def answer(*sentences: dict[str, Any]) -> str:
    return json.dumps({"sentences": sentences})


BOTH = answer({"text": "My locker is number 4711.", "lines": [1]}, {"text": " I row\non Sundays. ", "lines": [2, 2]})
READ = [GroundedSentence("My locker is number 4711.", (1,)), GroundedSentence("I row on Sundays.", (2,))]


def content(sentences: Sequence[GroundedSentence]) -> list[str]:
    """No objection to anything."""
    del sentences
    return []


def writer_on(model: OpenAiChatModel, *, seconds: float = 5.0) -> ChatWriter:
    return ChatWriter(model, name="m", seconds=seconds, answer_tokens_max=400)


@pytest.fixture
async def server() -> AsyncIterator[FakeModelServer]:
    async with running_chat_server() as running:
        yield running


@pytest.fixture
async def model(server: FakeModelServer) -> AsyncIterator[OpenAiChatModel]:
    async with OpenAiChatModel(ChatServer(server.url, "m")) as opened:
        yield opened


@pytest.fixture
def writer(model: OpenAiChatModel) -> GroundedWriter:
    return writer_on(model)


@pytest.fixture(scope="module")
def small_model_url() -> Iterator[str]:
    with running_small_model() as url:
        yield url


@pytest.fixture(params=["our server", "the small model"])
async def any_writer(request: pytest.FixtureRequest) -> AsyncIterator[GroundedWriter]:
    if request.param == "the small model":
        url: str = request.getfixturevalue("small_model_url")
        async with OpenAiChatModel(ChatServer(url, SMALL_MODEL, skips_thinking=True)) as opened:
            yield writer_on(opened, seconds=60.0)
        return
    async with running_chat_server() as running, OpenAiChatModel(ChatServer(running.url, "m")) as opened:
        running.says = both_or_kinds
        yield writer_on(opened)


def both_or_kinds(body: dict[str, Any]) -> str:
    sentence = body["response_format"]["json_schema"]["schema"]["properties"]["sentences"]["items"]
    if "kind" not in sentence["properties"]:
        return BOTH
    return answer({"kind": "fact", "text": "My locker is number 4711.", "lines": [1]})


async def test_each_sentence_names_lines_that_exist(any_writer: GroundedWriter) -> None:
    written = await any_writer.write(TASK, LINES, objections=content)
    assert 0 < len(written) <= TASK.sentences_max
    assert all(one.text == " ".join(one.text.split()) != "" for one in written)
    assert {number for one in written for number in one.sources} <= {1, 2}
    assert all(one.sources and not one.kind for one in written)


async def test_each_sentence_has_one_of_the_kinds(any_writer: GroundedWriter) -> None:
    written = await any_writer.write(KINDS, LINES, objections=content)
    assert {one.kind for one in written} <= set(KINDS.kinds)


async def test_the_name_changes_with_the_rules(any_writer: GroundedWriter) -> None:
    names = [await any_writer.name_for(task) for task in (TASK, TASK, KINDS)]
    assert names[0] == names[1] != names[2]
    assert "test-" in names[0]


async def test_the_model_gets_the_rules_the_numbered_lines_and_a_schema(
    server: FakeModelServer, writer: GroundedWriter
) -> None:
    server.content = BOTH
    assert list(await writer.write(TASK, LINES, objections=content)) == READ
    (asked,) = server.asked
    system, question = (one["content"] for one in asked["messages"])
    assert system.startswith(TASK.instruction)
    assert question == "[1] My locker is number 4711.\n[2] I row on Sundays."
    assert asked["max_tokens"] == 120
    items = asked["response_format"]["json_schema"]["schema"]["properties"]["sentences"]["items"]
    assert items["properties"]["lines"]["items"]["maximum"] == 2


async def test_a_faulty_text_is_sent_back_once_and_the_better_one_is_used(
    server: FakeModelServer, writer: GroundedWriter
) -> None:
    answers = iter([answer({"text": "I swim.", "lines": [2]}), BOTH])
    server.says = lambda body: next(answers)

    def swims(sentences: Sequence[GroundedSentence]) -> list[str]:
        return ["nobody swims"] if any("swim" in one.text for one in sentences) else []

    assert list(await writer.write(TASK, LINES, objections=swims)) == READ
    first, second = server.asked
    assert second["messages"][: len(first["messages"])] == first["messages"]
    assert "nobody swims" in second["messages"][-1]["content"]
    answers = iter([answer({"text": "I row.", "lines": [2]}), answer({"text": "I swim.", "lines": [2]})])

    def rather_not(sentences: Sequence[GroundedSentence]) -> list[str]:
        return ["one", "two"][: 1 + ("swim" in sentences[0].text)]

    assert [one.text for one in await writer.write(TASK, LINES, objections=rather_not)] == ["I row."]


@pytest.mark.parametrize("has_first", [True, False])
async def test_what_there_is_counts_if_no_better_text_comes_in_time(
    server: FakeModelServer, model: OpenAiChatModel, *, has_first: bool
) -> None:
    def says(body: dict[str, Any]) -> str:
        del body
        server.seconds = 30.0
        return BOTH if has_first else "Ahoy!"

    server.says = says
    writing = writer_on(model, seconds=0.5).write(TASK, LINES, objections=lambda sentences: ["not quite"])
    if has_first:
        assert list(await writing) == READ
    else:
        with pytest.raises(Late):
            await writing
    assert len(server.asked) == 2


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
async def test_an_answer_without_a_usable_sentence_is_asked_for_twice_and_no_more(
    server: FakeModelServer, writer: GroundedWriter, said: str
) -> None:
    server.content = said
    with pytest.raises(Unusable):
        await writer.write(TASK, LINES, objections=content)
    assert len(server.asked) == 2
    assert all(len(one["content"]) <= ECHO_CHARACTERS_MAX for one in server.asked[1]["messages"])


async def test_sentences_of_unknown_kinds_are_left_out(server: FakeModelServer, writer: GroundedWriter) -> None:
    server.content = answer(
        {"kind": "poem", "text": "I row.", "lines": [2]}, {"kind": "fact", "text": "I row.", "lines": [2]}
    )
    assert list(await writer.write(KINDS, LINES, objections=content)) == [GroundedSentence("I row.", (2,), "fact")]


async def test_a_late_answer_and_an_outage_are_told_apart(server: FakeModelServer, model: OpenAiChatModel) -> None:
    server.seconds = 30.0
    with pytest.raises(Late):
        await writer_on(model, seconds=0.2).write(TASK, LINES, objections=content)
    server.seconds, server.status = 0.0, 503
    with pytest.raises(Unavailable) as raised:
        await writer_on(model).write(TASK, LINES, objections=content)
    assert not isinstance(raised.value, Unusable | Late)


async def test_no_word_of_lines_or_texts_is_logged(
    server: FakeModelServer, writer: GroundedWriter, caplog: pytest.LogCaptureFixture
) -> None:
    server.content = answer({"text": "My locker is number 4711.", "lines": [9]})
    with caplog.at_level(logging.DEBUG), pytest.raises(Unusable) as raised:
        await writer.write(TASK, LINES, objections=content)
    assert "4711" not in caplog.text + str(raised.value)
