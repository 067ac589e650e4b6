"""What the reply side observes of an exchange: the request, and the commands for the recorder. Values only."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

from extproc.reply import Reply
from extproc.turn_links import ContinueTurn, LinkExchange, Links
from memory.chat.completions import ChatRequest
from memory.chat.sent_conversations import new_exchange, sent_conversation
from memory.chat.sessions import NamedSession, named_session
from memory.chat.tool_traffic import tool_messages
from memory.model import Conversation, Scope, SentConversation, SentExchange, ToolMessage, Turn, TurnStatus, link_name
from memory.recall.notes.past_notes import note_keys


@dataclass(frozen=True, slots=True)
class OpenTurn:
    """Append this turn to the log, in the session of the exchange `session_from` if that is known.

    `sent`: the conversation that it continues.
    """

    turn: Turn
    links: Links
    sent: SentConversation
    session_from: str = ""


@dataclass(frozen=True, slots=True)
class LeaveOut:
    """The exchange must not be recorded, also not from a later request of this user that sends it again."""

    user_id: str
    exchange: SentExchange


@dataclass(frozen=True, slots=True)
class CloseTurn:
    """Record how the turn ended. `is_over_cap`: the reply was too large to keep, so there is no answer."""

    turn_id: str
    status: TurnStatus
    answer: str
    answered_at: float
    receipt_id: str = ""
    is_over_cap: bool = False
    links: Links | None = None


Closing: TypeAlias = CloseTurn | ContinueTurn | LinkExchange
Observed: TypeAlias = OpenTurn | LeaveOut | Closing


@dataclass(frozen=True, slots=True)
class ObservedExchange:
    """What is needed of a request until its reply has ended. `scope`: without the session."""

    scope: Scope
    session: NamedSession
    links: Links
    conversation_id: str
    question_key: str
    brings_results: bool
    wants_record: bool
    tools: tuple[ToolMessage, ...]
    asked_at: float

    def links_after(self, reply: Reply, keys: tuple[str, ...]) -> Links:
        """The links of this exchange; only a complete one gets names by which later requests find it."""
        if reply.status is not TurnStatus.CLOSED:
            return replace(self.links, note_keys=keys)
        named = (link_name(self.scope, name) for name in (reply.response_id, self.conversation_id))
        loop = self.question_key if reply.has_tool_calls else ""
        return replace(self.links, note_keys=keys, names=tuple(filter(None, (*named, loop))))


@dataclass(frozen=True, slots=True)
class ObservedRequest:
    """A request that memory may use."""

    scope: Scope
    request: ChatRequest
    conversation: Conversation
    wants_record: bool
    is_enabled: bool = True

    def exchange(self, *, turn_id: str, at: float) -> ObservedExchange:
        chain, key = self.request.chain, self._question_key()
        is_continuing = self.wants_record and self.brings_results
        return ObservedExchange(
            scope=self.scope,
            session=named_session(self.scope, self.request, turn_id=turn_id),
            links=Links(
                self.scope.user_id, link_name(self.scope, chain.held_under) or (key if self.brings_results else "")
            ),
            conversation_id=chain.conversation_id,
            question_key=key,
            brings_results=self.brings_results,
            wants_record=self.wants_record,
            tools=tool_messages(self.request) if is_continuing else (),
            asked_at=at,
        )

    def left_out(self) -> LeaveOut | None:
        """Of a request that must not be recorded; None if it has no new message."""
        sent = sent_conversation(self.scope, self.request)
        exchange = None if sent is None else new_exchange(self.request, sent.keys[-1])
        return None if exchange is None else LeaveOut(self.scope.user_id, exchange)

    def _question_key(self) -> str:
        """The key of the conversation up to the current question, where a tool loop may follow; else ""."""
        if not (self.may_be_continued or self.brings_results):
            return ""
        keys = list(note_keys(self.scope, self.request).values())
        return keys[-1] if keys else ""

    @property
    def may_be_continued(self) -> bool:
        """Whether a later request may refer to this one without sending all of it again."""
        return self.request.shape.has_chains or self.conversation.offers_tools

    @property
    def brings_results(self) -> bool:
        """Whether it is a further call of a tool loop: no new user message, but tool results."""
        return not self.conversation.new_user_messages() and self.conversation.messages[-1].is_tool_traffic
