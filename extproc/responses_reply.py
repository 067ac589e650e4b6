"""Parses replies of the Responses API, a JSON object or an event stream that ends with it, into one text.

| the reply                                                | status  | text                      |
|----------------------------------------------------------|---------|---------------------------|
| `completed`, or `incomplete` (length, content filter)    | closed  | all of its output text    |
| a tool call that the client has to answer                | closed  | none: no final answer yet |
| a refusal, or nothing but reasoning                      | closed  | none                      |
| `failed`, `cancelled`, or an error                       | failed  | none                      |
| `queued`: the answer is fetched later                    | closed  | none                      |
| a stream that ends before its last event                 | aborted | none                      |

The last event contains the whole response; if a server omits its output there, earlier events are used. Reasoning is
not part of the answer. Nothing here raises, whatever the input.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from extproc.reply import PART_BYTES_MAX, Reply, ReplyShape, decoded, events, without_reasoning
from memory.model import TurnStatus

# Calls that the client answers; for others ("web_search_call", "mcp_call") the server has the result.
CLIENT_CALLS = frozenset(
    "function_call custom_tool_call computer_call local_shell_call shell_call apply_patch_call "
    "mcp_approval_request".split()
)
_NULL = msgspec.Raw(b"null")
_SPACES = frozenset(" \t\r\n")


class _Part(msgspec.Struct, gc=False):
    type: str | None = None
    text: str | None = None


class _Item(msgspec.Struct, gc=False):
    type: str | None = None
    content: msgspec.Raw = _NULL


class _Response(msgspec.Struct, gc=False):
    id: str | int | None = None
    status: str | None = None
    output: list[_Item] | None = None
    error: msgspec.Raw = _NULL
    object: str | None = None

    @property
    def name(self) -> str:
        """Its id, by which a request may continue it; "" for a number, which none can name."""
        return self.id if isinstance(self.id, str) else ""

    @property
    def has_failed(self) -> bool:
        has_error = bytes(self.error) != b"null" or self.object == "error"
        return has_error or self.status in ("failed", "cancelled")


class _Event(msgspec.Struct, gc=False):
    """One event. Most contain a piece of text; of unused kinds only the type is read."""

    type: str | None = None
    response: _Response | None = None
    item: _Item | None = None
    delta: msgspec.Raw = _NULL
    error: msgspec.Raw = _NULL


_RESPONSE = msgspec.json.Decoder(_Response)
_EVENT = msgspec.json.Decoder(_Event)
_PARTS = msgspec.json.Decoder(list[_Part])
_TEXT = msgspec.json.Decoder(str)

_COMPLETE = ("response.completed", "response.incomplete", "response.failed", "response.cancelled")


def _from_json(body: bytes) -> Reply:
    response = decoded(_RESPONSE, body)
    if response is None:
        return Reply(TurnStatus.CLOSED, response_id=_id_at_start(body))
    return _reply(response, response.output or (), is_done=False)


def _from_stream(body: bytes) -> Reply:
    seen = _Stream()
    for payload in events(body):
        if payload.strip() == b"[DONE]":
            return seen.reply(_Response(status="completed"))
        event = decoded(_EVENT, payload)
        if event is None:
            continue
        if event.type == "error" or (event.type is None and bytes(event.error) != b"null"):
            return Reply(TurnStatus.FAILED)
        if event.type in _COMPLETE and event.response is not None:
            return seen.reply(event.response)
        seen.add(event)
    return Reply(TurnStatus.ABORTED, response_id=seen.response_id)


RESPONSES_REPLIES = ReplyShape(_from_json, _from_stream)


@dataclass(slots=True)
class _Stream:
    response_id: str = ""
    items: list[_Item] = field(default_factory=list)
    pieces: list[str] = field(default_factory=list)  # text of the item that is not complete yet

    def add(self, event: _Event) -> None:
        match event.type:
            case "response.created" | "response.in_progress" if event.response is not None:
                self.response_id = event.response.name or self.response_id
            case "response.output_text.delta":
                self.pieces.append(decoded(_TEXT, bytes(event.delta)) or "")
            case "response.output_item.done" if event.item is not None:
                self.items.append(event.item)
                self.pieces.clear()

    def reply(self, response: _Response) -> Reply:
        response.id = response.name or self.response_id
        return _reply(response, response.output or self.items, is_done=True, unfinished="".join(self.pieces))


def _reply(response: _Response, output: Sequence[_Item], *, is_done: bool, unfinished: str = "") -> Reply:
    """`unfinished`: text without an item, used if no item has text."""
    if response.has_failed:
        return Reply(TurnStatus.FAILED, is_done=is_done, response_id=response.name)
    parts = [part for item in output if item.type == "message" for part in _parts(item)]
    texts = [part.text for part in parts if part.type == "output_text" and part.text]
    has_calls = any(item.type in CLIENT_CALLS for item in output)
    return Reply(
        TurnStatus.CLOSED,
        text="" if has_calls else without_reasoning("\n".join(texts) or unfinished),
        has_tool_calls=has_calls,
        is_done=is_done,
        response_id=response.name,
    )


def _id_at_start(body: bytes) -> str:
    """The id of a response of which the end is missing, if it stands before what is cut off."""
    decode = json.JSONDecoder().raw_decode
    text = body[:PART_BYTES_MAX].decode(errors="replace").lstrip()
    position = 1 if text.startswith("{") else len(text)
    try:
        while position < len(text):
            name, position = decode(text, _after_space(text, position))
            value, position = decode(text, _after_space(text, _after_space(text, position) + 1))
            if name == "id" and isinstance(value, str):
                return value
            position = _after_space(text, position) + 1
    except (ValueError, RecursionError):
        pass
    return ""


def _after_space(text: str, position: int) -> int:
    while text[position : position + 1] in _SPACES:
        position += 1
    return position


def _parts(item: _Item) -> list[_Part]:
    return decoded(_PARTS, bytes(item.content)) or []
