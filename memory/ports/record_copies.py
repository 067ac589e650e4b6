"""The port by which a user's conversation record is copied from one system to another."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from memory.model import RecordedMessage
from memory.model.turn_copies import TurnCopy


class RecordCopies(Protocol):
    """Per user; texts are valid UTF-8, with each lone surrogate replaced. Raises `Unavailable`."""

    def turns(self, user_id: str) -> AsyncIterator[TurnCopy]:
        """In the order of the record, without receipts. A turn whose reply is being streamed is due, without it."""
        ...

    def messages(self, user_id: str) -> AsyncIterator[RecordedMessage]:
        """Tool traffic of turns, and messages that were added; what is derived from turns is not among them."""
        ...

    async def add_turns(self, user_id: str, copies: Sequence[TurnCopy]) -> int:
        """Record them as that user's; returns how many. Known ids change nothing, and neither do turns that were
        deleted here. Raises `BadInput` if a turn of somebody else has one of the ids. Durable on return.
        """
        ...

    async def add_messages(self, user_id: str, messages: Sequence[RecordedMessage]) -> int:
        """The same for messages. Tool traffic without its turn is left out."""
        ...
