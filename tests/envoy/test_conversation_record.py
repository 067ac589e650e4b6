"""The record of real chats: tool loops and answers, read back under the proxy's own port, each user their own."""

from __future__ import annotations

import json
from typing import Any

import httpx
from product import Product, eventually
from upstream import RecordingUpstream

TOOLS = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}]
CALL = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Köln"}'}}
CALLING = {"role": "assistant", "content": None, "tool_calls": [CALL]}
QUESTION = {"role": "user", "content": "Do I need my umbrella in Köln, where I live?"}
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


def ask(product: Product, messages: list[Any], user_id: str) -> None:
    body = {
        "model": "m",
        "messages": messages,
        "tools": TOOLS,
        "memory_context": {"user_id": user_id, "session_id": "trip/1", "agent_id": "planner"},
    }
    headers = {"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"}
    httpx.post(f"{product.url}/v1/chat/completions", json=body, headers=headers, timeout=30).raise_for_status()


def test_a_chat_with_tools_is_read_back_message_by_message(
    shared_product: Product, upstream: RecordingUpstream
) -> None:
    upstream.message = CALLING
    ask(shared_product, [QUESTION], "rain")
    upstream.message = {"role": "assistant", "content": "Yes, take it."}
    ask(shared_product, [QUESTION, CALLING, {"role": "tool", "tool_call_id": "call_1", "content": "rain"}], "rain")
    with httpx.Client(base_url=shared_product.url, headers={"x-authz-user-id": "rain"}, timeout=30) as proxy:

        def recorded() -> list[dict[str, Any]]:
            answer = proxy.get("/v1/memory/messages", params={"trace_id": TRACE})
            assert answer.status_code == 200, answer.text
            messages: list[dict[str, Any]] = answer.json()["messages"]
            return messages if len(messages) == 4 else []

        messages = eventually(recorded)
        assert [(m["source_type"], m["target_type"], m["type"], m["content"]) for m in messages] == [
            ("user", "agent", "input", QUESTION["content"]),
            ("agent", "tool", "output", CALL["function"]["arguments"]),
            ("tool", "agent", "input", "rain"),
            ("agent", "user", "output", "Yes, take it."),
        ]
        assert {(m["conversation_id"], m["trace_id"]) for m in messages} == {("trip/1", TRACE)}
        assert [m["source"] for m in messages] == ["rain", "planner", "weather", "planner"]
        shown = proxy.get("/v1/memory/messages", params={"conversation_id": "trip/1", "agent_id": "planner"}).json()
        assert shown["messages"] == messages
        (session,) = proxy.get("/v1/memory/sessions").json()["sessions"]
        assert (session["id"], session["title"], session["turns"]) == ("trip/1", QUESTION["content"], 1)
    with httpx.Client(base_url=shared_product.api, headers={"x-authz-user-id": "sun"}, timeout=30) as api:
        assert api.get("/v1/sessions").json()["sessions"] == []
        assert api.get("/v1/sessions/trip%2F1").status_code == 404
    with httpx.Client(base_url=shared_product.api, headers={"x-authz-user-id": "rain"}, timeout=30) as api:
        assert len(api.get("/v1/conversations/trip%2F1/messages").json()["messages"]) == 4
        shared_product.flush("rain")
        assert not any("rain" in json.dumps(m["evidence"]) for m in api.get("/v1/memory").json()["memories"])
        deleted = api.delete("/v1/sessions/trip%2F1").json()["deleted"]
        assert deleted["turns"] == 1
        assert api.get("/v1/memory").json()["memories"] == []
        assert api.get("/v1/memory/messages").json()["messages"] == []
