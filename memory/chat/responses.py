"""OpenAI Responses: parses the conversation of a `POST /v1/responses` body, and inserts notes.

`input` is a string, or a list of items: messages, tool calls and their outputs, reasoning, references, and future
kinds. Reasoning and references resend earlier output and count as the assistant's, without text; unknown items are
preserved and count as messages without text.

A note is inserted at the beginning of the text of its user message. Only this position keeps the prompt's prefix stable
however a client continues: by resending its items, by `previous_response_id` or by `conversation`. A server that stores
the conversation keeps the text of user messages, while `instructions` are not carried over, and vLLM drops system
messages of earlier requests. A string stays a string, and no chat template refuses it. With placement `system`, notes
go to the end of `instructions`, or of the system message that `input` begins with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from memory.chat.api_shape import NO_CHAIN, ApiShape, Chain, KeyMaterial, begins_with_system
from memory.chat.completions import (
    MESSAGES_MAX,
    TEXT_PARTS,
    ChatRequest,
    Content,
    NoConversation,
    appended,
    conversation_of,
    object_of,
    objects_of,
    text_of,
)
from memory.chat.envelopes import Envelopes
from memory.chat.json_spans import UNREADABLE, Member, Splice, items_of, string_of, value_of
from memory.chat.notes_in_messages import BLANK_LINE, into_member, into_message
from memory.model import Conversation, Message, Note, Role

PATH = "/v1/responses"
BESIDE = "item"  # the role of items of unknown kinds
_OF_ASSISTANT = frozenset({"item_reference", "reasoning"})  # resent in the place of an answer: what is before is old

_PART_TYPE = b"input_text"
_CALLS = ("mcp_list_tools", "mcp_approval_request", "program")  # besides all kinds that end with "_call"
_OUTPUTS = ("tool_search_output", "mcp_approval_response", "program_output")  # besides all that end with "_call_output"
_NULL = msgspec.Raw(b"null")


class _WireItem(msgspec.Struct, gc=False):
    type: str | None = None
    role: str | None = None
    content: msgspec.Raw = _NULL


class _WireConversation(msgspec.Struct, gc=False):
    id: str | None = None


_ITEM = msgspec.json.Decoder(_WireItem)
_ITEMS = msgspec.json.Decoder(list[_WireItem])
_CONTENT = msgspec.json.Decoder(Content)
_CONVERSATION = msgspec.json.Decoder(str | _WireConversation | None)


class _Responses(ApiShape):
    path = PATH
    has_chains = True

    def conversation(self, text: bytes, last: Mapping[str, Member], envelopes: Envelopes) -> Conversation | None:
        """`instructions` are its first message, of role `system`."""
        try:
            messages = (*_instructions(text, last.get("instructions")), *_input(text, last.get("input")))
        except NoConversation:
            return None
        return conversation_of(text, last, messages)

    def chain(self, text: bytes, last: Mapping[str, Member]) -> Chain:
        member = last.get("conversation")
        try:
            found = _CONVERSATION.decode(value_of(text, member)) if member is not None else None
        except UNREADABLE:
            return NO_CHAIN
        conversation_id = found if isinstance(found, str) else found.id if found is not None else None
        return Chain(string_of(text, last.get("previous_response_id")), conversation_id or "")

    def spans(self, request: ChatRequest) -> list[tuple[int, int]]:
        """`instructions`, then the string or the items of `input`."""
        said, instructions = request.member("input"), request.member("instructions")
        assert said is not None, "a conversation has an input"
        text = request.text
        before = []
        if instructions is not None and string_of(text, instructions):
            before.append((instructions.value, instructions.end))
        if text[said.value] == ord('"'):
            return [*before, (said.value, said.end)]
        return [*before, *items_of(text, said.value, said.end)]

    def insertions(self, request: ChatRequest, notes: Sequence[Note]) -> list[Splice]:
        places = self.spans(request)
        merged = BLANK_LINE.join(note.text for note in notes if note.before is None)
        edits = [_merged(request, places, merged)] if merged else []
        placed = ((places[note.before], note.text) for note in notes if note.before is not None)
        return [*edits, *(into_message(request.text, place, note, part_type=_PART_TYPE) for place, note in placed)]

    def message_bytes(self, request: ChatRequest) -> Sequence[KeyMaterial]:
        """Role and text of messages that are only text, so that a string and its item are equal; others as sent.

        The first one starts with the id that the request continues.
        """
        assert request.conversation is not None
        places = self.spans(request)
        material = [
            f"{message.role}\x1f{message.content}".encode(errors="surrogatepass")
            if _is_plain(request.text, place)
            else request.text[slice(*place)]
            for message, place in zip(request.conversation.messages, places, strict=True)
        ]
        return [b"\x1e".join((request.chain.held_under.encode(errors="surrogatepass"), material[0])), *material[1:]]


RESPONSES = _Responses()


# Reading


def _instructions(text: bytes, member: Member | None) -> tuple[Message, ...]:
    if member is None or text.startswith(b"null", member.value):
        return ()
    if text[member.value] != ord('"'):
        raise NoConversation
    found = string_of(text, member)
    return (Message(Role.SYSTEM, found),) if found else ()


def _input(text: bytes, member: Member | None) -> tuple[Message, ...]:
    if member is None:
        raise NoConversation
    if text[member.value] == ord('"'):
        return (Message(Role.USER, string_of(text, member)),)
    items = _items(text, member)
    if not 0 < len(items) <= MESSAGES_MAX:
        raise NoConversation
    return tuple(map(_message, items))


def _items(text: bytes, member: Member) -> list[_WireItem]:
    """All items; an object of unknown shape is an empty item."""
    try:
        return _ITEMS.decode(value_of(text, member))
    except UNREADABLE:
        return objects_of(value_of(text, member), _ITEM)


def _message(item: _WireItem) -> Message:
    kind = item.type or "message"
    if kind == "message" and item.role:
        try:
            return Message(item.role, text_of(_CONTENT.decode(item.content)))
        except UNREADABLE:
            raise NoConversation from None
    if kind.endswith("_call_output") or kind in _OUTPUTS:
        return Message(Role.TOOL, "", is_tool_traffic=True)
    if kind.endswith("_call") or kind in _CALLS:
        return Message(Role.ASSISTANT, "", is_tool_traffic=True)
    if kind in _OF_ASSISTANT:
        return Message(Role.ASSISTANT, "")
    return Message(BESIDE, "")


# Keys


def _is_plain(text: bytes, place: tuple[int, int]) -> bool:
    """Whether a prompt can contain only the role and the text of this value."""
    if text[place[0]] == ord('"'):
        return True
    item = object_of(memoryview(text)[slice(*place)], _ITEM)
    if (item.type or "message") != "message" or not item.role:
        return False
    content = _CONTENT.decode(item.content)
    return isinstance(content, str) or all(isinstance(one, str) or one.type in TEXT_PARTS for one in content or ())


# Writing


def _merged(request: ChatRequest, places: Sequence[tuple[int, int]], addition: str) -> Splice:
    """Appends `addition` to the system message that `input` begins with, or to the instructions, or adds these."""
    if begins_with_system(request) and request.text[places[0][0]] != ord('"'):
        return appended(request.text, places[0], addition, part_type=_PART_TYPE)
    return into_member(request, "instructions", addition, beside="input")
