"""Answers of `POST /v1/messages` as vLLM writes them: blocks, messages, and the events of a stream."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

PATH = "/v1/messages"
Item = dict[str, Any]


def text_block(text: str) -> Item:
    return {"type": "text", "text": text}


def thinking_block(text: str) -> Item:
    return {"type": "thinking", "thinking": text, "signature": "s"}


def tool_block(name: str, arguments: Item | None = None, call_id: str = "toolu_1") -> Item:
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments or {}}


def message_object(content: Sequence[Item], *, message_id: str = "msg_1", stop_reason: str = "") -> Item:
    has_calls = any(block["type"] == "tool_use" for block in content)
    return {
        "id": message_id,
        "type": "message",
        "role": "assistant",
        "content": list(content),
        "model": "m",
        "stop_reason": stop_reason or ("tool_use" if has_calls else "end_turn"),
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }


def message_events(message: Item) -> list[bytes]:
    """The events of that message, in order, each as it goes over the wire."""
    begun = {**message, "content": [], "stop_reason": None}
    events: list[Item] = [{"type": "message_start", "message": begun}, {"type": "ping"}]
    for index, block in enumerate(message["content"]):
        events += _block_events(index, block)
    delta = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    events.append({"type": "message_delta", "delta": delta, "usage": message["usage"]})
    return [sent_event(event) for event in [*events, {"type": "message_stop"}]]


def sent_event(event: Item) -> bytes:
    return f"event: {event['type']}\ndata: {json.dumps(event, ensure_ascii=False)}\n\n".encode()


def error_event() -> bytes:
    return sent_event({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})


def _block_events(index: int, block: Item) -> list[Item]:
    match block["type"]:
        case "text":
            begun, kind, member, whole = {**block, "text": ""}, "text_delta", "text", block["text"]
        case "thinking":
            begun, kind, member, whole = {**block, "thinking": ""}, "thinking_delta", "thinking", block["thinking"]
        case _:
            begun, kind = {**block, "input": {}}, "input_json_delta"
            member, whole = "partial_json", json.dumps(block.get("input", ""))
    pieces = [whole[at : at + 7] for at in range(0, len(whole), 7)]
    deltas = [{"type": "content_block_delta", "index": index, "delta": {"type": kind, member: one}} for one in pieces]
    return [
        {"type": "content_block_start", "index": index, "content_block": begun},
        *deltas,
        {"type": "content_block_stop", "index": index},
    ]
