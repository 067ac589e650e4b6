"""Anthropic Messages: parses the conversation of a `POST /v1/messages` body, and inserts notes.

`system` is a string or a list of blocks, the content of a message likewise. A user's message with nothing but tool
results is tool traffic; blocks of other kinds (images, documents, thinking, what is still unknown) have no text and are
preserved. What an agent writes into the user's message in its own name (`<system-reminder>`) is not the user's word.

A note is inserted at the beginning of the user's own text. Anthropic refuses system messages among `messages`, and
vLLM moves them to the front of the prompt or into a neighbour, depending on its version. With placement `system`, notes
go to the end of `system`, as a block of their own if it has blocks, so that a cached one stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import msgspec

from memory.chat.api_shape import ApiShape, KeyMaterial
from memory.chat.completions import MESSAGES_MAX, ChatRequest, NoConversation, conversation_of, object_of, objects_of
from memory.chat.envelopes import Envelopes
from memory.chat.json_spans import (
    UNREADABLE,
    Member,
    NotJson,
    Splice,
    edited,
    is_filled,
    items_of,
    last_named,
    members_of,
    removals,
    value_of,
)
from memory.chat.notes_in_messages import BLANK_LINE, Span, into_member, into_message
from memory.model import Conversation, Message, Note, Role

PATH = "/v1/messages"
TOOL_CALL, TOOL_RESULT = "tool_use", "tool_result"

_THINKING = ("thinking", "redacted_thinking")
_CACHE_MARK = "cache_control"  # clients move it to newer messages; prompts do not contain it
_BILLING = "x-anthropic-billing-header"  # a system block of Claude Code, new in each request, which vLLM leaves out


class _WireBlock(msgspec.Struct, gc=False):
    type: str = ""
    text: str | None = None

    @property
    def said(self) -> str:
        return self.text or "" if self.type == "text" else ""


class _WireMessage(msgspec.Struct, gc=False):
    role: str
    content: msgspec.Raw


_MESSAGES = msgspec.json.Decoder(list[_WireMessage])
_CONTENT = msgspec.json.Decoder(str | list[_WireBlock])
_BLOCK = msgspec.json.Decoder(_WireBlock)
_STRING = msgspec.json.Decoder(str)


class _Messages(ApiShape):
    path = PATH

    def conversation(self, text: bytes, last: Mapping[str, Member], envelopes: Envelopes) -> Conversation | None:
        """`system`, if it says anything, is its first message."""
        try:
            messages = (*_system(text, last.get("system")), *_messages(text, last.get("messages"), envelopes))
        except NoConversation:
            return None
        return conversation_of(text, last, messages)

    def spans(self, request: ChatRequest) -> list[tuple[int, int]]:
        messages, system = request.member("messages"), request.member("system")
        assert messages is not None, "a conversation has messages"
        before = [(system.value, system.end)] if is_filled(request.text, system) and system is not None else []
        return [*before, *items_of(request.text, messages.value, messages.end)]

    def insertions(self, request: ChatRequest, notes: Sequence[Note]) -> list[Splice]:
        spans, text = self.spans(request), request.text
        merged = BLANK_LINE.join(note.text for note in notes if note.before is None)
        edits = [into_member(request, "system", merged, beside="messages")] if merged else []
        stays_ahead = partial(_stays_ahead, request.envelopes, text)
        return edits + [
            into_message(text, spans[note.before], note.text, part_type=b"text", is_passed_over=stays_ahead)
            for note in notes
            if note.before is not None
        ]

    def message_bytes(self, request: ChatRequest) -> Sequence[KeyMaterial]:
        """Role and blocks, text as text; without thinking and marks for the cache, which clients drop or move."""
        assert request.conversation is not None
        messages = zip(request.conversation.messages, self.spans(request), strict=True)
        return [_material(request.text, span, message.role) for message, span in messages]


MESSAGES = _Messages()


# Reading


def _system(text: bytes, member: Member | None) -> tuple[Message, ...]:
    if member is None or text.startswith(b"null", member.value):
        return ()
    content = _content(value_of(text, member))
    if not content:
        return ()
    said = content if isinstance(content, str) else "\n".join(block.said for block in content if not _is_billing(block))
    return (Message(Role.SYSTEM, said),)


def _messages(text: bytes, member: Member | None, envelopes: Envelopes) -> tuple[Message, ...]:
    try:
        wire = _MESSAGES.decode(value_of(text, member)) if member is not None else []
    except UNREADABLE:
        raise NoConversation from None
    if not 0 < len(wire) <= MESSAGES_MAX:
        raise NoConversation
    return tuple(_message(one.role, _content(one.content), envelopes) for one in wire)


def _content(raw: msgspec.Raw | memoryview) -> str | list[_WireBlock]:
    """A block of unknown shape is an empty block."""
    try:
        content: str | list[_WireBlock] = _CONTENT.decode(raw)
        return content
    except UNREADABLE:
        return objects_of(raw, _BLOCK)


def _message(role: str, content: str | list[_WireBlock], envelopes: Envelopes) -> Message:
    blocks = [_WireBlock("text", content)] if isinstance(content, str) else content
    if role != Role.USER:
        is_call = any(block.type == TOOL_CALL for block in blocks)
        return Message(role, "\n".join(block.said for block in blocks if block.said), is_tool_traffic=is_call)
    said = "\n".join(block.said for block in blocks if block.said)
    if not envelopes.own_words(said).strip() and any(block.type == TOOL_RESULT for block in blocks):
        return Message(Role.TOOL, "", is_tool_traffic=True)
    return Message(role, said)


def _is_billing(block: _WireBlock) -> bool:
    return block.said.startswith(_BILLING)


# Keys


def _material(text: bytes, span: Span, role: str) -> bytes:
    if text[span[0]] == ord("{"):
        content = last_named(members_of(text, *span), "content")
        assert content is not None, "a message has content"
        span = (content.value, content.end)
    if text[span[0]] == ord('"'):
        parts = [_STRING.decode(memoryview(text)[slice(*span)]).encode(errors="surrogatepass")]
    else:
        blocks = (text[start:end] for start, end in items_of(text, *span))
        parts = [part for block in blocks if (part := _block_material(block)) is not None]
    return role.encode() + b"\x1f" + b"\n".join(parts)


def _block_material(sent: bytes) -> bytes | None:
    """None for a block that does not count."""
    block = object_of(sent, _BLOCK)
    if block.type in _THINKING or _is_billing(block):
        return None
    if block.type == "text" and block.text is not None:
        return block.text.encode(errors="surrogatepass")
    if _CACHE_MARK.encode() not in sent:
        return sent
    try:
        return edited(sent, removals(members_of(sent), (_CACHE_MARK,)))
    except NotJson:  # too many members
        return sent


# Writing


def _stays_ahead(envelopes: Envelopes, text: bytes, part: Span) -> bool:
    """Tool results have to be first, and an agent's reminders say nothing to which a note belongs."""
    block = object_of(text[slice(*part)], _BLOCK)
    is_said = bool(block.said.strip())
    return block.type == TOOL_RESULT or (is_said and not envelopes.own_words(block.said).strip())
