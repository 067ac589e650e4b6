"""What every API whose chats get memory can do: one implementation for each form of request body.

A shape finds the conversation in a body and the positions of notes. It never decides whether a request uses memory, and
changes nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

from memory.chat.envelopes import Envelopes
from memory.chat.json_spans import Member, Splice
from memory.model import Conversation, Note, Placement, Role

if TYPE_CHECKING:  # a request names its shape, and a shape reads requests
    from memory.chat.completions import ChatRequest

KeyMaterial: TypeAlias = bytes | memoryview
"""Bytes that identify a message, for the keys of past notes."""

SYSTEM_ROLES = (Role.SYSTEM, "developer")


@dataclass(frozen=True, slots=True)
class Chain:
    """What a request continues, if the server stores the earlier messages. Ids as sent, or ""."""

    previous_response_id: str = ""
    conversation_id: str = ""

    @property
    def held_under(self) -> str:
        """The id under which the server stores the earlier part of this conversation; "" if the client sends all."""
        return self.conversation_id or self.previous_response_id


NO_CHAIN = Chain()


class ApiShape(Protocol):
    """The request format of one API. All methods are pure; `text` and spans come from `json_spans.parsed`.

    `path`: to which clients post such bodies. `is_bound_by_templates`: whether a chat template can refuse a note at its
    default position, before the last user message. `has_chains`: whether servers may store the earlier messages, so
    that a request continues them by an id.
    """

    path: str
    is_bound_by_templates: bool = False
    has_chains: bool = False

    def conversation(self, text: bytes, last: Mapping[str, Member], envelopes: Envelopes) -> Conversation | None:
        """The conversation, or None if the body has none as the API defines it. `last`: members by name. `envelopes`
        are not opened; they tell where a message holds no words of the user at all.
        """
        ...

    def chain(self, text: bytes, last: Mapping[str, Member]) -> Chain:
        return NO_CHAIN

    def spans(self, request: ChatRequest) -> list[tuple[int, int]]:
        """Start and end of each message of the conversation in the body."""
        ...

    def insertions(self, request: ChatRequest, notes: Sequence[Note]) -> list[Splice]:
        """Splices that insert the notes. `request` has a conversation; a note is placed before a user message."""
        ...

    def message_bytes(self, request: ChatRequest) -> Sequence[KeyMaterial]:
        """Key material for each message of the conversation; equal prompts have equal key material."""
        ...

    def refusable(self, request: ChatRequest, notes: Sequence[Note]) -> Placement | None:
        """The placement of a note that a chat template might refuse; None if there is no such note.

        Where notes are inside the messages of users, only a system message that is added for them is one.
        """
        is_made = any(note.before is None for note in notes) and not begins_with_system(request)
        return Placement.SYSTEM if is_made else None


def begins_with_system(request: ChatRequest) -> bool:
    """Whether the client has a system message, or instructions, to which notes can be added."""
    return request.conversation is not None and request.conversation.messages[0].role in SYSTEM_ROLES
