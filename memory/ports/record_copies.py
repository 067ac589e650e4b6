"""The port by which a user's conversation record is copied from one system to another."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Sequence
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
        """Record them as that user's; returns how many. Durable on return.

        A turn of this user's record keeps its id and changes nothing, and neither does one that was deleted here. Any
        other gets the id `copied_turn_id`, whether or not another user has one of the id in the copy.
        """
        ...

    async def own_turns(self, user_id: str, turn_ids: Collection[str]) -> frozenset[str]:
        """Those of these ids that turns of the user's record have."""
        ...

    async def add_messages(self, user_id: str, messages: Sequence[RecordedMessage]) -> int:
        """The same for messages; tool traffic follows its turn, under whatever id, and is left out without it."""
        ...
