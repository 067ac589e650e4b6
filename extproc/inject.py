"""The request side: a state machine for one request. Events in, commands out; no IO and no waiting.

A request is never held if it can be passed on, and our own fields never reach the upstream.

| state          | event                              | commands                                   | next           |
|----------------|------------------------------------|--------------------------------------------|----------------|
| AWAIT_HEADERS  | not ours, too large, or encoded    | Count, Proceed(wants_body=False)           | DONE           |
| AWAIT_HEADERS  | a POST on a path that we handle    | Proceed(wants_body=True)                   | AWAIT_BODY     |
| AWAIT_BODY     | of an API without memory           | Count, Finish(stripped if it has fields)   | DONE           |
| AWAIT_BODY     | not JSON                           | Count, Finish(untouched)                   | DONE           |
| AWAIT_BODY     | no known user, or memory is off    | Count, Finish(stripped if necessary)       | DONE           |
| AWAIT_BODY     | body contradicts the edge          | Count, Reject, if the settings say so      | DONE           |
| AWAIT_BODY     | a conversation of a known user     | RecallMemories, with upstream signals      | AWAIT_RECALL   |
| AWAIT_BODY     | … with something new to record     | … and with the turn to open beside it      | AWAIT_RECALL   |
| AWAIT_RECALL   | recalled                           | Finish(stripped, with the notes)           | DONE           |
| AWAIT_RECALL   | … and the turn is in the log       | … and with the news of it for the observer | DONE           |

Parsing and editing happen inside `on`; the shell runs `on` in a thread if `is_heavy`. A large body whose turn does not
come (`extproc.large_bodies`) never gets here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import TypeAlias

from extproc.apis import API_BY_PATH, STRIPPED_PATHS
from extproc.edge_trust import EdgeTrust, switched_off
from extproc.exchange import Arrival, LinkNames, OpenedTurn, OpenTurn, TurnSeed, exchange_of, observed_request
from extproc.identity import (
    MISMATCHES,
    Anonymous,
    Headers,
    Metadata,
    RefusalReason,
    RefusedIdentity,
    first_header,
    number_in,
)
from memory.chat.api_shape import ApiShape
from memory.chat.completions import ChatRequest, NotAChat, insert_notes, read_chat_request, strip_memory_fields
from memory.chat.envelopes import of_speaker
from memory.chat.history import deletions
from memory.model import CHAT_BYTES_MAX, HEAVY_BODY_BYTES, ChainLink, Note, Placement, RecallStatus, Scope
from memory.recall.signals.upstream import NO_SIGNALS, UpstreamSignals
from memory.recall.stages import RecallOutcome

COMPACT_HEADER = "x-memory-compact"  # "on" or "off": of a client, or of a route
_SWITCH = {"on": True, "off": False}


@dataclass(frozen=True, slots=True)
class RequestHeaders:
    """The first event. `is_end`: no body follows. `metadata`: written by filters ahead of us."""

    headers: Headers
    is_end: bool = False
    metadata: Metadata = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RequestBody:
    """The whole body, which Envoy buffers. `at`: when it came, in Unix seconds."""

    body: bytes
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class Recalled:
    """The result of `RecallMemories`. `opened`: as what the turn is in the log; None if it is not known to be."""

    found: RecallOutcome
    opened: ChainLink | None = None


Event: TypeAlias = RequestHeaders | RequestBody | Recalled


@dataclass(frozen=True, slots=True)
class Proceed:
    """Answer the headers. If the body is not wanted, the stream ends here."""

    wants_body: bool


@dataclass(frozen=True, slots=True)
class RecallMemories:
    """Call recall, open the turn concurrently, and feed back `Recalled`."""

    scope: Scope
    request: ChatRequest
    upstream: UpstreamSignals = NO_SIGNALS
    opening: OpenTurn | None = None


@dataclass(frozen=True, slots=True)
class ResponseInfo:
    """What the client is told in response headers. An empty `receipt_id` is omitted.

    `placement` is for our observer only: where a note was placed that the model's template might refuse. None if there
    is nothing to refuse: no note, or one inside the client's own system message. `note_keys`: likewise, the keys of the
    notes at this request's own messages, if later requests may leave these out; `opened`: that its turn is in the log.
    """

    status: RecallStatus
    count: int = 0
    receipt_id: str = ""
    placement: Placement | None = None
    note_keys: tuple[str, ...] = ()
    opened: OpenedTurn | None = None


@dataclass(frozen=True, slots=True)
class Finish:
    """Answer the body. None: the body stays, or the client is told nothing."""

    body: bytes | None = None
    receipt: ResponseInfo | None = None


@dataclass(frozen=True, slots=True)
class Reject:
    """Answer the request with 403, in place of the upstream."""


@dataclass(frozen=True, slots=True)
class CountPassed:
    reason: str


@dataclass(frozen=True, slots=True)
class CountRefused:
    reason: RefusalReason


@dataclass(frozen=True, slots=True)
class CountRequest:
    """Count a chat that did not call recall; recall counts its own."""

    status: RecallStatus
    reason: str


Command: TypeAlias = Proceed | RecallMemories | Finish | Reject | CountPassed | CountRefused | CountRequest


class State(Enum):
    AWAIT_HEADERS = auto()
    AWAIT_BODY = auto()
    AWAIT_RECALL = auto()
    DONE = auto()


class OutOfOrder(Exception):
    """An event that is not possible in the current state."""


class Injection:
    """One request. Pass every event to `on`, in order, and execute the returned commands, in order."""

    def __init__(self, trust: EdgeTrust, *, seed: TurnSeed | None = None) -> None:
        """`seed`: None if nothing is recorded."""
        self.state = State.AWAIT_HEADERS
        self._trust = trust
        self._headers: Headers = ()
        self._upstream = NO_SIGNALS
        self._shape: ApiShape | None = None
        self._request: ChatRequest | None = None
        self._seed = seed
        self._names: LinkNames | None = None

    @property
    def body_bytes(self) -> int:
        """As the client announced; 0 if it did not."""
        return number_in(self._headers, "content-length")

    @property
    def exchange(self) -> str:
        return exchange_of(self._headers)

    def is_heavy(self, event: Event) -> bool:
        """Whether `on(event)` would delay other streams."""
        match event:
            case RequestBody(body):
                return len(body) > HEAVY_BODY_BYTES
            case Recalled():
                return self._request is not None and self._request.is_heavy
            case RequestHeaders():
                return False

    def on(self, event: Event) -> Sequence[Command]:
        """The commands for this event. Raises `OutOfOrder`; the request must not be continued then."""
        match self.state, event:
            case State.AWAIT_HEADERS, RequestHeaders(headers, is_end, metadata):
                return self._on_headers(headers, metadata, is_end=is_end)
            case State.AWAIT_BODY, RequestBody(body):
                self.state = State.DONE
                return self._on_chat(event, self._shape) if self._shape is not None else _stripped(body)
            case State.AWAIT_RECALL, Recalled():
                self.state = State.DONE
                assert self._request is not None
                return [finish_of(self._request, event, self._names)]
            case _:
                raise OutOfOrder(f"{type(event).__name__} while {self.state.name}")

    def _on_headers(self, headers: Headers, metadata: Metadata, *, is_end: bool) -> Sequence[Command]:
        method, path = first_header(headers, ":method"), first_header(headers, ":path").partition("?")[0]
        reason = _unreadable(headers)
        if is_end or method != "POST" or (path not in API_BY_PATH and path not in STRIPPED_PATHS):
            self.state = State.DONE
            return [Proceed(wants_body=False)]
        if reason:
            self.state = State.DONE
            return [CountPassed(reason), Proceed(wants_body=False)]
        self._headers = headers
        self._shape = API_BY_PATH[path].requests if path in API_BY_PATH else None
        self._upstream = self._trust.signals.read_signals(headers, metadata)
        self.state = State.AWAIT_BODY
        return [Proceed(wants_body=True)]

    def _on_chat(self, asked: RequestBody, shape: ApiShape) -> Sequence[Command]:
        try:
            request = read_chat_request(asked.body, shape, self._trust.envelopes)
        except NotAChat as error:
            return [CountPassed(error.reason), Finish()]
        scope = self._trust.scope_of(self._headers, request)
        match scope:
            case RefusedIdentity(reason) if self._trust.rejects_mismatches and reason in MISMATCHES:
                return [CountRefused(reason), Reject()]
            case RefusedIdentity(reason):
                return [CountRefused(reason), *_without_memory(request, "identity_refused")]
            case Anonymous():
                return _without_memory(request, "no_identity")
        if switch := switched_off(self._headers, self._trust.off_routes):
            return _without_memory(request, switch)
        if not request.options.enabled:
            return _without_memory(request, "disabled" if request.is_understood else "not_understood")
        if request.conversation is None:
            return [CountPassed("no_conversation"), *_without_memory(request, "no_conversation")]
        request = replace(request, conversation=of_speaker(request.conversation, scope.user_id))
        self._request = request = _with_switches(request, self._headers)
        self.state = State.AWAIT_RECALL
        return [RecallMemories(scope, request, self._upstream, self._opening(scope, request, at=asked.at))]

    def _opening(self, scope: Scope, request: ChatRequest, *, at: float) -> OpenTurn | None:
        if self._seed is None:
            return None
        asked = observed_request(scope, request, is_recording=True)
        if asked is None or not asked.said:
            return None
        arrival = Arrival(at, self._headers, self._seed)
        exchange = asked.exchange(arrival)
        self._names = exchange.names if asked.may_be_continued else None
        return asked.opening(exchange, arrival, self._trust.zones)


def finish_of(request: ChatRequest, recalled: Recalled, names: LinkNames | None = None) -> Finish:
    """The body with its notes, and with the state that replaces its early messages. `names`: of the exchange, where
    later requests may continue it.
    """
    found, notes, compacted = recalled.found, recalled.found.notes, recalled.found.compacted
    if compacted is not None:
        notes = (Note(compacted.text), *notes)
    left_out = deletions(request, compacted) if compacted is not None else []
    edited = _changed(request.body, insert_notes(request, notes, left_out))
    placement = request.shape.refusable(request, notes)
    keys = found.note_keys if request.shape.has_chains else ()
    model = request.conversation.model if request.conversation is not None else ""
    opened = OpenedTurn(recalled.opened, model, names) if recalled.opened is not None else None
    return Finish(edited, ResponseInfo(found.status, found.count, found.receipt_id, placement, keys, opened))


def _with_switches(request: ChatRequest, headers: Headers) -> ChatRequest:
    """The request with what its headers switch; the body's own fields have priority."""
    wanted = _SWITCH.get(first_header(headers, COMPACT_HEADER).strip().lower())
    if wanted is None or request.options.compact is not None:
        return request
    return replace(request, options=replace(request.options, compact=wanted))


def _without_memory(request: ChatRequest, reason: str) -> Sequence[Command]:
    """Strip our fields. Clients that did not ask for memory get no header either."""
    if not request.has_memory_fields:
        return [Finish()]
    status = RecallStatus.DISABLED
    return [
        CountRequest(status, reason),
        Finish(_changed(request.body, insert_notes(request, ())), ResponseInfo(status)),
    ]


def _stripped(body: bytes) -> Sequence[Command]:
    """Report it if a request uses our fields on an API without memory."""
    try:
        stripped = _changed(body, strip_memory_fields(body))
    except NotAChat as error:
        return [CountPassed(error.reason), Finish()]
    if stripped is None:
        return [CountPassed("no_memory_api"), Finish()]
    return [CountRequest(RecallStatus.DISABLED, "no_memory_api"), Finish(stripped, ResponseInfo(RecallStatus.DISABLED))]


def _changed(before: bytes, after: bytes) -> bytes | None:
    """The new body, or None if it did not change, so that it need not be sent."""
    return None if after == before else after


def _unreadable(headers: Headers) -> str:
    """Why this body is not requested, or ""."""
    # a larger body, if its length is known, is not sent to us: copying it would take too long
    if number_in(headers, "content-length") > CHAT_BYTES_MAX:
        return "too_large"
    if first_header(headers, "content-encoding").strip().lower() not in ("", "identity"):
        return "content_encoding"
    return ""
