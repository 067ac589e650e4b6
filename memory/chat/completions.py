"""OpenAI chat completions: parses the conversation of a request body, inserts notes, and strips our own fields.

All bytes of the client's body except our own fields (`own_fields.py`) are preserved: white space, key order, the
spelling of numbers, escapes, unknown keys. A body that is not a JSON object raises `NotAChat` and is left to the
upstream. `read_chat_request` and `insert_notes` work for every `ApiShape`; the one of this module is `COMPLETIONS`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import msgspec

from memory.chat.api_shape import NO_CHAIN, ApiShape, Chain, KeyMaterial, begins_with_system
from memory.chat.envelopes import KNOWN, Envelopes
from memory.chat.json_spans import (
    UNREADABLE,
    Member,
    NotJson,
    Splice,
    edited,
    is_filled_list,
    items_of,
    last_named,
    members_of,
    parsed,
    removals,
    string_of,
    value_of,
)
from memory.chat.own_fields import OUR_FIELDS, MemoryContext, own_fields
from memory.model import HEAVY_BODY_BYTES, Conversation, Message, Note, Placement, RequestOptions, Role

PATH = "/v1/chat/completions"

MESSAGES_MAX = 20_000  # a longer request is not a conversation that memory could help with

TEXT_PARTS = ("text", "input_text", "output_text")
TOOL_ROLES = (Role.TOOL, "function")
_Object = TypeVar("_Object", bound=msgspec.Struct)


class NotAChat(Exception):
    """The body is not a chat request and is passed on unchanged. `reason`: a metric label without content."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A parsed request body, which is a JSON object.

    `conversation` is None unless the body holds a non-empty list of messages as the API defines them; our fields can be
    stripped from such a body all the same. `is_understood`: whether all our fields are valid; otherwise `options`
    disables memory, and an invalid `context` is None. `named_user`: the user in fields of the API itself,
    `metadata.user_id` before `user`, or "". `envelopes`: by which its messages were read.
    """

    body: bytes
    conversation: Conversation | None
    context: MemoryContext | None
    options: RequestOptions
    has_memory_fields: bool
    is_understood: bool
    text: bytes  # from `json_spans.parsed`: `body`, or a copy of the same length
    members: tuple[Member, ...]
    shape: ApiShape
    chain: Chain = NO_CHAIN
    named_user: str = ""
    envelopes: Envelopes = KNOWN

    @property
    def is_heavy(self) -> bool:
        """Whether work on all its messages would delay other chats."""
        return len(self.body) > HEAVY_BODY_BYTES

    def member(self, name: str) -> Member | None:
        return last_named(self.members, name)


class ContentPart(msgspec.Struct, gc=False):
    """One part of a message's content; for parts other than text only the type is parsed."""

    type: str = "text"
    text: str | None = None


Content: TypeAlias = str | list[str | ContentPart] | None
"""The content of a message in JSON, in a request or a reply."""


class _WireMessage(msgspec.Struct, gc=False):
    role: str
    content: Content = None
    name: Any = None
    tool_calls: list[msgspec.Raw] | None = None
    function_call: dict[str, msgspec.Raw] | None = None


_MESSAGES = msgspec.json.Decoder(list[_WireMessage])
_RAW_ITEMS = msgspec.json.Decoder(list[msgspec.Raw])


class NoConversation(Exception):
    """The body is not valid in its API; the server will refuse it."""


def read_chat_request(body: bytes, shape: ApiShape | None = None, envelopes: Envelopes = KNOWN) -> ChatRequest:
    """Parse a request body of that shape, by default of a chat completion. Its messages hold the user's own words.

    Raises `NotAChat`: not_utf8, not_json, not_an_object, too_deep, too_many_members. Takes about 20 microseconds for
    4 KB and tens of milliseconds for 20 MB: parse large bodies off the event loop.
    """
    shape = shape or COMPLETIONS
    try:
        text, members = parsed(body)
    except NotJson as error:
        raise NotAChat(error.reason) from None
    last = {member.name: member for member in members}  # of repeated names every server uses the last
    ours = own_fields(body, text, last)
    conversation = shape.conversation(text, last, envelopes)
    return ChatRequest(
        body=body,
        conversation=None if conversation is None else envelopes.opened(conversation),
        context=ours.context,
        options=ours.options,
        has_memory_fields=not OUR_FIELDS.isdisjoint(last),
        is_understood=ours.is_understood,
        text=text,
        members=tuple(members),
        shape=shape,
        chain=shape.chain(text, last),
        named_user=ours.named_user,
        envelopes=envelopes,
    )


def insert_notes(request: ChatRequest, notes: Sequence[Note], left_out: Sequence[Splice] = ()) -> bytes:
    """The body without our fields and with the notes; the same object if there is nothing to change.

    Notes require a conversation. Notes with `before=None` are joined into one text, separated by blank lines, in order.
    `left_out`: messages to be removed, from `memory.chat.history.deletions`; no note stands before one of them.
    """
    edits = removals(request.members, OUR_FIELDS)
    if notes:
        assert request.conversation is not None, "a note needs a conversation"
        edits += request.shape.insertions(request, notes)
    return edited(request.body, [*edits, *left_out])


def strip_memory_fields(body: bytes) -> bytes:
    """Any JSON object without our fields; the same object if it has none. Raises `NotAChat` as `read_chat_request`
    does.
    """
    try:
        return edited(body, removals(parsed(body)[1], OUR_FIELDS))
    except NotJson as error:
        raise NotAChat(error.reason) from None


def conversation_of(
    text: bytes, last: Mapping[str, Member], messages: tuple[Message, ...], *, tools: Sequence[str] = ("tools",)
) -> Conversation:
    """These messages, with what every API says beside them. `tools`: members that offer some."""
    return Conversation(
        messages=messages,
        model=string_of(text, last.get("model")),
        offers_tools=any(is_filled_list(text, last.get(name)) for name in tools),
    )


def text_of(content: Content) -> str:
    """The text of a message: its text parts, joined by newlines."""
    return content if isinstance(content, str) else "\n".join(_texts(content or ()))


def _message(wire: _WireMessage) -> Message:
    is_call = wire.role == Role.ASSISTANT and bool(wire.tool_calls or wire.function_call)
    name = wire.name if isinstance(wire.name, str) and wire.role == Role.USER else ""
    return Message(wire.role, text_of(wire.content), is_tool_traffic=is_call or wire.role in TOOL_ROLES, name=name)


def _texts(parts: Iterable[str | ContentPart]) -> Iterable[str]:
    for part in parts:
        if isinstance(part, str):
            yield part
        elif part.type in TEXT_PARTS and part.text is not None:
            yield part.text


def object_of(raw: msgspec.Raw | bytes | memoryview, decoder: msgspec.json.Decoder[_Object]) -> _Object:
    """An object of unknown shape is an empty one. Raises `NoConversation` for what is none."""
    try:
        return decoder.decode(raw)
    except msgspec.ValidationError:
        if bytes(memoryview(raw)[:1]) != b"{":
            raise NoConversation from None
        return decoder.decode(b"{}")


def objects_of(raw: msgspec.Raw | memoryview, decoder: msgspec.json.Decoder[_Object]) -> list[_Object]:
    """Likewise those of a list."""
    try:
        return [object_of(one, decoder) for one in _RAW_ITEMS.decode(raw)]
    except UNREADABLE:
        raise NoConversation from None


# Notes


def _system_message(at: int, text: str) -> Splice:
    return Splice(at, at, b'{"role":"system","content":' + quoted(text) + b"},")


def appended(text: bytes, message: tuple[int, int], addition: str, *, part_type: bytes = b"text") -> Splice:
    """The splice that appends `addition` to the content of a message, whatever its form."""
    members = members_of(text, *message)
    content = last_named(members, "content")
    if content is None:
        end = members[-1].end
        return Splice(end, end, b',"content":' + quoted(addition))
    inside = content.end - 1  # before the closing quote or bracket
    if text[content.value] == ord('"'):
        blank_line = b"\\n\\n" if inside > content.value + 1 else b""
        return Splice(inside, inside, blank_line + quoted(addition)[1:-1])
    if text[content.value] == ord("["):
        comma = b"," if is_filled_list(text, content) else b""
        return Splice(inside, inside, comma + b'{"type":"%s","text":' % part_type + quoted(addition) + b"}")
    return Splice(content.value, content.end, quoted(addition))  # null


def quoted(text: str) -> bytes:
    """The text as a JSON string; characters that UTF-8 cannot encode become question marks."""
    return msgspec.json.encode(text.encode(errors="replace").decode())


class _Completions(ApiShape):
    """A note is a system message of its own, or goes into the client's first one."""

    path = PATH
    is_bound_by_templates = True

    def conversation(self, text: bytes, last: Mapping[str, Member], envelopes: Envelopes) -> Conversation | None:
        if "messages" not in last:
            return None
        try:
            wire = _MESSAGES.decode(value_of(text, last["messages"]))
        except UNREADABLE:
            return None
        if not 0 < len(wire) <= MESSAGES_MAX:
            return None
        return conversation_of(text, last, tuple(map(_message, wire)), tools=("tools", "functions"))

    def spans(self, request: ChatRequest) -> list[tuple[int, int]]:
        messages = request.member("messages")
        assert messages is not None, "a conversation has messages"
        return items_of(request.text, messages.value, messages.end)

    def insertions(self, request: ChatRequest, notes: Sequence[Note]) -> list[Splice]:
        spans = self.spans(request)
        merged = "\n\n".join(note.text for note in notes if note.before is None)
        edits: list[Splice] = []
        if merged and begins_with_system(request):
            edits.append(appended(request.text, spans[0], merged))
        elif merged:
            edits.append(_system_message(spans[0][0], merged))
        for note in notes:
            if note.before is not None:
                assert 0 <= note.before < len(spans), "a note stands before one of the client's messages"
                edits.append(_system_message(spans[note.before][0], note.text))
        return edits

    def message_bytes(self, request: ChatRequest) -> Sequence[KeyMaterial]:
        """Exactly as sent."""
        body = memoryview(request.body)
        return [body[start:end] for start, end in self.spans(request)]

    def refusable(self, request: ChatRequest, notes: Sequence[Note]) -> Placement | None:
        if any(note.before for note in notes):
            return Placement.BEFORE_LAST_USER
        is_made = bool(notes) and (notes[0].before is not None or not begins_with_system(request))
        return Placement.SYSTEM if is_made else None


COMPLETIONS = _Completions()
