"""Answers of `POST /v1/responses` as vLLM writes them: items, response objects, and the events of a stream."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

PATH = "/v1/responses"
Item = dict[str, Any]


def text_item(text: str) -> Item:
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": None}
    return {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [part]}


def refusal_item(text: str) -> Item:
    return {**text_item(""), "content": [{"type": "refusal", "refusal": text}]}


def reasoning_item(text: str) -> Item:
    content = [{"type": "reasoning_text", "text": text}]
    return {"id": "rs_1", "type": "reasoning", "summary": [], "content": content, "status": None}


def call_item(name: str, arguments: str = "{}", call_id: str = "call_1") -> Item:
    return {
        "id": f"fc_{call_id}",
        "type": "function_call",
        "status": "completed",
        "call_id": call_id,
        "name": name,
        "arguments": arguments,
    }


def response_object(output: Sequence[Item], *, response_id: str = "resp_1", status: str = "completed") -> Item:
    return {
        "id": response_id,
        "object": "response",
        "created_at": 1,
        "status": status,
        "model": "m",
        "output": list(output),
        "instructions": None,
        "metadata": None,
        "parallel_tool_calls": True,
        "temperature": 0.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "error": {"code": "server_error", "message": "it broke"} if status == "failed" else None,
        "incomplete_details": {"reason": "max_output_tokens"} if status == "incomplete" else None,
        "usage": {
            "input_tokens": 1,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": 1,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 2,
        },
    }


def event_stream(response: Item, *, is_output_in_the_end: bool = True) -> list[bytes]:
    """The events of that response, in order, each as it goes over the wire."""
    begun = {
        **response,
        "status": "in_progress",
        "output": [],
        "error": None,
        "incomplete_details": None,
        "usage": None,
    }
    events: list[Item] = [
        {"type": "response.created", "response": begun},
        {"type": "response.in_progress", "response": begun},
    ]
    for index, item in enumerate(response["output"]):
        events += _item_events(index, item)
    whole = response if is_output_in_the_end else {**response, "output": []}
    events.append({"type": f"response.{response['status']}", "response": whole})
    payloads = (json.dumps({**event, "sequence_number": n}, ensure_ascii=False) for n, event in enumerate(events))
    return [
        f"event: {event['type']}\ndata: {payload}\n\n".encode() for event, payload in zip(events, payloads, strict=True)
    ]


def _item_events(index: int, item: Item) -> list[Item]:
    where = {"output_index": index, "item_id": item["id"]}
    begun = {**item, "status": "in_progress", **({"content": []} if "content" in item else {"arguments": ""})}
    events: list[Item] = [{"type": "response.output_item.added", "output_index": index, "item": begun}]
    if item["type"] == "function_call":
        deltas = [item["arguments"][:3], item["arguments"][3:]]
        events += [{"type": "response.function_call_arguments.delta", **where, "delta": one} for one in deltas]
        done = {"arguments": item["arguments"], "name": item["name"]}
        events.append({"type": "response.function_call_arguments.done", **where, **done})
    for number, part in enumerate(item.get("content", ())):
        events += _part_events({**where, "content_index": number}, part)
    return [*events, {"type": "response.output_item.done", "output_index": index, "item": item}]


def _part_events(where: Item, part: Item) -> list[Item]:
    kind = part["type"]
    name = "text" if kind != "refusal" else "refusal"
    text = part[name]
    pieces = [text[at : at + 7] for at in range(0, len(text), 7)]
    more = {"logprobs": []} if kind == "output_text" else {}
    return [
        {"type": "response.content_part.added", **where, "part": {**part, name: ""}},
        *({"type": f"response.{kind}.delta", **where, "delta": piece, **more} for piece in pieces),
        {"type": f"response.{kind}.done", **where, name: text, **more},
        {"type": "response.content_part.done", **where, "part": part},
    ]
