"""What an API has to offer so that its chats get memory: one shape for each body that clients send.

A shape says where the client's words stand in a body and where a note goes. It must never decide whether memory has a
part in a request, and never write a value that it was not asked to write.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

from memory.chat.json_spans import Edit, Member
from memory.model import Conversation, Note, Placement

if TYPE_CHECKING:  # a request names its shape, and a shape reads requests
    from memory.chat.completions import ChatRequest

KeyMaterial: TypeAlias = bytes | memoryview
"""What tells one message from any other, for the keys of past notes."""


@dataclass(frozen=True, slots=True)
class Chain:
    """Where a request goes on from, if the server holds what was said before. Ids as sent; "" where there is none."""

    previous_response_id: str = ""
    conversation_id: str = ""

    @property
    def held_under(self) -> str:
        """The id under which the server holds the earlier part of this conversation; "" if the client sends it all."""
        return self.conversation_id or self.previous_response_id


NO_CHAIN = Chain()


class ApiShape(Protocol):
    """One way to write a chat. All of it is pure; `text` and spans are as `json_spans.parsed` gives them."""

    @property
    def path(self) -> str:
        """Where clients post such bodies."""
        ...

    @property
    def is_bound_by_templates(self) -> bool:
        """Whether a chat template can refuse a note at its usual place, before the last user message."""
        ...

    def conversation(self, text: bytes, last: Mapping[str, Member]) -> Conversation | None:
        """What the body says; None where it is no conversation as the API describes it. `last`: members by name."""
        ...

    def chain(self, text: bytes, last: Mapping[str, Member]) -> Chain:
        """What the server is to go on from."""
        ...

    def insertions(self, request: ChatRequest, notes: Sequence[Note]) -> list[Edit]:
        """Edits that put these notes in. `request` has a conversation; a note stands before a message of the user's."""
        ...

    def message_bytes(self, request: ChatRequest) -> Sequence[KeyMaterial]:
        """For each message of the conversation, what tells it from others; equal prompts have equal ones."""
        ...

    def refusable(self, request: ChatRequest, notes: Sequence[Note]) -> Placement | None:
        """Where a note of ours stands that a chat template might refuse; None where there is nothing to refuse."""
        ...
