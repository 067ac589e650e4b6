"""The reply side: a state machine for one exchange, which closes its turn. It delays nothing.

It opens the turn itself only where inject has not done so before the reply begins, or has not said so: it keeps the
request until then, and reads it only in that case.

| phase         | what comes                            | what happens                                 | next         |
|---------------|---------------------------------------|----------------------------------------------|--------------|
| AWAIT_REQUEST | headers of a chat                     | nothing                                      | REQUEST_BODY |
| REQUEST_BODY  | the last piece of the client's body   | nothing: it is kept                          | UNREAD       |
| UNREAD        | that inject has opened the turn       | nothing: the request is dropped              | AWAIT_REPLY  |
| UNREAD        | the reply, or the end, without that   | `OpenTurn`, if a known user says news        | AWAIT_REPLY  |
| UNREAD        | … of what must not be recorded        | `LeaveOut`: nor is it to be filled in later  | AWAIT_REPLY  |
| UNREAD        | … with nothing new but tool results   | nothing: the turn was opened before          | AWAIT_REPLY  |
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

from dataclasses import dataclass, replace
from enum import Enum, auto

from extproc.apis import APIS, Api, readable_api
from extproc.edge_trust import EdgeTrust, switched_off
from extproc.exchange import (
    Arrival,
    CloseTurn,
    Closing,
    LeaveOut,
    LinkNames,
    ObservedExchange,
    ObservedRequest,
    OpenTurn,
    TurnSeed,
    exchange_of,
    observed_request,
    opened_turn,
)
from extproc.identity import Headers, Metadata, number_in
from extproc.refusals import context_tokens, refuses_roles
from extproc.reply import Reply, ReplyBuffer, read_reply
from extproc.turn_links import ContinueTurn, LinkExchange, Links
from memory.chat.completions import NotAChat, read_chat_request
from memory.chat.envelopes import of_speaker
from memory.model import CHAT_BYTES_MAX, HEAVY_BODY_BYTES, NOTE_KEYS_MAX, ChainLink, Placement, Scope, TurnStatus

HEAVY_REPLY_BYTES = 128 << 10  # parsing more takes milliseconds; a stream takes longer per byte than a request

METADATA_NAMESPACE = "memory"  # namespace of the injecting filter's metadata for us
RECEIPT_KEY = "receipt"
STATUS_KEY = "status"
TURN_KEY = "turn"  # that it is in the log: `OpenedTurn`
PLACEMENT_KEY = "placement"  # of a note that a template might refuse
NOTE_KEYS_KEY = "note_keys"  # of the notes at this request's own messages, separated by spaces; in chains
BAD_REQUEST = 400  # the answer of model servers if a template refuses the messages
REFUSALS = frozenset((BAD_REQUEST, 422, 500))  # of servers that say so in words; others are overload, keys and names


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
    """What is awaited; everything else is a piece of what is under way, or of no account."""

    AWAIT_REQUEST = auto()
    REQUEST_BODY = auto()  # of a chat
    UNREAD = auto()  # the body is whole
    AWAIT_REPLY = auto()  # of a request in which memory may have a part, read here or by inject
    REPLY_BODY = auto()  # of a turn that was opened, now or before
    DONE = auto()  # nothing that may still come can matter


class Observation:
    """One exchange. Call the methods in the order of events, then `on_end` in any case.

    When the reply begins, or the stream ends before, call `on_left` and `read_request` first. Reading a request, and
    ending a reply, parse all of it: run that in a thread if `is_heavy` is true right before. A turn is opened and
    closed once, so such a call must be awaited even if the stream is cancelled meanwhile. `note_outcome` is set once
    the reply has begun, or `length_refusal` instead at the end of a refusal, also for requests that are not recorded.
    """

    def __init__(self, trust: EdgeTrust, *, seed: TurnSeed, is_recording: bool = True) -> None:
        """`is_recording` False: learning is disabled, and requests cannot enable it."""
        self._trust = trust
        self._is_recording = is_recording
        self._seed, self._turn_id = seed, seed.turn_id
        self._phase = _Phase.AWAIT_REQUEST
        self._request_headers: Headers = ()
        self._request_chunks: list[bytes] = []
        self.request_size = self._announced = 0
        self._asked_at = 0.0
        self.is_dropped = False
        self._is_open = False
        self._is_recorded = False
        self._api: Api = APIS[0]
        self._exchange: ObservedExchange | None = None
        self._links = Links("")
        self._names: LinkNames | None = None
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
        """Whether reading the request now, or ending the reply, would delay other streams."""
        if self.is_unread:
            return self.is_request_large and not self.is_dropped
        return self._is_open and self._reply.size > HEAVY_REPLY_BYTES

    @property
    def is_unread(self) -> bool:
        """Whether the whole request is here, and nobody has said that it was read."""
        return self._phase is _Phase.UNREAD

    @property
    def is_request_large(self) -> bool:
        """Whether the request that may have to be read is large, as announced or as far as it has come."""
        is_to_read = self._phase in (_Phase.REQUEST_BODY, _Phase.UNREAD)
        return is_to_read and max(self._announced, self.request_size) > HEAVY_BODY_BYTES

    @property
    def exchange(self) -> str:
        return exchange_of(self._request_headers)

    @property
    def is_idle(self) -> bool:
        """Whether no further event matters, so that the shell may stop listening."""
        return self._phase is _Phase.DONE

    def on_request_headers(self, headers: Headers, *, is_end: bool = False) -> None:
        """`is_end`: no body follows."""
        if self._phase is not _Phase.AWAIT_REQUEST:
            return
        self._request_headers = headers
        api = None if is_end else readable_api(headers)
        self._api = api or self._api
        self._announced = number_in(headers, "content-length")
        self._phase = _Phase.REQUEST_BODY if api is not None else _Phase.DONE

    def on_request_body(self, chunk: bytes, *, is_end: bool, at: float) -> None:
        if self._phase is not _Phase.REQUEST_BODY:
            return
        self.request_size += len(chunk)
        if self.request_size > CHAT_BYTES_MAX:
            self._let_go()
            return
        if not self.is_dropped:
            self._request_chunks.append(chunk)
        if is_end:
            self._asked_at = at
            self._phase = _Phase.UNREAD

    def drop_request(self) -> None:
        """Nobody will have time to read it: the turn is recorded only if inject opens it."""
        self._request_chunks = []
        self.is_dropped = True

    def on_left(self, metadata: Metadata) -> ChainLink | None:
        """What inject left for us. Where the turn is open, as what; then there is nothing to read."""
        opened = opened_turn(metadata.get(METADATA_NAMESPACE, {}).get(TURN_KEY)) if self.is_unread else None
        if opened is None:
            return None
        self._request_chunks = []
        self._turn_id, self._model, self._names = opened.link.turn_id, opened.model, opened.names
        self._links = Links(opened.names.scope.user_id if opened.names else "")
        self._is_open = self._is_recorded = True
        self._phase = _Phase.AWAIT_REPLY
        return opened.link

    def read_request(self) -> OpenTurn | LeaveOut | None:
        """The turn to open, or to leave out, of a request with a new message of a known user that is still unread."""
        if not self.is_unread:
            return None
        asked = None if self.is_dropped else self._read_request()
        if asked is None:
            self._let_go()
            return None
        if not asked.is_enabled:
            self._let_go()
            return asked.left_out()
        self._model = asked.conversation.model
        self._request_chunks = []
        self._is_recorded = bool(asked.said)
        self._is_open = self._is_recorded or asked.brings_results or asked.may_be_continued
        opening = self._opening(asked) if self._is_open else None
        self._phase = _Phase.AWAIT_REPLY
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
        self._is_refused = number_in(headers, ":status") in REFUSALS and bool(self._model)
        outcome = self._note_outcome(left.get(PLACEMENT_KEY), number_in(headers, ":status"))
        if self._is_refused:
            self._refused_note = outcome  # unless the end says that the length was the reason
        else:
            self.note_outcome = outcome
        if not (self._is_open or self._is_refused):
            self._let_go()
            return None
        self._phase = _Phase.REPLY_BODY
        return self._closed(at, is_whole=True) if is_end else None

    def on_response_body(self, chunk: bytes, *, is_end: bool, at: float) -> Closing | None:
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

    def _let_go(self) -> None:
        self._phase = _Phase.DONE
        self._request_chunks = []
        self._request_headers = ()

    def _read_request(self) -> ObservedRequest | None:
        try:
            request = read_chat_request(b"".join(self._request_chunks), self._api.requests, self._trust.envelopes)
        except NotAChat:
            return None
        scope = self._trust.scope_of(self._request_headers, request)
        if not isinstance(scope, Scope) or request.conversation is None:
            return None
        request = replace(request, conversation=of_speaker(request.conversation, scope.user_id))
        is_enabled = request.options.enabled and not switched_off(self._request_headers, self._trust.off_routes)
        return observed_request(scope, request, is_recording=self._is_recording, is_enabled=is_enabled)

    def _opening(self, asked: ObservedRequest) -> OpenTurn | None:
        arrival = Arrival(self._asked_at, self._request_headers, self._seed)
        self._exchange = exchange = asked.exchange(arrival)
        self._turn_id, self._links, self._names = exchange.turn_id, exchange.links, exchange.names
        return asked.opening(exchange, arrival, self._trust.zones)

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
        elif number_in(self._reply_headers, ":status") == BAD_REQUEST or refuses_roles(self._reply.body()):
            self.note_outcome = self._refused_note or self.note_outcome

    def _closed(self, at: float, *, is_whole: bool) -> Closing | None:
        self._judge_refusal()
        if not self._is_open:  # not recorded: only the refusal counted
            self._let_go()
            return None
        reply = self._read_reply(is_whole=is_whole)
        over_cap = self._reply.is_over_cap
        self._let_go()
        self._reply = ReplyBuffer()
        names = self._names.after(reply) if self._names is not None else ()
        links = replace(self._links, note_keys=self._note_keys, names=names)
        if self._is_recorded:
            kept = links if names else None
            return CloseTurn(self._turn_id, reply.status, reply.text, at, self._receipt_id, over_cap, kept)
        exchange = self._exchange
        assert exchange is not None, "it was read here"
        if exchange.brings_results and exchange.wants_record:
            return ContinueTurn(
                links, reply.status, reply.text, at, over_cap, tools=exchange.tools, asked_at=exchange.asked_at
            )
        if not names:
            return None
        if exchange.brings_results:  # of the turn that was opened before, but not to be recorded
            return ContinueTurn(links, reply.status, "", at)
        return LinkExchange(links, exchange.session.session_id, bool(exchange.session.continues), at)

    def _read_reply(self, *, is_whole: bool) -> Reply:
        if not self._reply_headers:
            return Reply(TurnStatus.ABORTED)
        status = number_in(self._reply_headers, ":status")
        reply = read_reply(status, self._reply_headers, self._reply.body(), self._api.replies)
        if self._reply.is_over_cap and 200 <= status < 300:
            end = TurnStatus.CLOSED if is_whole else TurnStatus.ABORTED
            return Reply(end, response_id=reply.response_id)
        if is_whole or reply.is_done or reply.status is TurnStatus.FAILED:
            return reply  # clients disconnect as soon as the stream says that it is complete: the answer is complete
        return replace(reply, status=TurnStatus.ABORTED, text="")


def _note_keys(found: object) -> tuple[str, ...]:
    return tuple(found.split()[:NOTE_KEYS_MAX]) if isinstance(found, str) else ()
