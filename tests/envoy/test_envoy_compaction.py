"""Long conversations through the whole product: compacted where it is asked for, and only then; the record stays."""

from __future__ import annotations

import json
from typing import Any

import httpx
from long_chats import FIRST
from product import Product, eventually
from upstream import RecordingUpstream

TURNS = 60
Messages = list[dict[str, Any]]


def history(turns: int = TURNS) -> Messages:
    """The beginning of a long chat, with a tool call in its middle."""
    messages = FIRST.messages()[: 1 + 2 * turns]
    call = {"id": "call-1", "type": "function", "function": {"name": "look_up", "arguments": "{}"}}
    messages[21:22] = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call-1", "content": "Found."},
        messages[21],
    ]
    return messages


def chat(product: Product, user: str, messages: Messages, config: dict[str, Any], **headers: str) -> httpx.Response:
    body = {"model": "m", "messages": messages, "memory_context": {"user_id": user}, "memory_config": config}
    answer = httpx.post(f"{product.url}/v1/chat/completions", json=body, headers=headers, timeout=30)
    assert answer.status_code == 200
    return answer


def receipt(product: Product, answer: httpx.Response, user_id: str) -> Any:
    """It is written behind the request, so it may come a moment after the reply."""
    url = f"{product.api}/v1/memory/receipts/{answer.headers['x-memory-receipt']}"

    def got() -> Any:
        found = httpx.get(url, headers={"x-authz-user-id": user_id}, timeout=10)
        return found.json() if found.status_code == 200 else None

    return eventually(got)


def asked(text: str) -> Messages:
    return [{"role": "user", "content": text}]


def state_of(messages: Messages) -> dict[str, Any]:
    """The state inside the client's system message; {} for a history that went through in full."""
    _, _, state = messages[0]["content"].partition("<conversation_so_far>")
    found: dict[str, Any] = json.loads(state[state.index("{") : state.rindex("}") + 1]) if state else {}
    return found


def compacted(
    product: Product, upstream: RecordingUpstream, user: str, question: str
) -> tuple[httpx.Response, Messages]:
    """The reply to a compacted request, and the messages that the upstream got for it."""
    config = {"compact": True}
    answered = {"role": "assistant", "content": "With oil."}
    messages = [*history(), *asked("How do I seal the deck?"), answered, *asked(question)]

    def tried() -> Any:
        chat(product, user, messages[:-2], config)  # a busy machine may pass it on before it is handed over
        answer = chat(product, user, messages, config)
        sent: Messages = json.loads(upstream.last_chat().body)["messages"]
        return (answer, sent) if state_of(sent) else None

    found: tuple[httpx.Response, Messages] = eventually(tried)
    return found


def test_a_long_history_is_replaced_by_its_state_and_the_last_turns(
    shared_product: Product, upstream: RecordingUpstream
) -> None:
    user = "long talker"
    answer, sent = compacted(shared_product, upstream, user, "And what is the budget for the workshop?")
    assert sent[0]["content"].startswith(history()[0]["content"])
    kept = [message for message in sent[1:] if not str(message["content"]).startswith("<memory>")]
    assert kept[-1]["content"] == "And what is the budget for the workshop?"
    full = [*history(), *asked("How do I seal the deck?"), {"role": "assistant", "content": "With oil."}, kept[-1]]
    assert kept == full[-len(kept) :], "the last turns, verbatim"
    assert len(kept) < 20
    assert "7,400" in json.dumps(state_of(sent), ensure_ascii=False)
    shown = receipt(shared_product, answer, user)
    assert shown["signals"]["tokens_saved"] > 3_000
    assert shown["signals"]["compacted_messages"] > 80
    record = httpx.get(f"{shared_product.api}/v1/memory/export", params={"user_id": user}, timeout=30).text
    assert "conversation_so_far" not in record


def test_nobody_is_compacted_who_did_not_ask_for_it_and_a_header_may_ask(
    shared_product: Product, upstream: RecordingUpstream
) -> None:
    user = "switcher"
    compacted(shared_product, upstream, user, "And what does the deposit cost?")
    messages = [*history(), *asked("How do I seal the deck?"), *asked("And then?")]
    for config, headers, is_compacted in (
        ({}, {}, False),
        ({"compact": False}, {"x-memory-compact": "on"}, False),
        ({"compact": True, "auto_store": False}, {}, False),
        ({}, {"x-memory-compact": "on"}, True),
        ({}, {"x-memory-compact": "off"}, False),
    ):
        chat(shared_product, user, messages, config, **headers)
        last = upstream.last_chat()
        sent = last.json()["messages"]
        assert bool(state_of(sent)) is is_compacted, (config, headers)  # type: ignore[arg-type]
        assert "x-memory-compact" not in last.headers
        assert is_compacted or [m for m in sent if m["role"] == "tool"], "tool results go along with the rest"  # type: ignore[attr-defined]


def test_erasing_a_user_erases_the_states_of_their_conversations(
    shared_product: Product, upstream: RecordingUpstream
) -> None:
    user = "regretful talker"
    compacted(shared_product, upstream, user, "And who has the key?")
    url = f"{shared_product.api}/v1/memory"
    assert httpx.delete(url, params={"user_id": user}, timeout=60).status_code == 200
    messages = [*history(), *asked("How do I seal the deck?"), *asked("And who was that?")]
    chat(shared_product, user, messages, {"compact": True})
    assert not state_of(json.loads(upstream.last_chat().body)["messages"]), (
        "the state went, the full history goes through"
    )
