"""What the model answered: the bytes of a reply, JSON or server-sent events, become one text.

| the reply                                              | status  | text                      |
|--------------------------------------------------------|---------|---------------------------|
| not 2xx, or an error inside a 2xx                      | failed  | none                      |
| a stream with neither `[DONE]` nor a finish reason     | aborted | none                      |
| tool calls                                             | closed  | none: no final answer yet |
| several choices                                        | closed  | the first that has text   |
| a coding, a type or a shape that we cannot read        | closed  | none, and a reason        |

Reasoning is no part of the answer. This step must never raise, whatever came: the client has its reply already.
"""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

import msgspec

from extproc.identity import Headers, first_header
from extproc.sse import events
from memory.chat.completions import Content, text_of
from memory.chat.json_spans import NotJson, well_formed
from memory.model import TurnStatus

REPLY_BYTES_MAX = 1 << 20  # as it came over the wire: past it we forward but do not keep; an answer has a few KB
HEAD_BYTES_MAX = 64 << 10  # kept of one that is larger: a stream's first event says under which id the server keeps it
INFLATED_BYTES_MAX = 8 << 20  # a megabyte of gzip can hold a gigabyte of zeros
GZIP_MEMBERS_MAX = 16  # one is usual; each further one copies what is left

_REASONING = re.compile(r"\s*<think>.*?(?:</think>\s*|\Z)", re.DOTALL)
_EVENT_STARTS = (b"data:", b"event:", b"id:", b"retry:", b":", b"\xef\xbb\xbf")
_NULL = msgspec.Raw(b"null")

Value = TypeVar("Value")


class ReplyBuffer:
    """Collects a reply. Past `REPLY_BYTES_MAX` it lets go of everything but the beginning, and says so."""

    def __init__(self) -> None:
        self.size = 0
        self._head = b""
        self._chunks: list[bytes] = []

    @property
    def is_over_cap(self) -> bool:
        return self.size > REPLY_BYTES_MAX

    def add(self, chunk: bytes) -> None:
        self.size += len(chunk)
        if self.is_over_cap:
            self._head = self._head or b"".join([*self._chunks, chunk])[:HEAD_BYTES_MAX]
            self._chunks.clear()
        elif chunk:
            self._chunks.append(chunk)

    def body(self) -> bytes:
        """All that came, or its beginning if it was too much."""
        return self._head or b"".join(self._chunks)


@dataclass(frozen=True, slots=True)
class Reply:
    """How the reply ended and what it says. `reason` is a short label where there is no text, else ""."""

    status: TurnStatus
    text: str = ""
    model: str = ""
    finish_reason: str = ""
    has_tool_calls: bool = False
    is_done: bool = False  # a stream that said it is complete
    reason: str = ""
    response_id: str = ""  # under which the server keeps this reply, where the API has such a thing


class ReplyShape(Protocol):
    """How one API answers. Both must never raise."""

    def from_json(self, body: bytes) -> Reply:
        """A reply that came in one piece."""
        ...

    def from_stream(self, body: bytes) -> Reply:
        """Server-sent events, all that came of them."""
        ...


class _Message(msgspec.Struct, gc=False):
    content: Content = None
    tool_calls: list[msgspec.Raw] | None = None
    function_call: dict[str, msgspec.Raw] | None = None


class _Choice(msgspec.Struct, gc=False):
    index: int = 0
    delta: _Message | None = None
    message: _Message | None = None
    finish_reason: str | None = None


class _Completion(msgspec.Struct, gc=False):
    """A whole completion, or one chunk of a streamed one."""

    choices: list[_Choice] | None = None
    model: str | None = None
    object: str | None = None
    error: msgspec.Raw = _NULL

    @property
    def is_error(self) -> bool:
        return self.object == "error" or bytes(self.error) != b"null"


_COMPLETION = msgspec.json.Decoder(_Completion)


@dataclass(slots=True)
class _Spoken:
    """What one choice has said so far."""

    pieces: list[str] = field(default_factory=list)
    finish_reason: str = ""
    has_tool_calls: bool = False

    def add(self, choice: _Choice) -> None:
        for message in (choice.delta, choice.message):
            if message is not None:
                self.pieces.append(text_of(message.content))
                self.has_tool_calls = self.has_tool_calls or bool(message.tool_calls or message.function_call)
        self.finish_reason = choice.finish_reason or self.finish_reason

    def text(self) -> str:
        return "" if self.has_tool_calls else without_reasoning("".join(self.pieces))


@dataclass(slots=True)
class _Heard:
    """All choices of a reply, by their index, while it is read."""

    choices: dict[int, _Spoken] = field(default_factory=dict)
    model: str = ""

    def add(self, completion: _Completion) -> None:
        self.model = self.model or completion.model or ""
        for choice in completion.choices or ():
            self.choices.setdefault(choice.index, _Spoken()).add(choice)

    def reply(self, *, is_done: bool) -> Reply:
        in_order = [self.choices[index] for index in sorted(self.choices)]
        texts = [choice.text() for choice in in_order]
        chosen = next((index for index, text in enumerate(texts) if text), 0)
        has_tool_calls = any(choice.has_tool_calls for choice in in_order)
        text = texts[chosen] if texts else ""
        return Reply(
            TurnStatus.CLOSED,
            text=text,
            model=self.model,
            finish_reason=in_order[chosen].finish_reason if in_order else "",
            has_tool_calls=has_tool_calls,
            is_done=is_done,
            reason="" if text else "tool_calls" if has_tool_calls else "no_text",
        )


def read_reply(status: int, headers: Headers, body: bytes, shape: ReplyShape | None = None) -> Reply:
    """Read a reply that has ended, by default a chat completion's. Pure; some 2 microseconds per event of a stream."""
    shape = shape or COMPLETION_REPLIES
    if not 200 <= status < 300:
        return Reply(TurnStatus.FAILED, reason="status")
    try:
        body = _inflated(first_header(headers, "content-encoding").strip().lower(), body)
    except _Unreadable as error:
        return Reply(TurnStatus.CLOSED, reason=error.reason)
    start = body[:64].lstrip()
    if start.startswith(b"{"):
        return shape.from_json(body)
    is_stream = first_header(headers, "content-type").strip().lower().startswith("text/event-stream")
    if is_stream or start.startswith(_EVENT_STARTS):
        return shape.from_stream(body)
    return Reply(TurnStatus.CLOSED, reason="not_understood" if start else "empty")


def without_reasoning(text: str) -> str:
    """The text without a `<think>` block at its beginning; a block that never ends is all there is."""
    return _REASONING.sub("", text, count=1) if text.lstrip().startswith("<think>") else text


class _Unreadable(Exception):
    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class _CompletionReplies:
    """`ReplyShape` for chat completions."""

    def from_json(self, body: bytes) -> Reply:
        completion = decoded(_COMPLETION, body)
        if completion is None:
            return Reply(TurnStatus.CLOSED, reason="not_understood")
        if completion.is_error:
            return Reply(TurnStatus.FAILED, reason="error")
        heard = _Heard()
        heard.add(completion)
        return heard.reply(is_done=False)

    def from_stream(self, body: bytes) -> Reply:
        heard = _Heard()
        for payload in events(body):
            if payload.strip() == b"[DONE]":
                return heard.reply(is_done=True)
            chunk = decoded(_COMPLETION, payload)
            if chunk is None:
                continue
            if chunk.is_error:
                return Reply(TurnStatus.FAILED, reason="error")
            heard.add(chunk)
        if not any(choice.finish_reason for choice in heard.choices.values()):
            return Reply(TurnStatus.ABORTED, reason="cut_off")
        return heard.reply(is_done=False)


COMPLETION_REPLIES: ReplyShape = _CompletionReplies()


def decoded(decoder: msgspec.json.Decoder[Value], body: bytes) -> Value | None:
    """What a reply, or one event of it, says; None for what is something else."""
    try:
        return decoder.decode(body)
    except (msgspec.ValidationError, RecursionError):
        return None
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass
    try:  # the rare reply with broken characters: they are no reason to lose the others
        return decoder.decode(well_formed(body.decode(errors="replace").encode()))
    except (msgspec.DecodeError, RecursionError, NotJson):
        return None


# Codings


def _inflated(coding: str, body: bytes) -> bytes:
    """The body without its content coding; as much of it as there is where it was cut off."""
    try:
        match coding:
            case "" | "identity":
                return body
            case "gzip" | "x-gzip":
                return _members(body, wbits=31)
            case "deflate":  # zlib's wrapping by the book; without it by some
                return _members(body, wbits=15 if body[:1] and body[0] & 0x0F == 8 else -15)
            case _:
                raise _Unreadable("coding")
    except zlib.error:
        raise _Unreadable("coding") from None


def _members(body: bytes, *, wbits: int) -> bytes:
    """One compressed member after another, up to `INFLATED_BYTES_MAX`."""
    pieces: list[bytes] = []
    room = INFLATED_BYTES_MAX
    for _ in range(GZIP_MEMBERS_MAX):
        inflater = zlib.decompressobj(wbits)
        pieces.append(inflater.decompress(body, room + 1))
        room -= len(pieces[-1])
        if room < 0:
            raise _Unreadable("inflated_too_large")
        body = inflater.unused_data
        if not body:
            return b"".join(pieces)
    raise _Unreadable("coding")
