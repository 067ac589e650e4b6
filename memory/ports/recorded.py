"""The ports of the conversation record: its messages, whose words left it, and its copies for another system."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from memory.model import MessageFilter, RecordedMessage, Session, ToolMessage
from memory.model.recorded import AbandonedBranch
from memory.model.turns import TurnCopy
from memory.ports.paging import Page


@dataclass(frozen=True, slots=True)
class Trimming:
    """What a change applies to: all but the last `keep_last` messages of a conversation.

    Turns that are not learnt yet are left as they are.
    """

    user_id: str
    conversation_id: str
    keep_last: int


class RecordedMessages(Protocol):
    """All messages of the record: those derived from turns, tool traffic of turns, and added ones.

    The order is by time, then arrival, then order within the turn, and does not depend on the page size. Every call is
    about one user; a conversation id of another user is another conversation. Raises `Unavailable`.
    """

    async def add(self, user_id: str, messages: Sequence[RecordedMessage]) -> None:
        """Add messages that the proxy did not see. A known id of that user is ignored. Durable on return."""

    async def add_tool_messages(self, turn_id: str, messages: Sequence[ToolMessage], *, at: float) -> None:
        """Add tool traffic to a turn, once per call id; ignored if the turn is unknown or has too much of it.

        Tool traffic is never learnt from.
        """

    async def page(self, where: MessageFilter, *, limit: int, cursor: str = "") -> Page[RecordedMessage]:
        """In the order of the record; the work of one call is bounded. Raises `BadInput` for an invalid cursor."""

    async def find(self, user_id: str, message_id: str) -> RecordedMessage | None: ...

    async def sessions(self, user_id: str, *, limit: int, cursor: str = "") -> Page[Session]:
        """The latest active first. Raises `BadInput` for an invalid cursor."""

    async def session(self, user_id: str, conversation_id: str) -> Session | None: ...

    async def turn_ids(self, user_id: str, conversation_id: str) -> list[str]: ...

    async def abandoned(self, user_id: str, conversation_id: str, *, limit: int) -> list[AbandonedBranch]:
        """The branches that the conversation has left, in the order in which they began; the last `limit` of them."""

    async def receipt_ids(self, user_id: str, conversation_id: str, *, limit: int) -> list[tuple[str, str]]:
        """The ids of turns and of their receipts: the last `limit` turns that have one, in the order of opening."""

    async def of_receipt(self, user_id: str, receipt_id: str) -> list[RecordedMessage]:
        """What was said in the turn with that receipt, and its answer, without tool traffic; empty if there is none.

        The cost grows with the number of the user's turns, not with their texts.
        """

    async def delete_message(self, user_id: str, message_id: str) -> bool:
        """Delete one message; False if there is none. A turn that is not learnt yet is withdrawn first."""

    async def delete_turns(self, user_id: str, turn_ids: Collection[str]) -> int:
        """Delete turns with their tool traffic, receipts and links; returns how many.

        Those not learnt yet are withdrawn first; the end of an open one is not recorded.
        """

    async def delete_added(self, user_id: str, conversation_id: str) -> int:
        """Delete the added messages of a conversation; returns how many."""

    async def erase(self, user_id: str, *, project_id: str = "", before: float) -> int:
        """Delete all turns opened, and messages added, before that time, of the user or of exactly that project.

        Returns the number of turns and messages.
        """

    async def trim(self, trimming: Trimming) -> int:
        """Delete the older messages; returns how many."""

    async def compress(self, trimming: Trimming, *, characters_max: int) -> int:
        """Replace the text of older outputs and tool results by its beginning; returns how many were changed.

        The originals are gone. Messages of the user are left as they are.
        """

    async def expire(self, *, before: float, limit: int) -> int:
        """Delete up to `limit` turns, and messages, that arrived before that time, of all users; returns how many.

        Turns that are not learnt yet are kept.
        """


class RemovedWords(Protocol):
    """Turns whose words left the record while rows with their raw words may remain in the store. Per user.

    Filled by whatever deletes or rewrites what the user said in a turn. Raises `Unavailable`.
    """

    async def next_user(self, *, without: Collection[str] = ()) -> str | None:
        """A user with such turns, other than these, or None. Cheap if there is none: may be called every 100 ms."""

    async def turn_ids(self, user_id: str, *, limit: int) -> list[str]: ...

    async def settle(self, user_id: str, turn_ids: Sequence[str]) -> None:
        """No row of these turns remains."""


class RecordCopies(Protocol):
    """Per user; texts are valid UTF-8, with each lone surrogate replaced. Raises `Unavailable`."""

    def turns(self, user_id: str) -> AsyncIterator[TurnCopy]:
        """In the order of the record, without receipts. A turn whose reply is being streamed is due, without it."""

    def messages(self, user_id: str) -> AsyncIterator[RecordedMessage]:
        """Tool traffic of turns, and messages that were added; what is derived from turns is not among them."""

    async def add_turns(self, user_id: str, copies: Sequence[TurnCopy]) -> int:
        """Record them as that user's; returns how many. Durable on return.

        A turn of this user's record keeps its id and changes nothing, and neither does one that was deleted here. Any
        other gets the id `copied_turn_id`, whether or not another user has one of the id in the copy.
        """

    async def release(self, user_id: str, turn_ids: Collection[str]) -> None:
        """Turns that were held, by their ids here or in the copies, are due; all others stay as they are."""

    async def own_turns(self, user_id: str, turn_ids: Collection[str]) -> frozenset[str]:
        """Those of these ids that turns of the user's record have."""

    async def add_messages(self, user_id: str, messages: Sequence[RecordedMessage]) -> int:
        """The same for messages; tool traffic follows its turn, under whatever id, and is left out without it."""
