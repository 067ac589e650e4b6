"""Sessions through the whole product: their record, and summaries: asked for in a new chat, and gone when forgotten."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx
from product import Product, eventually
from upstream import RecordingUpstream

BOAT = (
    "I want to buy a small sailing boat this year.",
    "We plan to sail around Rügen with my brother Nils.",
    "How much does a berth in Stralsund cost?",
)
KITCHEN = (
    "Our kitchen needs new cupboards.",
    "We decided on oak fronts and a white worktop.",
    "Which lamps go with oak?",
)
LAST_YEAR = time.gmtime().tm_year - 1
IN_MAY, IN_MARCH = f"{LAST_YEAR}-05-12T10:00:00Z", f"{LAST_YEAR}-03-20T10:00:00Z"


TOOLS = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}]
CALL = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Köln"}'}}
CALLING = {"role": "assistant", "content": None, "tool_calls": [CALL]}
QUESTION = {"role": "user", "content": "Do I need my umbrella in Köln, where I live?"}
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


def api(product: Product, user_id: str, method: str, path: str, **more: Any) -> httpx.Response:
    """Under the proxy's own port."""
    headers = {"x-authz-user-id": user_id}
    answer = httpx.request(method, f"{product.url}/v1/memory/{path}", headers=headers, timeout=30, **more)
    answer.raise_for_status()
    return answer


def tell(product: Product, user_id: str, session_id: str, statements: tuple[str, ...], at: str) -> None:
    """A session of another time, as an application imports it, that has ended."""
    messages = [
        message
        for said in statements
        for message in ({"role": "user", "content": said}, {"role": "assistant", "content": "Good idea."})
    ]
    body = {"session_id": session_id, "at": at, "messages": messages}
    api(product, user_id, "POST", "turns", json=body)
    end(product, user_id, session_id)


def end(product: Product, user_id: str, session_id: str) -> None:
    product.flush(user_id)
    assert api(product, user_id, "POST", f"sessions/{session_id}/end").status_code == 202


def shown(product: Product, user_id: str, session_id: str) -> dict[str, Any]:
    return api(product, user_id, "GET", f"sessions/{session_id}").json()


def summary(product: Product, user_id: str, session_id: str, *, version: int = 1) -> dict[str, Any]:
    def current() -> dict[str, Any] | None:
        found = shown(product, user_id, session_id)["summary"]
        return found if found and found["version"] == version else None

    return eventually(current)


def asked(product: Product, upstream: RecordingUpstream, user_id: str, question: str) -> tuple[str, str]:
    """What a new chat is given: memories, and summaries."""
    answer = product.chat(question, user_id, memory_config={"auto_store": False, "profile": False})
    assert answer.status_code == 200
    sent = json.loads(upstream.received[-1].body)
    text = "\n".join(one["content"] for one in sent["messages"] if one["role"] == "system")
    facts, _, summaries = text.partition("<past_conversations>")
    return facts, summaries


def test_a_question_about_a_past_conversation_gets_its_summary_and_a_question_for_a_fact_the_fact(
    shared_product: Product, upstream: RecordingUpstream
) -> None:
    tell(shared_product, "sailor", "boat", BOAT, IN_MAY)
    tell(shared_product, "sailor", "kitchen", KITCHEN, IN_MARCH)
    made = summary(shared_product, "sailor", "boat")
    summary(shared_product, "sailor", "kitchen")
    assert made["title"] == BOAT[0]
    assert BOAT[1] in made["text"]
    assert len(made["turn_ids"]) == 3

    _, in_may = asked(shared_product, upstream, "sailor", "What did we talk about in May?")
    assert f"[{LAST_YEAR}-05-12]" in in_may
    assert "Rügen" in in_may
    assert "cupboards" not in in_may
    _, topical = asked(
        shared_product, upstream, "sailor", "Remind me of what we planned in our chat about the kitchen."
    )
    assert "cupboards" in topical
    assert "sailing" not in topical
    _, latest = asked(shared_product, upstream, "sailor", "What did we discuss last time?")
    assert latest.index("sailing boat") < latest.index("cupboards")

    facts, summaries = asked(shared_product, upstream, "sailor", "What is my brother called?")
    assert "Nils" in facts
    assert summaries == ""
    facts, summaries = asked(shared_product, upstream, "stranger", "What did we talk about in May?")
    assert (facts, summaries) == ("", "")


def test_it_is_explained_and_shown(shared_product: Product, upstream: RecordingUpstream) -> None:
    tell(shared_product, "curious", "boat", BOAT, IN_MAY)
    made = summary(shared_product, "curious", "boat")
    answer = shared_product.chat("What did we talk about in May?", "curious", session_id="new")
    assert answer.headers["x-memory-status"] == "used"

    explained = shared_product.receipt(answer, "curious")
    assert made["id"] in json.dumps(explained["notes"])
    assert explained["signals"]["past_talk"]["summaries"] == 1
    given = eventually(lambda: shown(shared_product, "curious", "new")["notes"])
    contents = {memory["id"]: memory["content"] for note in given for memory in note["memories"]}
    assert BOAT[0] in contents[made["id"]]
    assert shown(shared_product, "curious", "boat")["status"] == "ended"
    command = [str(Path(sys.executable).parent / "memproxy"), "sessions", "show", "boat"]
    printed = subprocess.run(
        [*command, "--api", shared_product.api, "--user", "curious"], capture_output=True, text=True, check=True
    ).stdout
    assert f"summary: {BOAT[0]}" in printed


def test_a_session_that_goes_on_is_summarised_again_and_only_once(
    shared_product: Product, upstream: RecordingUpstream
) -> None:
    for said in BOAT:
        shared_product.chat(said, "returning", session_id="boat")
    end(shared_product, "returning", "boat")
    before = summary(shared_product, "returning", "boat")
    shared_product.chat("We decided on a berth in Greifswald.", "returning", session_id="boat")
    assert shown(shared_product, "returning", "boat")["summary"] == before
    assert shown(shared_product, "returning", "boat")["status"] == "open"
    end(shared_product, "returning", "boat")
    after = summary(shared_product, "returning", "boat", version=2)
    assert "Greifswald" in after["text"]
    _, latest = asked(shared_product, upstream, "returning", "What did we discuss last time?")
    assert latest.count("\n- [") == 1
    assert "Greifswald" in latest


def test_what_is_forgotten_is_in_no_summary_and_no_later_note(
    shared_product: Product, upstream: RecordingUpstream
) -> None:
    tell(shared_product, "private", "boat", BOAT, IN_MAY)
    first = summary(shared_product, "private", "boat")
    question = "What did we talk about in May?"
    _, given = asked(shared_product, upstream, "private", question)
    assert "Nils" in given
    found = httpx.get(f"{shared_product.api}/v1/memory", params={"user_id": "private"}, timeout=30).json()["memories"]
    (memory,) = [one for one in found if "Nils" in one["content"]]
    api(shared_product, "private", "DELETE", memory["id"])
    facts, given = asked(shared_product, upstream, "private", question)  # the same conversation, and its note
    assert "Nils" not in facts + given
    second = eventually(lambda: shown(shared_product, "private", "boat")["summary"])
    assert "Nils" not in second["title"] + second["text"]
    assert second["turn_ids"] != first["turn_ids"]

    api(shared_product, "private", "DELETE", "sessions/boat")
    assert asked(shared_product, upstream, "private", question) == ("", "")
    tell(shared_product, "private", "kitchen", KITCHEN, IN_MAY)
    summary(shared_product, "private", "kitchen")
    httpx.delete(f"{shared_product.api}/v1/memory", params={"user_id": "private"}, timeout=30).raise_for_status()
    shared_product.flush("private")
    assert asked(shared_product, upstream, "private", question) == ("", "")


def ask_with_tools(product: Product, messages: list[Any], user_id: str) -> None:
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
    ask_with_tools(shared_product, [QUESTION], "rain")
    upstream.message = {"role": "assistant", "content": "Yes, take it."}
    ask_with_tools(
        shared_product, [QUESTION, CALLING, {"role": "tool", "tool_call_id": "call_1", "content": "rain"}], "rain"
    )
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
