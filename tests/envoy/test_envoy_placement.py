"""A chat template that refuses a system message in the middle, behind a real Envoy: what it costs, and how long."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio
from filter_stack import NOTE, FilterStack, running_stack
from template_server import (
    ANYWHERE,
    FIRST,
    LLAMA_CPP,
    MISSING,
    NOWHERE,
    VLLM,
    TemplateServer,
    chat_body,
    running_template_server,
)

from memory.model import ModelWindow, Placement

MODELS = {  # each is one test's own
    **dict.fromkeys(("strict", "strict, not recorded"), FIRST),
    **dict.fromkeys(("free", "free, bad request", "free, no note", "free, told", "free, short"), ANYWHERE),
    **dict.fromkeys(("none, missing", "none, llama_cpp", "none, told"), NOWHERE),
}
TALK = ("Hello", "Hello to you", "What is my cat called?")
IN_THE_MIDDLE = ["user", "assistant", "system", "user"]
IN_FRONT = ["system", "user", "assistant", "user"]
WITHOUT = ["user", "assistant", "user"]
pytestmark = pytest.mark.asyncio(loop_scope="module")  # one stack, and models of its own for each test


@pytest.fixture(scope="module")
def server() -> Iterator[TemplateServer]:
    with running_template_server(MODELS, MISSING) as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(server: TemplateServer) -> AsyncIterator[FilterStack]:
    async with running_stack(server.url) as stack:
        yield stack


@pytest_asyncio.fixture(loop_scope="module")
async def stack(shared: FilterStack, server: TemplateServer) -> AsyncIterator[FilterStack]:
    server.tokenize, server.also_refuses, server.window = MISSING, {}, 0
    async with shared.lent() as lent:
        lent.recall.placement = Placement.BEFORE_LAST_USER
        yield lent


async def asked(stack: FilterStack, model: str, *texts: str, **more: object) -> int:
    """The status of one chat, of a user who is called like the model."""
    return (await stack.chat(chat_body(model, *(texts or TALK), **more), **{"x-authz-user-id": model})).status_code


async def learnt(stack: FilterStack, model: str, placement: Placement) -> None:
    """Once the filter knows that notes for this model stand there."""
    async with asyncio.timeout(60):
        while await stack.recall.model_capabilities.placement(model) is not placement:
            await asyncio.sleep(0.02)


async def test_one_refused_request_moves_the_notes_of_that_model_to_the_front(
    stack: FilterStack, server: TemplateServer
) -> None:
    assert await asked(stack, "strict") == 400
    assert server.placed() == IN_THE_MIDDLE
    await learnt(stack, "strict", Placement.SYSTEM)
    assert await asked(stack, "strict") == 200
    assert server.placed() == IN_FRONT
    assert NOTE in server.chats[-1]["messages"][0]["content"]
    assert await asked(stack, "free") == 200
    assert server.placed() == IN_THE_MIDDLE
    assert stack.count("memproxy_placement_switched_total", placement="system", source="refused") == 1


async def test_a_refusal_counts_where_nothing_is_recorded(stack: FilterStack, server: TemplateServer) -> None:
    assert await asked(stack, "strict, not recorded", memory_config={"auto_store": False}) == 400
    await learnt(stack, "strict, not recorded", Placement.SYSTEM)


@pytest.mark.parametrize("shape", [MISSING, LLAMA_CPP])
async def test_a_template_without_any_system_message_loses_its_notes_after_some_refusals(
    stack: FilterStack, server: TemplateServer, shape: str
) -> None:
    server.tokenize, model, statuses = shape, f"none, {shape}", []
    async with asyncio.timeout(60):
        while await stack.recall.model_capabilities.placement(model) is not Placement.OFF:
            statuses.append(await asked(stack, model))
            await stack.turns(model, until=len(statuses))  # what it teaches is stored beside its turn, perhaps after it
    assert set(statuses) == {500 if shape == LLAMA_CPP else 400}
    assert len(statuses) >= 4
    assert await asked(stack, model) == 200
    assert server.placed() == WITHOUT


async def test_a_bad_request_after_a_good_one_moves_nothing(stack: FilterStack, server: TemplateServer) -> None:
    server.also_refuses = {"max_tokens": -1}
    assert await asked(stack, "free, bad request") == 200
    assert await asked(stack, "free, bad request", max_tokens=-1) == 400
    await stack.turns("free, bad request", until=2)
    assert await asked(stack, "free, bad request") == 200
    assert server.placed() == IN_THE_MIDDLE
    assert await stack.recall.model_capabilities.placement("free, bad request") is None


async def test_a_bad_request_without_a_note_of_ours_moves_nothing(stack: FilterStack, server: TemplateServer) -> None:
    server.also_refuses = {"max_tokens": -1}
    stack.recall.placement = Placement.SYSTEM  # inside the client's own
    messages = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "What is my cat called?"}]
    for _ in range(4):
        assert await asked(stack, "free, no note", messages=messages, max_tokens=-1) == 400
    await stack.turns("free, no note", until=4)
    assert await stack.recall.model_capabilities.placement("free, no note") is None


async def test_a_server_that_tells_is_asked_once_beside_the_first_request(
    stack: FilterStack, server: TemplateServer
) -> None:
    server.tokenize = VLLM
    await asked(stack, "none, told")  # may be refused: nothing waits for the answer
    await learnt(stack, "none, told", Placement.OFF)
    assert await asked(stack, "none, told") == 200
    assert server.placed() == WITHOUT
    for _ in range(3):
        assert await asked(stack, "free, told") == 200
    assert [question["model"] for question in server.questions].count("free, told") == 1
    assert stack.count("memproxy_placement_switched_total", placement="off", source="asked") == 1


async def test_a_refusal_for_length_teaches_the_window_and_moves_no_note(
    stack: FilterStack, server: TemplateServer
) -> None:
    server.window = 300
    for more in ({}, {"memory_config": {"auto_store": False}}):
        stack.windows._known.clear()
        assert await asked(stack, "free, short", max_tokens=290, **more) == 400
        async with asyncio.timeout(60):
            while stack.windows.glance("free, short") is None:
                await asyncio.sleep(0.02)
        assert stack.windows.glance("free, short") == ModelWindow(300)
    assert await stack.recall.model_capabilities.placement("free, short") is None
    assert await asked(stack, "free, short") == 200
