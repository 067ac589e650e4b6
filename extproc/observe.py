"""The reply side: a state machine for one exchange, which opens and closes a turn. It delays nothing.

| phase         | what comes                            | what happens                                 | next         |
|---------------|---------------------------------------|----------------------------------------------|--------------|
| AWAIT_REQUEST | headers of a chat                     | nothing                                      | REQUEST_BODY |
| REQUEST_BODY  | the last piece of the client's body   | `OpenTurn`, if a known user says news        | AWAIT_REPLY  |
| REQUEST_BODY  | … that must not be recorded           | `LeaveOut`: nor is it to be filled in later  | AWAIT_REPLY  |
| REQUEST_BODY  | … with nothing new but tool results   | nothing: the turn was opened before          | AWAIT_REPLY  |
| AWAIT_REPLY   | its status, where a note went along   | `NoteOutcome`: the template takes it or not  | REPLY_BODY   |
| REPLY_BODY    | the end of a 400                      | `NoteOutcome`, or `LengthRefusal`            | DONE         |
| REPLY_BODY    | the last piece of the reply           | `CloseTurn`: closed, or failed for an error  | DONE         |
| REPLY_BODY    | the stream ends before the reply does | `CloseTurn`: aborted, unless it was complete | DONE         |
| REPLY_BODY    | … of a request with only tool results | `ContinueTurn`, in place of each `CloseTurn` | DONE         |
| REPLY_BODY    | … of a chain, but not recorded        | `LinkExchange`, in place of each `CloseTurn` | DONE         |
| (any)         | the reply first: Envoy's own answer   | nothing is recorded                          | DONE         |
| DONE          | anything                              | nothing                                      | DONE         |

An exchange that memory may not use, or that is neither recorded nor continued by its id, ends the observation where
that shows (`_NEXT`).

Chunks may be split anywhere, even inside a character or an event; each body is assembled once, at its end, up to a
limit. No clock is read: `at` is when the shell received the message, in Unix seconds. Nothing is recorded without an
identity from `identify`, or if the request forbids it: of a chain's exchange only ids are then kept, never text, and of
what must not be recorded later a digest.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import Enum, auto

from extproc.apis import API_BY_PATH, APIS, Api
from extproc.exchange import CloseTurn, Closing, LeaveOut, ObservedExchange, ObservedRequest, OpenTurn
from extproc.identity import (
    USUAL_RULES,
    Headers,
    IdentityMode,
    IdentityRules,
    Metadata,
    content_length,
    first_header,
    identify,
)
from extproc.refusals import context_tokens, refuses_roles
from extproc.reply import Reply, ReplyBuffer, read_reply
from extproc.switches import USUAL_REQUESTS, RequestRules, switched_off
from extproc.turn_links import ContinueTurn, LinkExchange
from memory.chat.completions import NotAChat, read_chat_request
from memory.chat.envelopes import of_speaker
from memory.chat.sent_conversations import sent_conversation
from memory.model import (
    CHAT_BYTES_MAX,
    HEAVY_BODY_BYTES,
    NOTE_KEYS_MAX,
    Conversation,
    Message,
    Placement,
    Scope,
    Turn,
    TurnStatus,
)

HEAVY_REPLY_BYTES = 128 << 10  # parsing more takes milliseconds; a stream takes longer per byte than a request

METADATA_NAMESPACE = "memory"  # namespace of the injecting filter's metadata for us
RECEIPT_KEY = "receipt"
STATUS_KEY = "status"
PLACEMENT_KEY = "placement"  # of a note that a template might refuse
NOTE_KEYS_KEY = "note_keys"  # of the notes at this request's own messages, separated by spaces; in chains
BAD_REQUEST = 400  # the answer of model servers if a template refuses the messages
REFUSALS = frozenset((BAD_REQUEST, 422, 500))  # of servers that say so in words; others are overload, keys and names

_TRACE_PARENT = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}")


@dataclass(frozen=True, slots=True)
class NoteOutcome:
    """Whether the upstream accepted a request with a note at `placement`. A refusal may have other causes."""

    model: str
    placement: Placement
    is_refused: bool


@dataclass(frozen=True, slots=True)
class LengthRefusal:
    """The upstream refused a request for being too long: its model takes `context_tokens`, prompt and answer."""

    model: str
    context_tokens: int


class _Phase(Enum):
    AWAIT_REQUEST = auto()
    REQUEST_BODY = auto()
    AWAIT_REPLY = auto()
    REPLY_BODY = auto()
    DONE = auto()


class _Event(Enum):
    """What moves an exchange on; everything else is a piece of what is under way, or of no account."""

    CHAT = auto()  # headers of a chat, whose body follows
    QUESTION = auto()  # the end of a body in which memory may have a part
    REPLY = auto()  # headers of the reply to a turn that was opened, now or before
    END = auto()  # nothing that may still come can matter


_NEXT = {
    (_Phase.AWAIT_REQUEST, _Event.CHAT): _Phase.REQUEST_BODY,
    (_Phase.REQUEST_BODY, _Event.QUESTION): _Phase.AWAIT_REPLY,
    (_Phase.AWAIT_REPLY, _Event.REPLY): _Phase.REPLY_BODY,
    **{(phase, _Event.END): _Phase.DONE for phase in _Phase},
}


class Observation:
    """One exchange. Call the methods in the order of events, then `on_end` in any case.

    A call that ends a body parses all of it: run it in a thread if `is_heavy` is true right before. A turn is opened
    and closed once, so such a call must be awaited even if the stream is cancelled meanwhile. `note_outcome` is set
    once the reply has begun, or `length_refusal` instead at the end of a refusal, also for requests that are not
    recorded.
    """

    def __init__(
        self,
        *,
        turn_id: str,
        mode: IdentityMode,
        is_recording: bool = True,
        rules: IdentityRules = USUAL_RULES,
        trace_id: str = "",
        requests: RequestRules = USUAL_REQUESTS,
    ) -> None:
        """`is_recording` False: learning is disabled, and requests cannot enable it. `trace_id`:
        of the trace that the proxy makes; without one the client's `traceparent` names it.
        """
        self._requests = requests
        self.is_zone_unknown = False  # the request named a zone that nobody knows
        self._is_recording = is_recording
        self._rules = rules
        self._turn_id = turn_id
        self._trace_id = trace_id
        self._mode = mode
        self._phase = _Phase.AWAIT_REQUEST
        self._request_headers: Headers = ()
        self._request_chunks: list[bytes] = []
        self._request_size = self._announced = 0
        self._is_open = False
        self._is_recorded = False
        self._api: Api = APIS[0]
        self._exchange: ObservedExchange | None = None
        self._note_keys: tuple[str, ...] = ()
        self._model = ""
        self._is_refused = False
        self._refused_note: NoteOutcome | None = None
        self.note_outcome: NoteOutcome | None = None
        self.length_refusal: LengthRefusal | None = None
        self._reply_headers: Headers = ()
        self._reply = ReplyBuffer()
        self._receipt_id = ""

    @property
    def is_heavy(self) -> bool:
        """Whether a call that ends the current body would delay other streams."""
        if self._phase is _Phase.REQUEST_BODY:
            return self.is_request_large
        return self._is_open and self._reply.size > HEAVY_REPLY_BYTES

    @property
    def is_request_large(self) -> bool:
        """Whether the body that is awaited is large, as announced or as far as it has come."""
        return self._phase is _Phase.REQUEST_BODY and max(self._announced, self._request_size) > HEAVY_BODY_BYTES

    @property
    def exchange(self) -> str:
        """Envoy's id of this exchange, which the injecting stream knows too."""
        return first_header(self._request_headers, "x-request-id")

    @property
    def is_idle(self) -> bool:
        """Whether no further event matters, so that the shell may stop listening."""
        return self._phase is _Phase.DONE

    def on_request_headers(self, headers: Headers, *, is_end: bool = False) -> None:
        """`is_end`: no body follows."""
        if self._phase is not _Phase.AWAIT_REQUEST:
            return
        self._request_headers = headers
        api = None if is_end else _readable_api(headers)
        self._api = api or self._api
        self._announced = content_length(headers)
        self._move(_Event.CHAT if api is not None else _Event.END)

    def on_request_body(self, chunk: bytes, *, is_end: bool, at: float) -> OpenTurn | LeaveOut | None:
        """The turn to open, or to leave out, at the end of a body with a new message of a known user."""
        if self._phase is not _Phase.REQUEST_BODY:
            return None
        self._request_size += len(chunk)
        if self._request_size > CHAT_BYTES_MAX:
            self._let_go()
            return None
        self._request_chunks.append(chunk)
        if not is_end:
            return None
        asked = self._read_request()
        if asked is None:
            self._let_go()
            return None
        if not asked.is_enabled:
            self._let_go()
            return asked.left_out()
        self._model = asked.conversation.model
        said = _said(asked.conversation) if asked.wants_record else ()
        self._request_chunks = []
        self._is_recorded = bool(said)
        self._is_open = self._is_recorded or asked.brings_results or asked.may_be_continued
        self._exchange = asked.exchange(turn_id=self._turn_id, at=at) if self._is_open else None
        opening = self._opening(asked, said) if said else None
        self._move(_Event.QUESTION)
        return opening or (None if asked.wants_record else asked.left_out())

    def on_response_headers(
        self, headers: Headers, metadata: Metadata, *, at: float, is_end: bool = False
    ) -> Closing | None:
        """The start of the reply, and its end where it has no body."""
        if self._phase is not _Phase.AWAIT_REPLY:
            if not self._is_open:  # the reply came before the end of the request: Envoy or the upstream refused it
                self._let_go()
            return None
        self._reply_headers = headers
        left = metadata.get(METADATA_NAMESPACE, {})
        receipt_id = left.get(RECEIPT_KEY)
        self._receipt_id = receipt_id if isinstance(receipt_id, str) else ""
        self._note_keys = _note_keys(left.get(NOTE_KEYS_KEY))
        self._is_refused = _status(headers) in REFUSALS and bool(self._model)
        outcome = self._note_outcome(left.get(PLACEMENT_KEY), _status(headers))
        if self._is_refused:
            self._refused_note = outcome  # unless the end says that the length was the reason
        else:
            self.note_outcome = outcome
        if not (self._is_open or self._is_refused):
            self._let_go()
            return None
        self._move(_Event.REPLY)
        return self._closed(at, is_whole=True) if is_end else None

    def on_response_body(self, chunk: bytes, *, is_end: bool, at: float) -> Closing | None:
        """The end of the turn, at the end of the reply."""
        if self._phase is not _Phase.REPLY_BODY:
            return None
        self._reply.add(chunk)
        return self._closed(at, is_whole=True) if is_end else None

    def on_end(self, *, at: float) -> Closing | None:
        """The stream has ended, failed or was cancelled. Idempotent."""
        if (self._is_open or self._is_refused) and self._phase is not _Phase.DONE:
            return self._closed(at, is_whole=False)
        self._let_go()
        return None

    def pass_by(self) -> None:
        """Nobody has time for this exchange: it is not recorded."""
        self._let_go()

    def _move(self, event: _Event) -> None:
        self._phase = _NEXT[self._phase, event]

    def _let_go(self) -> None:
        self._move(_Event.END)
        self._request_chunks = []
        self._request_headers = ()

    def _read_request(self) -> ObservedRequest | None:
        """The request, if memory may use it."""
        try:
            request = read_chat_request(b"".join(self._request_chunks), self._api.requests, self._requests.envelopes)
        except NotAChat:
            return None
        scope = identify(self._request_headers, request.context, self._mode, request.named_user, self._rules)
        if not isinstance(scope, Scope) or request.conversation is None:
            return None
        request = replace(request, conversation=of_speaker(request.conversation, scope.user_id))
        assert request.conversation is not None
        wants_record = self._is_recording and request.options.auto_store
        is_enabled = request.options.enabled and not switched_off(self._request_headers, self._requests.off_routes)
        return ObservedRequest(scope, request, request.conversation, wants_record, is_enabled)

    def _opening(self, asked: ObservedRequest, said: tuple[Message, ...]) -> OpenTurn:
        assert self._exchange is not None
        exchange, session = self._exchange, self._exchange.session
        sent = sent_conversation(asked.scope, asked.request, is_session_given=session.is_given)
        assert sent is not None, "a new message with text has a key"
        zone = asked.request.context.timezone if asked.request.context is not None else ""
        self.is_zone_unknown = not self._requests.zones.is_known(zone)
        turn = Turn(
            id=self._turn_id,
            scope=replace(asked.scope, session_id=session.session_id),
            at=exchange.asked_at,
            messages=said,
            model=self._model,
            trace_id=self._trace_id or _trace_id(self._request_headers),
            utc_offset=self._requests.zones.offset(exchange.asked_at, zone),
        )
        return OpenTurn(turn, exchange.links, sent, session.continues)

    def _note_outcome(self, placement: object, status: int) -> NoteOutcome | None:
        is_taken = 200 <= status < 300
        if placement not in tuple(Placement) or not (is_taken or status in REFUSALS):
            return None
        return NoteOutcome(self._model, Placement(str(placement)), is_refused=not is_taken)

    def _judge_refusal(self) -> None:
        """Errors other than 400 concern the messages only if they say so: others mean overload, a wrong key."""
        tokens = context_tokens(self._reply.body()) if self._is_refused else None
        if tokens is not None:
            self.length_refusal = LengthRefusal(self._model, tokens)
        elif _status(self._reply_headers) == BAD_REQUEST or refuses_roles(self._reply.body()):
            self.note_outcome = self._refused_note or self.note_outcome

    def _closed(self, at: float, *, is_whole: bool) -> Closing | None:
        self._judge_refusal()
        exchange = self._exchange
        if exchange is None:  # not recorded: only the refusal counted
            self._let_go()
            return None
        reply = self._read_reply(is_whole=is_whole)
        over_cap = self._reply.is_over_cap
        self._let_go()
        self._reply = ReplyBuffer()
        links = exchange.links_after(reply, self._note_keys)
        if self._is_recorded:
            kept = links if links.names else None
            return CloseTurn(self._turn_id, reply.status, reply.text, at, self._receipt_id, over_cap, kept)
        if exchange.brings_results and exchange.wants_record:
            return ContinueTurn(
                links, reply.status, reply.text, at, over_cap, tools=exchange.tools, asked_at=exchange.asked_at
            )
        if not links.names:
            return None
        if exchange.brings_results:  # of the turn that was opened before, but not to be recorded
            return ContinueTurn(links, reply.status, "", at)
        return LinkExchange(links, exchange.session.session_id, bool(exchange.session.continues), at)

    def _read_reply(self, *, is_whole: bool) -> Reply:
        if not self._reply_headers:
            return Reply(TurnStatus.ABORTED)
        status = _status(self._reply_headers)
        reply = read_reply(status, self._reply_headers, self._reply.body(), self._api.replies)
        if self._reply.is_over_cap and 200 <= status < 300:
            end = TurnStatus.CLOSED if is_whole else TurnStatus.ABORTED
            response_id = reply.response_id or self._api.replies.id_at_end(self._reply.tail)
            return Reply(end, reason="over_cap", response_id=response_id)
        if is_whole or reply.is_done or reply.status is TurnStatus.FAILED:
            return reply  # clients disconnect as soon as the stream says that it is complete: the answer is complete
        return replace(reply, status=TurnStatus.ABORTED, text="")


def _readable_api(headers: Headers) -> Api | None:
    """The API of a chat that we can read; None for anything else."""
    coding = first_header(headers, "content-encoding").strip().lower()
    if first_header(headers, ":method") != "POST" or coding not in ("", "identity"):
        return None
    return API_BY_PATH.get(first_header(headers, ":path").partition("?")[0])


def _status(headers: Headers) -> int:
    """The status code; 0 if Envoy sent none."""
    digits = first_header(headers, ":status")
    return int(digits) if digits.isascii() and digits.isdigit() else 0


def _said(conversation: Conversation) -> tuple[Message, ...]:
    """The user's new messages in this request that have text."""
    return tuple(message for message in conversation.new_user_messages() if message.content.strip())


def _note_keys(found: object) -> tuple[str, ...]:
    """The keys that the injecting filter left."""
    return tuple(found.split()[:NOTE_KEYS_MAX]) if isinstance(found, str) else ()


def _trace_id(headers: Headers) -> str:
    found = _TRACE_PARENT.fullmatch(first_header(headers, "traceparent").strip())
    return found[1] if found else ""
