"""Users of a running product who leave something in every place where it keeps anything."""

from __future__ import annotations

import json
from typing import Any

import httpx
from product import Product


def call(product: Product, method: str, path: str, user: str, **more: Any) -> httpx.Response:
    params = {"user_id": user, **more.pop("params", {})}
    answer = httpx.request(method, f"{product.api}/v1/memory{path}", params=params, timeout=60, **more)
    assert answer.is_success, answer.text
    return answer


def live(product: Product, user: str, word: str) -> None:
    """Chats, streamed and not, with a tool; memories stated, superseded, added, corrected, forgotten; a profile line;
    an export and its import; sessions that ended; a call with an idempotency key.
    """
    product.chat(f"My parrot is called {word}.", user, session_id=f"s-{word}-1")
    product.chat(f"I live in {word} Street.", user, session_id=f"s-{word}-1", stream=True)
    product.flush(user)
    product.ask("What is my parrot called?", user, session_id=f"s-{word}-2")
    product.chat(f"I moved: I live in New {word} Road now.", user, session_id=f"s-{word}-2", stream=True)
    body = {
        "model": "m",
        "memory_context": {"user_id": user, "session_id": f"s-{word}-3"},
        "messages": [
            {"role": "user", "content": f"Look up {word}."},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "look", "arguments": f'"{word}"'}}
                ],
            },
            {"role": "tool", "tool_call_id": "c1", "content": f"{word} was found"},
        ],
    }
    httpx.post(f"{product.url}/v1/chat/completions", json=body, timeout=30)
    for text in (f"I first read {word} today.", f"And I like {word} tea."):
        answer = httpx.post(
            f"{product.url}/v1/responses",
            json={"model": "m", "input": text, "memory_context": {"user_id": user, "session_id": f"s-{word}-4"}},
            timeout=30,
        )
        assert answer.status_code < 500
    key = {"Idempotency-Key": f"k-{word}"}
    added = {"memories": [{"content": f"The user fears {word} storms."}, {"content": f"The user sells {word}s."}]}
    ids = call(product, "POST", "", user, json=added, headers=key).json()
    forgotten = json.dumps(ids)
    corrected = ids["ids"][1]
    call(product, "PATCH", f"/{corrected}", user, json={"content": "The user sells boats."})
    [earlier] = call(product, "GET", f"/{corrected}/history", user).json()["earlier"]
    assert word in earlier["content"]
    product.flush(user)
    memories = call(product, "GET", "", user, params={"status": "all"}).json()["memories"]
    assert any(word in one["content"] for one in memories), memories
    unwanted = next(one["id"] for one in memories if one["id"] != corrected)
    call(product, "DELETE", f"/{unwanted}", user)
    lines = call(product, "GET", "/export", user).content
    assert word in forgotten + lines.decode()
    call(product, "POST", f"/sessions/s-{word}-1/end", user)
