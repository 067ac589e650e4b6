"""The tool calls and results that a request brings back to the model, for the conversation record.

Pure. Read from the end of the conversation: the results after the last calls, and those calls, if the client sends them
again (with a conversation stored by the server it does not). Texts are cut; nothing here is ever learnt from.
"""

from __future__ import annotations

from dataclasses import replace

import msgspec

from memory.chat.completions import TOOL_ROLES, ChatRequest, Content, text_of
from memory.chat.json_spans import UNREADABLE, NotJson
from memory.chat.messages import TOOL_CALL, TOOL_RESULT
from memory.model import Role, ToolMessage

ITEMS_MAX = 100  # looked at, from the end; a request brings a few
CONTENT_CHARACTERS_MAX = 5_000  # more than what is stored of a text, so that no part of a secret is at its end

_NULL = msgspec.Raw(b"null")


class _Called(msgspec.Struct, gc=False):
    name: str = ""
    arguments: msgspec.Raw = _NULL
    input: msgspec.Raw = _NULL


class _Call(msgspec.Struct, gc=False):
    id: str = ""
    function: _Called | None = None
    custom: _Called | None = None


class _Item(msgspec.Struct, gc=False):
    """A message of chat completions, an item of Responses, or a message of Messages or one of its blocks."""

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
    id: str | None = None
    tool_use_id: str | None = None


_ITEM = msgspec.json.Decoder(_Item)
_BLOCKS = msgspec.json.Decoder(list[_Item])
_CONTENT = msgspec.json.Decoder(Content)


def tool_messages(request: ChatRequest) -> tuple[ToolMessage, ...]:
    """The last calls, as far as the request has them, and their results, in order; none if it cannot be read."""
    if request.conversation is None:
        return ()
    results: list[ToolMessage] = []
    calls: list[ToolMessage] = []
    try:
        for start, end in reversed(request.shape.spans(request)[-ITEMS_MAX:]):
            item = _ITEM.decode(memoryview(request.text)[start:end])
            called, brought = _calls_of(item), _results_of(item)
            if called:
                calls = called + calls
            elif brought and not calls:
                results = brought + results
            else:
                break
    except (*UNREADABLE, NotJson):
        return ()
    names = {call.call_id: call.name for call in calls if call.call_id}
    return (*calls, *(replace(one, name=one.name or names.get(one.call_id, "")) for one in results))


def _calls_of(item: _Item) -> list[ToolMessage]:
    if item.role == Role.ASSISTANT:
        named = [(call.id, call.function or call.custom) for call in item.tool_calls or ()]
        named += [("", item.function_call)] if item.function_call else []
        named += [(b.id or "", _Called(b.name or "", input=b.input)) for b in _blocks(item) if b.type == TOOL_CALL]
        return [_call(call_id, called) for call_id, called in named if called is not None]
    if item.type is not None and item.type.endswith("_call"):
        called = _Called(item.name or item.type.removesuffix("_call"), item.arguments, item.input)
        return [_call(item.call_id or "", called)]
    return []


def _call(call_id: str, called: _Called) -> ToolMessage:
    given = called.arguments if bytes(called.arguments) != b"null" else called.input
    return ToolMessage(called.name, _text(given), call_id)


def _results_of(item: _Item) -> list[ToolMessage]:
    if item.role in TOOL_ROLES:
        return [ToolMessage(item.name or "", _text(item.content), item.tool_call_id or "", is_result=True)]
    if item.type is not None and item.type.endswith("_call_output"):
        return [ToolMessage(item.name or "", _text(item.output), item.call_id or "", is_result=True)]
    return [
        ToolMessage("", _text(block.content), block.tool_use_id or "", is_result=True)
        for block in _blocks(item)
        if item.role == Role.USER and block.type == TOOL_RESULT
    ]


def _blocks(item: _Item) -> list[_Item]:
    """The blocks of a message that has calls or results among them."""
    content = bytes(item.content)
    has_any = content.startswith(b"[") and (TOOL_CALL.encode() in content or TOOL_RESULT.encode() in content)
    return _BLOCKS.decode(content) if has_any else []


def _text(raw: msgspec.Raw) -> str:
    """A string or parts with text as text, anything else as its JSON; cut."""
    try:
        return text_of(_CONTENT.decode(raw))[:CONTENT_CHARACTERS_MAX]
    except UNREADABLE:
        return bytes(raw).decode(errors="replace")[:CONTENT_CHARACTERS_MAX]
