"""The main promise, with the real openai SDK through the real product: told in one session, known in the next."""

from __future__ import annotations

from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import httpx
import openai
import pymilvus
import pytest
from api_shapes import SHAPES
from product import Product, eventually, in_time, running_product, sentences
from upstream import RecordingUpstream

from extproc.addresses import unix_target

BUDGET = "My budget for the Hawaii trip is $10,000."
QUESTION = "What is my budget for the Hawaii trip?"

ODD_JSON = (
    b'{ "model":"m",  "temperature":0.70,"n":1e0,\t"messages":[{"content":"caf\\u00e9 \\ud83d","role":"user"}] ,'
    b'"x":12345678901234567890}'
)


def context(user_id: str, session_id: str) -> dict[str, object]:
    return {"memory_context": {"user_id": user_id, "session_id": session_id}}


def known(product: Product, user_id: str, statement: str) -> bool:
    return statement.strip().rstrip(".").casefold() in sentences(product.memories(user_id))


@pytest.mark.parametrize("stream", [False, True])
def test_told_in_a_is_injected_in_b(shared_product: Product, upstream: RecordingUpstream, stream: bool) -> None:
    user = f"sync-{stream}"
    client = openai.OpenAI(base_url=f"{shared_product.url}/v1", api_key="k", max_retries=0)
    told = client.chat.completions.create(
        model="m", messages=[{"role": "user", "content": BUDGET}], stream=stream, extra_body=context(user, "a")
    )
    if stream:
        assert "".join(chunk.choices[0].delta.content or "" for chunk in told) == "Noted."
    else:
        assert told.choices[0].message.content == "Noted."
    eventually(lambda: known(shared_product, user, BUDGET))
    shared_product.flush(user)  # REST sees a write before it is over, chats afterwards

    completions = client.chat.completions.with_raw_response
    question: Any = {"model": "m", "messages": [{"role": "user", "content": QUESTION}], "stream": stream}
    asked = in_time(lambda: completions.create(**question, extra_body=context(user, "b"))).parse()
    if stream:
        list(asked)
    assert "$10,000" in upstream.last_chat().system_text()
    assert "memory_context" not in upstream.last_chat().json()


def test_another_user_gets_nothing(shared_product: Product, upstream: RecordingUpstream) -> None:
    shared_product.chat(BUDGET, "teller")
    assert shared_product.flush("teller") == {"pending": 0, "failed": 0}
    for shape in SHAPES:
        answer = shared_product.ask(QUESTION, "stranger", shape=shape)
        assert answer.headers["x-memory-status"] == "empty"
        assert "$10,000" not in upstream.last_chat().body.decode()
        assert shared_product.ask(QUESTION, "teller", shape=shape).headers["x-memory-status"] == "used"
        assert "$10,000" in shape.note(upstream.last_chat().body, QUESTION)
    assert shared_product.memories("stranger") == []


@pytest.mark.parametrize("stream", [False, True])
def test_told_in_a_response_is_in_the_next(shared_product: Product, upstream: RecordingUpstream, stream: bool) -> None:
    user = f"responses-{stream}"
    client = openai.OpenAI(
        base_url=f"{shared_product.url}/v1", api_key="k", max_retries=0, default_headers={"x-authz-user-id": user}
    )
    told: Any = client.responses.create(model="m", input=BUDGET, stream=stream, instructions="Be brief.")
    if stream:
        events = list(told)
        assert [events[0].type, events[-1].type] == ["response.created", "response.completed"]
    eventually(lambda: known(shared_product, user, BUDGET))
    shared_product.flush(user)

    def asked(question: str, **more: Any) -> Any:
        options: Any = {"model": "m", "input": question, "extra_body": {"memory_config": {"profile": False}}, **more}
        return in_time(lambda: client.responses.with_raw_response.create(**options)).parse()

    first = asked(QUESTION)
    received: Any = upstream.last_chat().json()
    assert "$10,000" in received["input"]
    assert received["input"].endswith(f"\n\n{QUESTION}")
    assert received == {"model": "m", "input": received["input"]}
    asked("And what is my budget in all?", previous_response_id=first.id)
    assert "$10,000" not in upstream.last_chat().body.decode(), "it stands in the chain already"


@pytest.mark.parametrize("stream", [False, True])
def test_a_secret_is_in_no_file(shared_product: Product, upstream: RecordingUpstream, stream: bool) -> None:
    key = f"sk-proj-{'aB3dE5fG7hJ9kL1mN2pQ4rS6tU8v'[:: -1 if stream else 1]}"
    upstream.answer = f"I will use {key} then."
    shared_product.chat(f"My API key is {key}. I live in Leeds with my terrier Biscuit.", "careless", stream=stream)
    assert shared_product.flush("careless") == {"pending": 0, "failed": 0}
    assert any("Biscuit" in memory for memory in shared_product.memories("careless"))
    files = [path for path in shared_product.data_dir.rglob("*") if path.is_file()]
    assert [path.name for path in files if key.encode() in path.read_bytes()] == []


def rows_with(product: Product, user_id: str, words: str) -> list[dict[str, object]]:
    """Straight from Milvus, with the fields of vLLM Semantic Router's collection."""
    client = pymilvus.MilvusClient(unix_target(product.run_folder / "milvus.sock"))
    try:
        found = client.query(
            "agentic_memory",
            filter=f'user_id == "{user_id}" and content like "%{words}%"',
            output_fields=["user_id", "content", "created_at"],
            consistency_level="Strong",
        )
        return [dict(row) for row in found]
    finally:
        client.close()


def test_what_was_said_is_found_verbatim_and_in_no_note(shared_product: Product, upstream: RecordingUpstream) -> None:
    """Where clients of vLLM Semantic Router look for it."""
    user, said = "quokka", "Which quokka lanterns drift past the viaduct"
    answer = shared_product.chat(said, user)
    (row,) = eventually(lambda: rows_with(shared_product, user, said))
    answered_at = parsedate_to_datetime(answer.headers["date"]).timestamp()
    assert (row["user_id"], float(str(row["created_at"]))) == (user, pytest.approx(answered_at, abs=60))
    assert rows_with(shared_product, "somebody-else", said) == []
    assert not [one for one in shared_product.memories(user) if "lanterns" in one]
    shared_product.ask("What do you know of my quokka lanterns?", user, session_id="another")
    assert said not in upstream.last_chat().body.decode()
    httpx.delete(f"{shared_product.api}/v1/memory", params={"user_id": user}, timeout=30).raise_for_status()
    assert rows_with(shared_product, user, said) == []


def test_a_secret_is_never_among_the_words(shared_product: Product) -> None:
    shared_product.chat("zork, my locker code is 9876", "said-secret")
    eventually(lambda: rows_with(shared_product, "said-secret", "zork"))
    assert rows_with(shared_product, "said-secret", "9876") == []


def test_without_identity_the_upstream_receives_the_clients_bytes(
    shared_product: Product, upstream: RecordingUpstream
) -> None:
    url = f"{shared_product.url}/v1/chat/completions"
    headers = {"content-type": "application/json"}
    answer = httpx.post(url, content=ODD_JSON, headers=headers, timeout=30)
    assert (answer.status_code, upstream.last_chat().body) == (200, ODD_JSON)
    assert not [name for name in answer.headers if name.startswith("x-memory")]
    ours = b',"memory_context":{"user_id":"bytes"}}'
    httpx.post(url, content=ODD_JSON[:-1] + ours, headers=headers, timeout=30)
    assert upstream.last_chat().body == ODD_JSON, "with it, only our fields go"
    for user in ("", "listener"):
        upstream.streamed.clear()
        streamed = shared_product.chat("Tell me something long about me.", user, stream=True)
        assert streamed.content == b"".join(upstream.streamed)


@pytest.mark.full("ten thousand messages")
@pytest.mark.parametrize(("path", "member"), [("/v1/chat/completions", "messages"), ("/v1/responses", "input")])
def test_a_history_of_ten_thousand_messages_gets_through(
    shared_product: Product, upstream: RecordingUpstream, path: str, member: str
) -> None:
    roles = ("user", "assistant")
    said = [{"role": roles[n % 2], "content": f"Statement {n} of a very long talk."} for n in range(10_001)]
    body = {"model": "m", member: said, "memory_config": {}}
    headers = {"x-authz-user-id": "talkative"}
    answer = httpx.post(f"{shared_product.url}{path}", json=body, headers=headers, timeout=60)
    assert answer.status_code == 200
    received: Any = upstream.last_chat().json()
    assert "memory_config" not in received
    assert received[member][-1] == said[-1]


@pytest.mark.soak("what a small model says depends on the processor")
def test_a_real_model_s_own_responses_api_follows_the_note(tmp_path: Path) -> None:
    """llama.cpp's server, which takes no `previous_response_id`: it answers that itself. Its events lack indices."""
    with running_product(tmp_path / "data") as product:
        client = openai.OpenAI(base_url=f"{product.url}/v1", api_key="k", default_headers={"x-authz-user-id": "ada"})
        client.responses.create(model="local", input=BUDGET, max_output_tokens=16)
        eventually(lambda: known(product, "ada", BUDGET))
        product.flush("ada")
        options: Any = {"model": "local", "input": QUESTION, "temperature": 0, "max_output_tokens": 40}
        plain = in_time(lambda: client.responses.with_raw_response.create(**options)).parse()
        assert "10,000" in plain.output_text
        events: Any = in_time(lambda: client.responses.with_raw_response.create(**options, stream=True)).parse()
        assert "10,000" in "".join(event.delta for event in events if event.type == "response.output_text.delta")
        with pytest.raises(openai.BadRequestError, match="previous_response_id"):
            client.responses.create(**options, previous_response_id=plain.id)
