"""The reply side: a state machine for one exchange, which opens and closes a turn. It delays nothing.

| phase         | what comes                            | what happens                                 | next         |
|---------------|---------------------------------------|----------------------------------------------|--------------|
| AWAIT_REQUEST | headers of a chat                     | nothing                                      | REQUEST_BODY |
| REQUEST_BODY  | the last piece of the client's body   | `OpenTurn`, if a known user says news        | AWAIT_REPLY  |
| AWAIT_REPLY   | its status, where a note went along   | `NoteOutcome`: the template takes it or not  | REPLY_BODY   |
| REPLY_BODY    | the last piece of the reply           | `CloseTurn`: closed, or failed for an error  | DONE         |
| REPLY_BODY    | the stream ends before the reply does | `CloseTurn`: aborted, unless `[DONE]` came   | DONE         |
| (any)         | the reply first: Envoy's own answer   | nothing is recorded                          | DONE         |
| DONE          | anything                              | nothing                                      | DONE         |

An exchange that memory may not use, or that is not recorded, ends the observation where that shows (`_NEXT`).

Chunks may be split anywhere, even inside a character or an event; each body is assembled once, at its end, up to a
limit. No clock is read: `at` is when the shell received the message, in Unix seconds. Nothing is recorded without an
identity from `identify`, or if the request forbids it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import Enum, auto

from extproc.identity import Headers, IdentityMode, Metadata, first_header, identify
from extproc.reply import Reply, ReplyBuffer, read_reply
from memory.chat.completions import NotAChat, read_chat_request
from memory.model import CHAT_BYTES_MAX, Conversation, Message, Placement, Scope, Turn, TurnStatus, derived_session_id

HEAVY_REQUEST_BYTES = 1 << 20  # parsing more takes milliseconds, during which no other stream runs
HEAVY_REPLY_BYTES = 128 << 10  # likewise; a stream takes longer per byte than a request

CHAT_PATH = "/v1/chat/completions"
METADATA_NAMESPACE = "memory"  # namespace of the injecting filter's metadata for us
RECEIPT_KEY = "receipt"
PLACEMENT_KEY = "placement"  # of a note that a template might refuse
BAD_REQUEST = 400  # the answer of model servers if a template refuses the messages

_TRACE_PARENT = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}")


@dataclass(frozen=True, slots=True)
class OpenTurn:
    """Append this turn to the log."""

    turn: Turn


@dataclass(frozen=True, slots=True)
class CloseTurn:
    """Record how the turn ended. `is_over_cap`: the reply was too large to keep, so there is no answer."""

    turn_id: str
    status: TurnStatus
    answer: str
    answered_at: float
    receipt_id: str = ""
    is_over_cap: bool = False


@dataclass(frozen=True, slots=True)
class NoteOutcome:
    """Whether the upstream accepted a request with a note at `placement`. A refusal may have other causes."""

    model: str
    placement: Placement
    is_refused: bool


@dataclass(frozen=True, slots=True)
class _ObservedRequest:
    """A request that memory may use."""

    scope: Scope
    conversation: Conversation
    wants_record: bool


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
    REPLY = auto()  # headers of the reply to a turn that was opened
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
    once the reply has begun, also for requests that are not recorded.
    """

    def __init__(self, *, turn_id: str, mode: IdentityMode, is_recording: bool = True) -> None:
        """`is_recording` False: learning is disabled, and requests cannot enable it."""
        self._is_recording = is_recording
        self._turn_id = turn_id
        self._mode = mode
        self._phase = _Phase.AWAIT_REQUEST
        self._request_headers: Headers = ()
        self._request_chunks: list[bytes] = []
        self._request_size = 0
        self._is_open = False
        self._model = ""
        self.note_outcome: NoteOutcome | None = None
        self._reply_headers: Headers = ()
        self._reply = ReplyBuffer()
        self._receipt_id = ""

    @property
    def is_heavy(self) -> bool:
        """Whether a call that ends the current body would delay other streams."""
        if self._phase is _Phase.REQUEST_BODY:
            return self._request_size > HEAVY_REQUEST_BYTES
        return self._is_open and self._reply.size > HEAVY_REPLY_BYTES

    @property
    def is_idle(self) -> bool:
        """Whether no further event matters, so that the shell may stop listening."""
        return self._phase is _Phase.DONE

    def on_request_headers(self, headers: Headers, *, is_end: bool = False) -> None:
        """`is_end`: no body follows."""
        if self._phase is not _Phase.AWAIT_REQUEST:
            return
        self._request_headers = headers
        self._move(_Event.CHAT if not is_end and _is_readable_chat(headers) else _Event.END)

    def on_request_body(self, chunk: bytes, *, is_end: bool, at: float) -> OpenTurn | None:
        """The turn to open, at the end of a body with a new message of a known user."""
        if self._phase is not _Phase.REQUEST_BODY:
            return None
        self._request_size += len(chunk)
        if self._request_size > CHAT_BYTES_MAX:
            self._let_go()
            return None
        self._request_chunks.append(chunk)
        if not is_end:
            return None
        asked = self._asked()
        if asked is None:
            self._let_go()
            return None
        self._model = asked.conversation.model
        turn = self._turn(asked, at)
        self._request_chunks = []
        self._is_open = turn is not None
        self._move(_Event.QUESTION)
        return OpenTurn(turn) if turn else None

    def on_response_headers(
        self, headers: Headers, metadata: Metadata, *, at: float, is_end: bool = False
    ) -> CloseTurn | None:
        """The start of the reply, and its end where it has no body."""
        if self._phase is not _Phase.AWAIT_REPLY:
            if not self._is_open:  # the reply came before the end of the request: Envoy or the upstream refused it
                self._let_go()
            return None
        self._reply_headers = headers
        left = metadata.get(METADATA_NAMESPACE, {})
        receipt_id = left.get(RECEIPT_KEY)
        self._receipt_id = receipt_id if isinstance(receipt_id, str) else ""
        self.note_outcome = self._note_outcome(left.get(PLACEMENT_KEY), _status(headers))
        if not self._is_open:
            self._let_go()
            return None
        self._move(_Event.REPLY)
        return self._closed(at, is_whole=True) if is_end else None

    def on_response_body(self, chunk: bytes, *, is_end: bool, at: float) -> CloseTurn | None:
        """The end of the turn, at the end of the reply."""
        if self._phase is not _Phase.REPLY_BODY:
            return None
        self._reply.add(chunk)
        return self._closed(at, is_whole=True) if is_end else None

    def on_end(self, *, at: float) -> CloseTurn | None:
        """The stream has ended, failed or was cancelled. Idempotent."""
        if self._is_open and self._phase is not _Phase.DONE:
            return self._closed(at, is_whole=False)
        self._let_go()
        return None

    def _move(self, event: _Event) -> None:
        self._phase = _NEXT[self._phase, event]

    def _let_go(self) -> None:
        self._move(_Event.END)
        self._request_chunks = []
        self._request_headers = ()

    def _asked(self) -> _ObservedRequest | None:
        """The request, if memory may use it."""
        try:
            request = read_chat_request(b"".join(self._request_chunks))
        except NotAChat:
            return None
        scope = identify(self._request_headers, request.context, self._mode)
        if not isinstance(scope, Scope) or not request.options.enabled or request.conversation is None:
            return None
        return _ObservedRequest(
            scope, request.conversation, wants_record=self._is_recording and request.options.auto_store
        )

    def _turn(self, asked: _ObservedRequest, at: float) -> Turn | None:
        scope, said = asked.scope, _said(asked.conversation)
        if not (said and asked.wants_record):
            return None
        session_id = scope.session_id or derived_session_id(scope, asked.conversation)
        return Turn(
            id=self._turn_id,
            scope=replace(scope, session_id=session_id),
            at=at,
            messages=said,
            model=asked.conversation.model,
            trace_id=_trace_id(self._request_headers),
        )

    def _note_outcome(self, placement: object, status: int) -> NoteOutcome | None:
        """Errors other than 400 say nothing about the messages: overload, a wrong key, an unknown model."""
        is_taken = 200 <= status < 300
        if placement not in tuple(Placement) or not (is_taken or status == BAD_REQUEST):
            return None
        return NoteOutcome(self._model, Placement(str(placement)), is_refused=not is_taken)

    def _closed(self, at: float, *, is_whole: bool) -> CloseTurn:
        reply = self._read_reply(is_whole=is_whole)
        over_cap = self._reply.is_over_cap
        self._let_go()
        self._reply = ReplyBuffer()
        return CloseTurn(self._turn_id, reply.status, reply.text, at, self._receipt_id, over_cap)

    def _read_reply(self, *, is_whole: bool) -> Reply:
        if not self._reply_headers:
            return Reply(TurnStatus.ABORTED)
        status = _status(self._reply_headers)
        if self._reply.is_over_cap and 200 <= status < 300:
            return Reply(TurnStatus.CLOSED if is_whole else TurnStatus.ABORTED, reason="over_cap")
        reply = read_reply(status, self._reply_headers, self._reply.body())
        if is_whole or reply.is_done or reply.status is TurnStatus.FAILED:
            return reply  # clients disconnect as soon as they see `[DONE]`: the answer is complete
        return replace(reply, status=TurnStatus.ABORTED, text="")


def _is_readable_chat(headers: Headers) -> bool:
    path = first_header(headers, ":path").partition("?")[0]
    coding = first_header(headers, "content-encoding").strip().lower()
    return first_header(headers, ":method") == "POST" and path == CHAT_PATH and coding in ("", "identity")


def _status(headers: Headers) -> int:
    """The status code; 0 if Envoy sent none."""
    digits = first_header(headers, ":status")
    return int(digits) if digits.isascii() and digits.isdigit() else 0


def _said(conversation: Conversation) -> tuple[Message, ...]:
    """The user's new messages in this request that have text."""
    return tuple(message for message in conversation.new_user_messages() if message.content.strip())


def _trace_id(headers: Headers) -> str:
    found = _TRACE_PARENT.fullmatch(first_header(headers, "traceparent").strip())
    return found[1] if found else ""
