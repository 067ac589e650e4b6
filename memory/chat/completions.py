"""OpenAI chat completions: parses the conversation of a request body, inserts notes, and strips our own fields.

Our fields are the top-level `memory_context` and `memory_config`. All other bytes of the client's body are preserved:
white space, key order, the spelling of numbers, escapes, unknown keys. A body that is not a JSON object raises
`NotAChat` and is left to the upstream. Nothing is guessed: an invalid field of ours disables memory for the request,
both recall and learning.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec

from memory.chat.json_spans import Member, NotJson, Splice, edited, items_of, members_of, parsed, removals
from memory.model import MEMORY_TYPES, Conversation, Message, Note, Placement, RequestOptions, Role

CONTEXT = "memory_context"
CONFIG = "memory_config"
OUR_FIELDS = frozenset((CONTEXT, CONFIG))
UNKNOWN_KEY = f"{CONFIG}.unknown_key"  # the problem reported for an unknown key; the key itself is client text

RETRIEVAL_LIMIT_MAX = 200
TOKEN_BUDGET_MAX = 2_000
MESSAGES_MAX = 20_000  # a longer request is not a conversation that memory could help with

SYSTEM_ROLES = (Role.SYSTEM, "developer")
_TEXT_PARTS = ("text", "input_text", "output_text")
_TOOL_ROLES = ("tool", "function")
_EMPTY_LIST = re.compile(rb"\[\s*+\]")


class NotAChat(Exception):
    """The body is not a chat request and is passed on unchanged. `reason`: a metric label without content."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class MemoryContext:
    """`memory_context` as sent; "" for absent or null fields. `extproc.identity` validates the ids."""

    user_id: str = ""
    project_id: str = ""
    session_id: str = ""
    agent_id: str = ""


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A parsed request body, which is a JSON object.

    `conversation` is None unless `messages` is a non-empty list of messages as the API defines them; our fields can be
    stripped from such a body all the same. `problems` names our invalid fields ("memory_config.enabled"), never client
    text; with any problem, `options` disables memory, and a `context` with a problem is None.
    """

    body: bytes
    conversation: Conversation | None
    context: MemoryContext | None
    options: RequestOptions
    has_memory_fields: bool
    problems: tuple[str, ...]
    _text: bytes  # from `json_spans.parsed`: `body`, or a copy of the same length
    _members: tuple[Member, ...]


class ContentPart(msgspec.Struct, gc=False):
    """One part of a message's content; for parts other than text only the type is parsed."""

    type: str = "text"
    text: str | None = None


Content: TypeAlias = str | list[str | ContentPart] | None
"""The content of a message in JSON, in a request or a reply."""


class _WireMessage(msgspec.Struct, gc=False):
    role: str
    content: Content = None
    tool_calls: list[msgspec.Raw] | None = None
    function_call: dict[str, msgspec.Raw] | None = None


_MESSAGES = msgspec.json.Decoder(list[_WireMessage])
_FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ANY = msgspec.json.Decoder()
_UNREADABLE = (msgspec.DecodeError, RecursionError)


def read_chat_request(body: bytes) -> ChatRequest:
    """Parse a request body. Raises `NotAChat`: not_utf8, not_json, not_an_object, too_deep, too_many_members.

    Takes about 20 microseconds for 4 KB and tens of milliseconds for 20 MB: parse large bodies off the event loop.
    """
    try:
        text, members = parsed(body)
    except NotJson as error:
        raise NotAChat(error.reason) from None
    last = {member.name: member for member in members}  # of repeated names every server uses the last
    context, problems = _context(text, last.get(CONTEXT))
    options, more_problems = _options(text, last.get(CONFIG))
    problems += more_problems
    if CONTEXT in last and _value(body, last[CONTEXT]) != _value(text, last[CONTEXT]):
        context, problems = None, (CONTEXT,)  # lone surrogates: two such ids would become equal
    return ChatRequest(
        body=body,
        conversation=_conversation(text, last),
        context=context,
        options=RequestOptions(enabled=False, auto_store=False) if problems else options,
        has_memory_fields=CONTEXT in last or CONFIG in last,
        problems=problems,
        _text=text,
        _members=tuple(members),
    )


def insert_notes(request: ChatRequest, notes: Sequence[Note]) -> bytes:
    """The body without our fields and with the notes; the same object if there is nothing to change.

    Notes require a conversation. Notes with `before=None` are joined into one text, separated by blank lines, in order.
    """
    edits = removals(request._members, OUR_FIELDS)
    if notes:
        edits += _insertions(request, notes)
    return edited(request.body, edits)


def message_bytes(request: ChatRequest) -> list[memoryview]:
    """Each of the client's messages exactly as sent, in order; none without a conversation."""
    if request.conversation is None:
        return []
    body = memoryview(request.body)
    return [body[start:end] for start, end in _message_spans(request)]


def strip_memory_fields(body: bytes) -> bytes:
    """Any JSON object without our fields; the same object if it has none. Raises `NotAChat` as `read_chat_request`
    does.
    """
    try:
        return edited(body, removals(parsed(body)[1], OUR_FIELDS))
    except NotJson as error:
        raise NotAChat(error.reason) from None


def _conversation(text: bytes, last: Mapping[str, Member]) -> Conversation | None:
    if "messages" not in last:
        return None
    try:
        wire = _MESSAGES.decode(_value(text, last["messages"]))
    except _UNREADABLE:
        return None
    if not 0 < len(wire) <= MESSAGES_MAX:
        return None
    return Conversation(
        messages=tuple(map(_message, wire)),
        model=_string(text, last.get("model")),
        offers_tools=any(_is_filled_list(text, last.get(name)) for name in ("tools", "functions")),
        is_streamed="stream" in last and text.startswith(b"true", last["stream"].value),
    )


def text_of(content: Content) -> str:
    """The text of a message: its text parts, joined by newlines."""
    return content if isinstance(content, str) else "\n".join(_texts(content or ()))


def _message(wire: _WireMessage) -> Message:
    is_call = wire.role == Role.ASSISTANT and bool(wire.tool_calls or wire.function_call)
    return Message(wire.role, text_of(wire.content), is_tool_traffic=is_call or wire.role in _TOOL_ROLES)


def _texts(parts: Iterable[str | ContentPart]) -> Iterable[str]:
    for part in parts:
        if isinstance(part, str):
            yield part
        elif part.type in _TEXT_PARTS and part.text is not None:
            yield part.text


def _string(text: bytes, member: Member | None) -> str:
    if member is None or text[member.value] != ord('"'):
        return ""
    return str(_ANY.decode(_value(text, member)))


def _is_filled_list(text: bytes, member: Member | None) -> bool:
    return member is not None and text[member.value] == ord("[") and not _EMPTY_LIST.match(text, member.value)


def _value(text: bytes, member: Member) -> memoryview:
    return memoryview(text)[member.value : member.end]


# Our own fields


def _context(text: bytes, member: Member | None) -> tuple[MemoryContext | None, tuple[str, ...]]:
    values, problems = _known_fields(text, member, CONTEXT, _CONTEXT_RULES)
    if values is None or problems:
        return None, problems
    return MemoryContext(**values), ()


def _options(text: bytes, member: Member | None) -> tuple[RequestOptions, tuple[str, ...]]:
    """An unknown key is a problem here: `{"enable": false}` must not leave memory on."""
    values, problems = _known_fields(text, member, CONFIG, _CONFIG_RULES, unknown=(UNKNOWN_KEY,))
    if values is None or problems:
        return RequestOptions(), problems
    if "memory_types" in values:
        values["memory_types"] = tuple(values["memory_types"])
    if "placement" in values:
        values["placement"] = Placement(values["placement"])
    return RequestOptions(**values), ()


_Rules = Mapping[str, Callable[[object], bool]]


def _known_fields(
    text: bytes, member: Member | None, name: str, rules: _Rules, *, unknown: tuple[str, ...] = ()
) -> tuple[dict[str, Any] | None, tuple[str, ...]]:
    """The given values that follow their rules, and the names of those that do not. Null means "not given".

    Keys without a rule are ignored, or reported as the problem `unknown`.
    """
    if member is None or text.startswith(b"null", member.value):
        return None, ()
    try:
        fields = _FIELDS.decode(_value(text, member))
    except _UNREADABLE:
        return None, (name,)
    values: dict[str, Any] = {}
    problems = [] if fields.keys() <= rules.keys() else [*unknown]
    for key, is_right in rules.items():
        if key not in fields:
            continue
        try:
            value = _ANY.decode(fields[key])
        except _UNREADABLE:
            problems.append(f"{name}.{key}")
            continue
        if value is None:
            continue
        if is_right(value):
            values[key] = value
        else:
            problems.append(f"{name}.{key}")
    return values, tuple(problems)


def _is_bool(value: object) -> bool:
    return isinstance(value, bool)


def _is_string(value: object) -> bool:
    return isinstance(value, str)


def _is_count(most: int) -> Callable[[object], bool]:
    return lambda value: isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= most


def _is_share(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def _is_list_of_types(value: object) -> bool:
    return isinstance(value, list) and all(item in MEMORY_TYPES for item in value)


_CONTEXT_RULES: _Rules = dict.fromkeys(MemoryContext.__dataclass_fields__, _is_string)
_CONFIG_RULES: _Rules = {
    "enabled": _is_bool,
    "auto_store": _is_bool,
    "memory_types": _is_list_of_types,
    "retrieval_limit": _is_count(RETRIEVAL_LIMIT_MAX),
    "similarity_threshold": _is_share,
    "token_budget": _is_count(TOKEN_BUDGET_MAX),
    "placement": lambda value: value in tuple(Placement),
}


# Notes


def _insertions(request: ChatRequest, notes: Sequence[Note]) -> list[Splice]:
    assert request.conversation is not None, "a note needs a conversation"
    spans = _message_spans(request)
    merged = "\n\n".join(note.text for note in notes if note.before is None)
    edits: list[Splice] = []
    if merged and request.conversation.messages[0].role in SYSTEM_ROLES:
        edits.append(_appended(request._text, spans[0], merged))
    elif merged:
        edits.append(_system_message(spans[0][0], merged))
    for note in notes:
        if note.before is not None:
            assert 0 <= note.before < len(spans), "a note stands before one of the client's messages"
            edits.append(_system_message(spans[note.before][0], note.text))
    return edits


def _message_spans(request: ChatRequest) -> list[tuple[int, int]]:
    messages = next(member for member in reversed(request._members) if member.name == "messages")
    return items_of(request._text, messages.value, messages.end)


def _system_message(at: int, text: str) -> Splice:
    return Splice(at, at, b'{"role":"system","content":' + _quoted(text) + b"},")


def _appended(text: bytes, message: tuple[int, int], addition: str) -> Splice:
    """The splice that appends `addition` to the content of a message, whatever its form."""
    members = members_of(text, *message)
    content = next((member for member in reversed(members) if member.name == "content"), None)
    if content is None:
        end = members[-1].end
        return Splice(end, end, b',"content":' + _quoted(addition))
    inside = content.end - 1  # before the closing quote or bracket
    if text[content.value] == ord('"'):
        blank_line = b"\\n\\n" if inside > content.value + 1 else b""
        return Splice(inside, inside, blank_line + _quoted(addition)[1:-1])
    if text[content.value] == ord("["):
        comma = b"" if _EMPTY_LIST.match(text, content.value) else b","
        return Splice(inside, inside, comma + b'{"type":"text","text":' + _quoted(addition) + b"}")
    return Splice(content.value, content.end, _quoted(addition))  # null


def _quoted(text: str) -> bytes:
    return msgspec.json.encode(text.encode(errors="replace").decode())
