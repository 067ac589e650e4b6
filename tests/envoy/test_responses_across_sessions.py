"""The main promise on the Responses API, with the real openai SDK through the real product, and with a real model."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from product import Product, eventually, in_time, running_product, sentences
from response_objects import call_item, text_item
from responses_server import ResponsesServer, running_responses_server

BUDGET = "My budget for the Hawaii trip is $10,000."
QUESTION = "What is my budget for the Hawaii trip?"
TOOL: Any = {"type": "function", "name": "hotels", "parameters": {"type": "object", "properties": {}}}


@pytest.fixture(scope="module")
def running() -> Iterator[ResponsesServer]:
    with running_responses_server() as server:
        yield server


@pytest.fixture(scope="module")
def product(running: ResponsesServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    with running_product(tmp_path_factory.mktemp("responses") / "data", upstream=running.url) as started:
        yield started


@pytest.fixture
def server(running: ResponsesServer) -> ResponsesServer:
    running.behave()
    return running


def client_of(product: Product, user: str) -> openai.OpenAI:
    return openai.OpenAI(
        base_url=f"{product.url}/v1", api_key="k", max_retries=0, default_headers={"x-authz-user-id": user}
    )


def asked(client: openai.OpenAI, **body: Any) -> Any:
    """The response to a question that memory had time for."""
    return in_time(lambda: client.responses.with_raw_response.create(**{"model": "m", **body})).parse()


def learnt(product: Product, user: str, statement: str = BUDGET) -> None:
    """Learnt by itself; and the write is over, so that chats see it as REST does."""
    eventually(lambda: statement.rstrip(".").casefold() in sentences(product.memories(user)))
    assert product.flush(user) == {"pending": 0, "failed": 0}


@pytest.mark.parametrize("stream", [False, True])
def test_told_in_one_response_is_injected_into_another(product: Product, server: ResponsesServer, stream: bool) -> None:
    client = client_of(product, f"teller-{stream}")
    told: Any = client.responses.create(model="m", input=BUDGET, stream=stream, instructions="Be brief.")
    if stream:
        events = list(told)
        assert [events[0].type, events[-1].type] == ["response.created", "response.completed"]
        assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == "Noted."
    learnt(product, f"teller-{stream}")
    answer = asked(client, input=QUESTION, stream=stream)
    if stream:
        list(answer)
    received = server.last()
    assert "$10,000" in received["input"]
    assert received["input"].endswith(f"\n\n{QUESTION}")
    assert {name: value for name, value in received.items() if name != "input"} == {"model": "m", "stream": stream}
    asked(client_of(product, "stranger"), input=QUESTION)
    assert server.last()["input"] == QUESTION


def test_a_chain_gets_each_memory_once_and_a_new_chain_gets_it_again(product: Product, server: ResponsesServer) -> None:
    client = client_of(product, "chained")
    client.responses.create(model="m", input=BUDGET)
    learnt(product, "chained")
    first = asked(client, input=QUESTION)
    assert server.last()["input"].count("$10,000") == 1
    second = asked(client, input="And what is my budget in all?", previous_response_id=first.id)
    assert server.last()["input"] == "And what is my budget in all?"
    asked(client, input="Remind me of my Hawaii budget?", previous_response_id=second.id)
    assert sum(message["content"].count("$10,000") for message in server.prompts[-1]) == 1
    asked(client, input=QUESTION)
    assert server.last()["input"].count("$10,000") == 1


def test_a_tool_loop_reads_one_note_and_its_answer_is_on_record(product: Product, server: ResponsesServer) -> None:
    client = client_of(product, "traveller")
    client.responses.create(model="m", input=BUDGET)
    learnt(product, "traveller")
    server.output = [[call_item("hotels")], [text_item("The Pelican, for $200 a night.")]]
    question: Any = [{"role": "user", "content": "Find a hotel for my Hawaii trip within my budget."}]
    calling = client.responses.create(model="m", input=question, tools=[TOOL])
    assert "$10,000" in server.last()["input"][0]["content"]
    [call] = calling.output
    assert call.type == "function_call"
    output = {"type": "function_call_output", "call_id": call.call_id, "output": "The Pelican, $200"}
    answered = client.responses.create(
        model="m", input=[*question, call.model_dump(exclude_none=True), output], tools=[TOOL], store=False
    )
    assert answered.output_text == "The Pelican, for $200 a night."
    received = server.last()["input"]
    assert "$10,000" in received[0]["content"]
    assert received[2] == output


def test_without_a_word_to_us_the_server_gets_the_client_s_bytes(product: Product, server: ResponsesServer) -> None:
    openai.OpenAI(base_url=f"{product.url}/v1", api_key="k").responses.create(model="m", input=QUESTION)
    assert server.last() == {"input": QUESTION, "model": "m"}


async def test_the_async_client_is_served_alike(product: Product, server: ResponsesServer) -> None:
    headers = {"x-authz-user-id": "asynchronous"}
    async with openai.AsyncOpenAI(base_url=f"{product.url}/v1", api_key="k", default_headers=headers) as client:
        await client.responses.create(model="m", input=BUDGET)
        learnt(product, "asynchronous")
        async with client.responses.stream(model="m", input=QUESTION) as stream:
            assert (await stream.get_final_response()).output_text == "Noted."
    assert "$10,000" in server.last()["input"]


@pytest.mark.parametrize("path", ["/v1/responses", "/v1/chat/completions"])
def test_a_history_of_ten_thousand_messages_gets_through(product: Product, server: ResponsesServer, path: str) -> None:
    server.is_answering_all = True
    said = [
        {"role": ("user", "assistant")[n % 2], "content": f"Statement {n} of a very long talk."} for n in range(10_001)
    ]
    body = {"model": "m", ("input" if "responses" in path else "messages"): said, "memory_config": {}}
    headers = {"x-authz-user-id": "talkative"}
    began = time.monotonic()
    answer = httpx.post(f"{product.url}{path}", json=body, headers=headers, timeout=30)
    assert time.monotonic() - began < 5
    assert answer.status_code == 200
    assert answer.headers["x-memory-status"] in ("used", "empty", "skipped", "unavailable")
    received = server.last()
    assert "memory_config" not in received
    assert next(value for value in received.values() if isinstance(value, list))[-1] == said[-1]


def test_a_real_model_s_own_responses_api_follows_the_note(tmp_path: Path) -> None:
    """llama.cpp's server, which takes no `previous_response_id`: it answers that itself. Its events lack indices."""
    with running_product(tmp_path / "data") as product:
        client = client_of(product, "ada")
        client.responses.create(model="local", input=BUDGET, max_output_tokens=16)
        learnt(product, "ada")
        options: Any = {"model": "local", "temperature": 0, "max_output_tokens": 40}
        plain = asked(client, input=QUESTION, **options)
        assert "10,000" in plain.output_text
        events = list(asked(client, input=[{"role": "user", "content": QUESTION}], stream=True, **options))
        assert "10,000" in "".join(event.delta for event in events if event.type == "response.output_text.delta")
        unknown = asked(client_of(product, "nobody"), input=QUESTION, **options)
        assert "10,000" not in unknown.output_text
        with pytest.raises(openai.BadRequestError, match="previous_response_id"):
            client.responses.create(input=QUESTION, previous_response_id=plain.id, **options)
