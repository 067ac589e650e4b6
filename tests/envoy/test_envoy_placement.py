"""A chat template that refuses a system message in the middle, behind a real Envoy: what it costs, and how long."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from filter_stack import NOTE, FilterStack, running_stack
from product import eventually, in_time, running_product
from template_server import (
    ANYWHERE,
    FIRST,
    LLAMA_CPP,
    MISSING,
    NOWHERE,
    SILENT,
    VLLM,
    TemplateServer,
    chat_body,
    models_body,
    running_template_server,
)

from memory.model import ModelWindow, Placement

ALICE = {"x-authz-user-id": "alice"}
TALK = ("Hello", "Hello to you", "What is my cat called?")
MODELS = {"free": ANYWHERE, "strict": FIRST, "named": FIRST, "none": NOWHERE}
IN_THE_MIDDLE = ["user", "assistant", "system", "user"]
IN_FRONT = ["system", "user", "assistant", "user"]
WITHOUT = ["user", "assistant", "user"]


@pytest.fixture
def server() -> Iterator[TemplateServer]:
    with running_template_server(MODELS, MISSING) as running:
        yield running


async def asked(stack: FilterStack, model: str, *texts: str, **more: object) -> int:
    """The status of one chat of Alice's."""
    return (await stack.chat(chat_body(model, *(texts or TALK), **more), **ALICE)).status_code


async def learnt(stack: FilterStack, model: str, placement: Placement) -> None:
    """Once the filter knows that notes for this model stand there."""
    deadline = time.monotonic() + 20
    while await stack.recall.model_capabilities.placement(model) is not placement:
        assert time.monotonic() < deadline, f"{model} is not at {placement}"
        await asyncio.sleep(0.02)


async def test_one_refused_request_moves_the_notes_of_that_model_to_the_front(server: TemplateServer) -> None:
    async with running_stack(server.url) as stack:
        stack.recall.placement = Placement.BEFORE_LAST_USER
        assert await asked(stack, "strict") == 400
        assert server.placed() == IN_THE_MIDDLE
        await learnt(stack, "strict", Placement.SYSTEM)
        assert await asked(stack, "strict") == 200
        assert server.placed() == IN_FRONT
        assert NOTE in server.chats[-1]["messages"][0]["content"]
        assert await asked(stack, "free") == 200
        assert server.placed() == IN_THE_MIDDLE
        assert stack.count("memproxy_placement_switched_total", placement="system", source="refused") == 1


async def test_what_was_learnt_survives_a_restart(server: TemplateServer, tmp_path: Path) -> None:
    for expected in (400, 200):
        async with running_stack(server.url, data_dir=tmp_path) as stack:
            stack.recall.placement = Placement.BEFORE_LAST_USER
            assert await asked(stack, "strict") == expected
            await learnt(stack, "strict", Placement.SYSTEM)


async def test_a_refusal_counts_where_nothing_is_recorded(server: TemplateServer) -> None:
    async with running_stack(server.url) as stack:
        stack.recall.placement = Placement.BEFORE_LAST_USER
        assert await asked(stack, "strict", memory_config={"auto_store": False}) == 400
        await learnt(stack, "strict", Placement.SYSTEM)


@pytest.mark.parametrize("shape", [MISSING, LLAMA_CPP])
async def test_a_template_without_any_system_message_loses_its_notes_after_some_refusals(
    server: TemplateServer, shape: str
) -> None:
    server.tokenize = shape
    async with running_stack(server.url) as stack:
        stack.recall.placement = Placement.BEFORE_LAST_USER
        statuses = []
        while await stack.recall.model_capabilities.placement("none") is not Placement.OFF:
            statuses.append(await asked(stack, "none"))
            await stack.turns("alice", until=len(statuses))
            await asyncio.sleep(0.1)  # what a refusal teaches is stored beside its turn, in either order
        assert statuses == [400, 400, 400, 400]
        assert await asked(stack, "none") == 200
        assert server.placed() == WITHOUT


async def test_a_bad_request_after_a_good_one_moves_nothing(server: TemplateServer) -> None:
    server.also_refuses = {"max_tokens": -1}
    async with running_stack(server.url) as stack:
        stack.recall.placement = Placement.BEFORE_LAST_USER
        assert await asked(stack, "free") == 200
        assert await asked(stack, "free", max_tokens=-1) == 400
        await stack.turns("alice", until=2)
        assert await asked(stack, "free") == 200
        assert server.placed() == IN_THE_MIDDLE
        assert await stack.recall.model_capabilities.placement("free") is None


async def test_a_bad_request_without_a_note_of_ours_moves_nothing(server: TemplateServer) -> None:
    server.also_refuses = {"max_tokens": -1}
    async with running_stack(server.url) as stack:
        messages = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "What is my cat called?"}]
        for _ in range(4):
            assert await asked(stack, "free", messages=messages, max_tokens=-1) == 400
        await stack.turns("alice", until=4)
        assert await stack.recall.model_capabilities.placement("free") is None


async def test_a_server_that_tells_is_asked_once_beside_the_first_request(server: TemplateServer) -> None:
    server.tokenize = VLLM
    async with running_stack(server.url) as stack:
        stack.recall.placement = Placement.BEFORE_LAST_USER
        await asked(stack, "none")  # may be refused: nothing waits for the answer
        await learnt(stack, "none", Placement.OFF)
        assert await asked(stack, "none") == 200
        assert server.placed() == WITHOUT
        for _ in range(3):
            assert await asked(stack, "free") == 200
        assert [question["model"] for question in server.questions].count("free") == 1
        assert stack.count("memproxy_placement_switched_total", placement="off", source="asked") == 1


async def test_no_request_waits_for_a_server_that_does_not_tell(server: TemplateServer) -> None:
    server.tokenize = SILENT
    async with running_stack(server.url) as stack:
        began = time.monotonic()
        assert await asked(stack, "free") == 200
        assert time.monotonic() - began < 1.0
        async with asyncio.timeout(20):  # the probe runs beside the request, and may reach the server after the answer
            while not server.questions:
                await asyncio.sleep(0.01)
        assert len(server.questions) == 1


def test_the_product_moves_its_notes_and_keeps_that_over_a_restart(server: TemplateServer, tmp_path: Path) -> None:
    """And where the server names its models, it knows the placement before their first chat."""

    def chat(*texts: str, model: str = "strict") -> httpx.Response:
        url = f"{product.url}/v1/chat/completions"
        return httpx.post(url, content=chat_body(model, *texts), headers=ALICE, timeout=30)

    with running_product(tmp_path / "data", upstream=server.url) as product:
        chat("My cat is called Quasimodo.")
        product.flush("alice")
        first = in_time(lambda: chat(*TALK))
        assert (first.status_code, first.headers["x-memory-status"]) == (400, "used")
        second = in_time(lambda: eventually(lambda: (again := chat(*TALK)).status_code == 200 and again))
        assert second.headers["x-memory-status"] == "used"
    server.tokenize, server.models = VLLM, models_body("named")
    with running_product(tmp_path / "data", upstream=server.url) as product:
        third = in_time(lambda: chat(*TALK))
        assert (third.status_code, third.headers["x-memory-status"]) == (200, "used")
        assert server.placed() == IN_FRONT
        assert "Quasimodo" in server.chats[-1]["messages"][0]["content"]
        server.chats.clear()
        first = in_time(lambda: chat(*TALK, model="named"))
        assert (first.status_code, first.headers["x-memory-status"]) == (200, "used")
        assert server.placed() == IN_FRONT


async def test_a_refusal_for_length_teaches_the_window_and_moves_no_note(server: TemplateServer) -> None:
    server.window = 300
    async with running_stack(server.url) as stack:
        stack.recall.placement = Placement.BEFORE_LAST_USER
        for more in ({}, {"memory_config": {"auto_store": False}}):
            stack.windows._known.clear()
            assert await asked(stack, "free", max_tokens=290, **more) == 400
            deadline = time.monotonic() + 20
            while stack.windows.glance("free") is None:
                assert time.monotonic() < deadline
                await asyncio.sleep(0.02)
            assert stack.windows.glance("free") == ModelWindow(300)
        assert await stack.recall.model_capabilities.placement("free") is None
        assert await asked(stack, "free") == 200


@pytest.mark.slow("starts the whole product")
def test_after_one_refusal_for_length_the_same_question_gets_through(server: TemplateServer, tmp_path: Path) -> None:
    with running_product(tmp_path / "data", upstream=server.url) as product:
        product.chat("My cat is called Miu.", "alice", model="free")
        product.flush("alice")
        body = json.loads(chat_body("free", "What is my cat called?", max_tokens=290))
        server.window = 300

        def answered() -> httpx.Response:
            return httpx.post(f"{product.url}/v1/chat/completions", json=body, headers=ALICE, timeout=30)

        first = answered()
        assert (first.status_code, first.headers["x-memory-status"]) == (400, "used")
        eventually(lambda: answered().status_code == 200)
        assert "Miu" not in json.dumps(server.chats[-1])
        short = httpx.post(
            f"{product.url}/v1/chat/completions", json={**body, "max_tokens": 20}, headers=ALICE, timeout=30
        )
        assert (short.status_code, "Miu" in json.dumps(server.chats[-1])) == (200, True), "where there is room"
