"""What both sides see of an exchange: its request, and the commands for the recorder. Values only.

Both filters read a request by the same rules, and whichever opens its turn gives it the same id. What inject leaves for
the observer goes through Envoy, since the two streams may be served by different processes.
"""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import msgspec

from extproc.identity import Headers, first_header
from extproc.reply import Reply
from extproc.turn_links import ContinueTurn, LinkExchange, Links
from memory.chat.completions import ChatRequest
from memory.chat.sent_conversations import NamedSession, named_session, sent_conversation
from memory.chat.tool_traffic import tool_messages
from memory.errors import BadInput
from memory.model import (
    ChainLink,
    Conversation,
    Message,
    Scope,
    SentConversation,
    SentExchange,
    ToolMessage,
    Turn,
    TurnStatus,
    link_name,
)
from memory.model.zones import Zones
from memory.recall.notes.past_notes import note_keys
from memory.typed import from_json

MARK_BYTES_MAX = 4 << 10  # of an opened turn: Envoy sends it again with every chunk of the reply
TURN_IDS: Final = uuid.UUID("5a4f2c0e-6a53-4d0b-9a7e-0d7c3c1f8b52")  # the namespace of ids of turns
_TRACE_PARENT = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}")


@dataclass(frozen=True, slots=True)
class TurnSeed:
    """Of what comes as a turn. `turn_id`: where Envoy gives the exchange no id. `trace_id`: of the trace that the proxy
    makes; without one the client's `traceparent` names it.
    """

    turn_id: str
    trace_id: str = ""


@dataclass(frozen=True, slots=True)
class Arrival:
    """When a request came (Unix seconds), with which headers."""

    at: float
    headers: Headers
    seed: TurnSeed

    @property
    def trace_id(self) -> str:
        """ "" without a trace."""
        found = _TRACE_PARENT.fullmatch(first_header(self.headers, "traceparent").strip())
        return self.seed.trace_id or (found[1] if found else "")


@dataclass(frozen=True, slots=True)
class OpenTurn:
    """Append this turn to the log, in the session of the exchange `session_from` if that is known.

    `sent`: the conversation that it continues. `is_zone_unknown`: the request named a time zone that nobody knows.
    """

    turn: Turn
    links: Links
    sent: SentConversation
    session_from: str = ""
    is_zone_unknown: bool = False


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
class LinkNames:
    """By what later requests find an exchange once it is complete. `scope`: without the session."""

    scope: Scope
    conversation_id: str = ""
    question_key: str = ""

    def after(self, reply: Reply) -> tuple[str, ...]:
        """Only a complete exchange is found."""
        if reply.status is not TurnStatus.CLOSED:
            return ()
        named = (link_name(self.scope, name) for name in (reply.response_id, self.conversation_id))
        loop = self.question_key if reply.has_tool_calls else ""
        return tuple(filter(None, (*named, loop)))


@dataclass(frozen=True, slots=True)
class OpenedTurn:
    """What inject leaves of a turn that is in the log, for the observer, which closes it: ids, and no words of a user.

    `names`: if later requests may continue the exchange without sending it again.
    """

    link: ChainLink
    model: str
    names: LinkNames | None = None

    def mark(self) -> str:
        """As a value of metadata; "" if it is too long for that, or no UTF-8: then the observer reads the request."""
        try:
            mark = msgspec.json.encode(self)
        except UnicodeEncodeError:
            return ""
        return mark.decode() if len(mark) <= MARK_BYTES_MAX else ""


def opened_turn(mark: object) -> OpenedTurn | None:
    """The turn of a mark; None for anything else."""
    try:
        return from_json(mark, OpenedTurn) if isinstance(mark, str) else None
    except (msgspec.DecodeError, BadInput):
        return None


@dataclass(frozen=True, slots=True)
class ObservedExchange:
    turn_id: str
    session: NamedSession
    links: Links
    names: LinkNames
    brings_results: bool
    wants_record: bool
    tools: tuple[ToolMessage, ...]
    asked_at: float


@dataclass(frozen=True, slots=True)
class ObservedRequest:
    """A request that memory may use. `sent`: its conversation, if it has a new message with text."""

    scope: Scope
    request: ChatRequest
    conversation: Conversation
    wants_record: bool
    sent: SentConversation | None
    is_enabled: bool = True

    @property
    def said(self) -> tuple[Message, ...]:
        """The user's new messages that have text and may be recorded."""
        return self._new() if self.wants_record else ()

    def _new(self) -> tuple[Message, ...]:
        return tuple(message for message in self.conversation.new_user_messages() if message.content.strip())

    def exchange(self, arrival: Arrival) -> ObservedExchange:
        chain, key, turn_id = self.request.chain, self._question_key(), self._turn_id(arrival)
        is_continuing = self.wants_record and self.brings_results
        return ObservedExchange(
            turn_id=turn_id,
            session=named_session(self.scope, self.request, turn_id=turn_id),
            links=Links(
                self.scope.user_id, link_name(self.scope, chain.held_under) or (key if self.brings_results else "")
            ),
            names=LinkNames(replace(self.scope, session_id=""), chain.conversation_id, key),
            brings_results=self.brings_results,
            wants_record=self.wants_record,
            tools=tool_messages(self.request) if is_continuing else (),
            asked_at=arrival.at,
        )

    def opening(self, exchange: ObservedExchange, arrival: Arrival, zones: Zones) -> OpenTurn | None:
        """None if there is nothing new to record."""
        said, session = self.said, exchange.session
        if not said:
            return None
        assert self.sent is not None, "a new message with text has a key"
        zone = self.request.context.timezone if self.request.context is not None else ""
        turn = Turn(
            id=exchange.turn_id,
            scope=replace(self.scope, session_id=session.session_id),
            at=arrival.at,
            messages=said,
            model=self.conversation.model,
            trace_id=arrival.trace_id,
            utc_offset=zones.offset(arrival.at, zone),
        )
        sent = replace(self.sent, is_session_given=session.is_given)
        return OpenTurn(turn, exchange.links, sent, session.continues, not zones.is_known(zone))

    def left_out(self) -> LeaveOut | None:
        """Of a request that must not be recorded; None if it has no new message."""
        if self.sent is None:
            return None
        return LeaveOut(self.scope.user_id, SentExchange(self.sent.keys[-1], self._new(), ""))

    def _turn_id(self, arrival: Arrival) -> str:
        """Clients may choose Envoy's id, on a private network, so what they say counts as well."""
        exchange = exchange_of(arrival.headers)
        if not exchange or self.sent is None:
            return arrival.seed.turn_id
        return str(uuid.uuid5(TURN_IDS, "\x1f".join((exchange, self.scope.session_id, self.sent.keys[-1]))))

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


def observed_request(
    scope: Scope, request: ChatRequest, *, is_recording: bool, is_enabled: bool = True
) -> ObservedRequest | None:
    """`request`: with the words of its speaker alone. None without a conversation. Hashes all of its messages."""
    if request.conversation is None:
        return None
    wants_record = is_recording and request.options.auto_store
    has_news = bool(request.conversation.new_user_messages())
    sent = sent_conversation(scope, request) if has_news else None
    return ObservedRequest(scope, request, request.conversation, wants_record, sent, is_enabled)


def exchange_of(headers: Headers) -> str:
    """Envoy's id of an exchange, which both of its streams know; "" without one."""
    return first_header(headers, "x-request-id")
