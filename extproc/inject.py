"""The request side: what happens to one request, in which order. Events in, commands out; it never waits for anything.

It must never hold a request that it could pass on, and never let our own fields through where it answers.

| state          | event                              | commands                                   | next           |
|----------------|------------------------------------|--------------------------------------------|----------------|
| AWAIT_HEADERS  | not ours, too large, or encoded    | Count, Proceed(wants_body=False)           | DONE           |
| AWAIT_HEADERS  | a POST that we understand          | Proceed(wants_body=True)                   | AWAIT_BODY     |
| AWAIT_BODY     | of an API without memory           | Count, Finish(stripped where need be)      | DONE           |
| AWAIT_BODY     | not JSON                           | Count, Finish(untouched)                   | DONE           |
| AWAIT_BODY     | nobody we know, or nothing to do   | Count, Finish(stripped where need be)      | DONE           |
| AWAIT_BODY     | a conversation of somebody we know | Recall, with what filters ahead say of it  | AWAIT_RECALL   |
| AWAIT_RECALL   | recalled                           | Finish(stripped, with the notes)           | DONE           |

Reading and editing happen inside `on`; the shell runs `on` in a thread where `is_heavy` says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TypeAlias

from extproc.apis import API_BY_PATH, STRIPPED_PATHS
from extproc.identity import Anonymous, Headers, IdentityMode, Metadata, RefusalReason, Refused, first_header, identify
from extproc.upstream_signals import SignalReader
from memory.chat.api_shape import ApiShape
from memory.chat.completions import ChatRequest, NotAChat, edit, read, strip
from memory.model import CHAT_BYTES_MAX, Note, Placement, RecallStatus, Scope
from memory.recall.signals.upstream import NO_SIGNALS, UpstreamSignals

HEAVY_BODY_BYTES = 1 << 20  # reading 1 MiB takes some milliseconds, in which no other stream would move


@dataclass(frozen=True, slots=True)
class RequestHeaders:
    """The first event. `is_end`: no body follows. `metadata` is what filters ahead of us wrote down."""

    headers: Headers
    is_end: bool = False
    metadata: Metadata = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RequestBody:
    """The whole body: Envoy buffers it."""

    body: bytes


@dataclass(frozen=True, slots=True)
class Recalled:
    """The answer to `Recall`: what memory found, and the notes that go into the body."""

    status: RecallStatus
    count: int = 0
    receipt_id: str = ""
    notes: tuple[Note, ...] = ()


Event: TypeAlias = RequestHeaders | RequestBody | Recalled


@dataclass(frozen=True, slots=True)
class Proceed:
    """Answer the headers. Without a wish for the body the stream ends here."""

    wants_body: bool


@dataclass(frozen=True, slots=True)
class Recall:
    """Ask memory, and come back with `Recalled`."""

    scope: Scope
    request: ChatRequest
    upstream: UpstreamSignals = NO_SIGNALS


@dataclass(frozen=True, slots=True)
class Receipt:
    """What the client is told in response headers. An empty `receipt_id` is left out.

    `placement` is for our observer alone: where a note stands that the model's template might refuse. None where there
    is nothing to refuse: no note, or one inside a system message of the client's own.
    """

    status: RecallStatus
    count: int = 0
    receipt_id: str = ""
    placement: Placement | None = None


@dataclass(frozen=True, slots=True)
class Finish:
    """Answer the body. None leaves the body, or says nothing to the client."""

    body: bytes | None = None
    receipt: Receipt | None = None


@dataclass(frozen=True, slots=True)
class CountPassed:
    """A body passed on untouched because we could not read it."""

    reason: str


@dataclass(frozen=True, slots=True)
class CountRefused:
    """An identity that was not believed."""

    reason: RefusalReason


@dataclass(frozen=True, slots=True)
class CountRequest:
    """A chat that was answered without asking recall; recall counts its own."""

    status: RecallStatus
    reason: str


Command: TypeAlias = Proceed | Recall | Finish | CountPassed | CountRefused | CountRequest


class State(Enum):
    AWAIT_HEADERS = auto()
    AWAIT_BODY = auto()
    AWAIT_RECALL = auto()
    DONE = auto()


class OutOfOrder(Exception):
    """Envoy, or our own shell, sent what cannot come now."""


class Injection:
    """One request. Feed every event to `on`, in order, and do what it returns, in order."""

    def __init__(self, mode: IdentityMode, signals: SignalReader) -> None:
        self.state = State.AWAIT_HEADERS
        self._mode = mode
        self._signals = signals
        self._headers: Headers = ()
        self._upstream = NO_SIGNALS
        self._shape: ApiShape | None = None
        self._request: ChatRequest | None = None

    def is_heavy(self, event: Event) -> bool:
        """Whether `on(event)` would keep other streams waiting."""
        match event:
            case RequestBody(body):
                return len(body) > HEAVY_BODY_BYTES
            case Recalled():
                return self._request is not None and len(self._request.body) > HEAVY_BODY_BYTES
            case RequestHeaders():
                return False

    def on(self, event: Event) -> Sequence[Command]:
        """Raises `OutOfOrder`, and then knows no more."""
        match self.state, event:
            case State.AWAIT_HEADERS, RequestHeaders(headers, is_end, metadata):
                return self._on_headers(headers, metadata, is_end=is_end)
            case State.AWAIT_BODY, RequestBody(body):
                self.state = State.DONE
                return self._on_chat(body, self._shape) if self._shape is not None else _stripped(body)
            case State.AWAIT_RECALL, Recalled(status, count, receipt_id, notes):
                self.state = State.DONE
                assert self._request is not None
                edited = _changed(self._request.body, edit(self._request, notes))
                return [
                    Finish(
                        edited, Receipt(status, count, receipt_id, self._request.shape.refusable(self._request, notes))
                    )
                ]
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
        self._upstream = self._signals.read(headers, metadata)
        self.state = State.AWAIT_BODY
        return [Proceed(wants_body=True)]

    def _on_chat(self, body: bytes, shape: ApiShape) -> Sequence[Command]:
        try:
            request = read(body, shape)
        except NotAChat as error:
            return [CountPassed(error.reason), Finish()]
        scope = identify(self._headers, request.context, self._mode, request.named_user)
        match scope:
            case Refused(reason):
                return [CountRefused(reason), *_without_memory(request, "identity_refused")]
            case Anonymous():
                return _without_memory(request, "no_identity")
        if not request.options.enabled:
            return _without_memory(request, "not_understood" if request.problems else "disabled")
        if request.conversation is None:
            return [CountPassed("no_conversation"), *_without_memory(request, "no_conversation")]
        self._request = request
        self.state = State.AWAIT_RECALL
        return [Recall(scope, request, self._upstream)]


def _without_memory(request: ChatRequest, reason: str) -> Sequence[Command]:
    """Our fields out. Who did not ask for memory is not told about it either."""
    if not request.has_memory_fields:
        return [Finish()]
    status = RecallStatus.DISABLED
    return [CountRequest(status, reason), Finish(_changed(request.body, edit(request, ())), Receipt(status))]


def _stripped(body: bytes) -> Sequence[Command]:
    """Who asks for memory where the API has none is told."""
    try:
        stripped = _changed(body, strip(body))
    except NotAChat as error:
        return [CountPassed(error.reason), Finish()]
    if stripped is None:
        return [CountPassed("no_memory_api"), Finish()]
    return [CountRequest(RecallStatus.DISABLED, "no_memory_api"), Finish(stripped, Receipt(RecallStatus.DISABLED))]


def _changed(before: bytes, after: bytes) -> bytes | None:
    """The new body, or None where it is the old one: then nothing need cross the wire again."""
    return None if after == before else after


def _unreadable(headers: Headers) -> str:
    """Why we do not want this body, or ""."""
    length = first_header(headers, "content-length")
    # the copy alone of a body that is known to be larger would take longer than it may
    if length.isascii() and length.isdigit() and int(length[:20]) > CHAT_BYTES_MAX:
        return "too_large"
    if first_header(headers, "content-encoding").strip().lower() not in ("", "identity"):
        return "content_encoding"
    return ""
