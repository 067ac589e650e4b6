"""The tool calls and results that a request brings back to the model, for the conversation record.

Pure. Read from the end of the conversation: the results after the last calls, and those calls, if the client sends them
again (with a conversation stored by the server it does not). Texts are cut; nothing here is ever learnt from.
"""

from __future__ import annotations

import msgspec

from memory.chat.completions import ChatRequest, Content, text_of
from memory.chat.json_spans import NotJson, items_of
from memory.model import Role, ToolMessage

ITEMS_MAX = 100  # looked at, from the end; a request brings a few
CONTENT_CHARACTERS_MAX = 5_000  # more than what is stored of a text, so that no part of a secret is at its end

_NULL = msgspec.Raw(b"null")
_UNREADABLE = (msgspec.DecodeError, RecursionError)
_RESULT_ROLES = ("tool", "function")


class _Called(msgspec.Struct, gc=False):
    name: str = ""
    arguments: msgspec.Raw = _NULL
    input: msgspec.Raw = _NULL


class _Call(msgspec.Struct, gc=False):
    id: str = ""
    function: _Called | None = None
    custom: _Called | None = None


class _Item(msgspec.Struct, gc=False):
    """A message of chat completions, or an item of Responses."""

    role: str | None = None
    type: str | None = None
    content: msgspec.Raw = _NULL
    tool_calls: list[_Call] | None = None
    function_call: _Called | None = None
    tool_call_id: str | None = None
    name: str | None = None
    call_id: str | None = None
    arguments: msgspec.Raw = _NULL
    input: msgspec.Raw = _NULL
    output: msgspec.Raw = _NULL


_ITEM = msgspec.json.Decoder(_Item)
_CONTENT = msgspec.json.Decoder(Content)


def tool_messages(request: ChatRequest) -> tuple[ToolMessage, ...]:
    """The last calls, as far as the request has them, and their results, in order; none if it cannot be read."""
    member = request.member("messages" if request.shape.is_bound_by_templates else "input")
    if member is None or request.text[member.value] != ord("["):
        return ()
    try:
        spans = items_of(request.text, member.value, member.end)
        items = [_ITEM.decode(memoryview(request.text)[start:end]) for start, end in spans[-ITEMS_MAX:]]
    except (*_UNREADABLE, NotJson):
        return ()
    results: list[ToolMessage] = []
    calls: list[ToolMessage] = []
    for item in reversed(items):
        called = _calls_of(item)
        result = _result_of(item)
        if called:
            calls = called + calls
        elif result is not None and not calls:
            results.insert(0, result)
        else:
            break
    names = {call.call_id: call.name for call in calls if call.call_id}
    return (*calls, *(_named(result, names.get(result.call_id, "")) for result in results))


def _calls_of(item: _Item) -> list[ToolMessage]:
    if item.role == Role.ASSISTANT:
        named = [(call.id, call.function or call.custom) for call in item.tool_calls or ()]
        named += [("", item.function_call)] if item.function_call else []
        return [_call(call_id, called) for call_id, called in named if called is not None]
    if item.type is not None and item.type.endswith("_call"):
        called = _Called(item.name or item.type.removesuffix("_call"), item.arguments, item.input)
        return [_call(item.call_id or "", called)]
    return []


def _call(call_id: str, called: _Called) -> ToolMessage:
    given = called.arguments if bytes(called.arguments) != b"null" else called.input
    return ToolMessage(called.name, _text(given), call_id)


def _result_of(item: _Item) -> ToolMessage | None:
    if item.role in _RESULT_ROLES:
        return ToolMessage(item.name or "", _text(item.content), item.tool_call_id or "", is_result=True)
    if item.type is not None and item.type.endswith("_call_output"):
        return ToolMessage(item.name or "", _text(item.output), item.call_id or "", is_result=True)
    return None


def _named(result: ToolMessage, name: str) -> ToolMessage:
    return ToolMessage(result.name or name, result.content, result.call_id, is_result=True)


def _text(raw: msgspec.Raw) -> str:
    """A string or parts with text as text, anything else as its JSON; cut."""
    try:
        return text_of(_CONTENT.decode(raw))[:CONTENT_CHARACTERS_MAX]
    except _UNREADABLE:
        return bytes(raw).decode(errors="replace")[:CONTENT_CHARACTERS_MAX]


__all__ = ["CONTENT_CHARACTERS_MAX", "tool_messages"]
