"""Parses a complete reply, JSON or server-sent events, into one text.

| the reply                                              | status  | text                      |
|--------------------------------------------------------|---------|---------------------------|
| not 2xx, or an error inside a 2xx                      | failed  | none                      |
| a stream with neither `[DONE]` nor a finish reason     | aborted | none                      |
| tool calls                                             | closed  | none: no final answer yet |
| several choices                                        | closed  | the first that has text   |
| a coding, a type or a shape that we cannot read        | closed  | none                      |

Reasoning is not part of the answer. This step never raises: the client already has its reply.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec

from extproc.identity import Headers, first_header
from memory.chat.completions import Content, text_of
from memory.chat.json_spans import BYTE_ORDER_MARK, NotJson, well_formed
from memory.model import TurnStatus

REPLY_BYTES_MAX = 1 << 20  # as received: beyond it the reply is forwarded but not kept; an answer has a few KB
PART_BYTES_MAX = 64 << 10  # kept of the beginning of a larger one, where the id of the response stands
INFLATED_BYTES_MAX = 8 << 20  # a megabyte of gzip can expand to a gigabyte
GZIP_MEMBERS_MAX = 16  # one is usual; each further one copies the rest

_REASONING = re.compile(r"\s*<think>.*?(?:</think>\s*|\Z)", re.DOTALL)
_EVENT_STARTS = (b"data:", b"event:", b"id:", b"retry:", b":", BYTE_ORDER_MARK)
_NULL = msgspec.Raw(b"null")

Value = TypeVar("Value")


class ReplyBuffer:
    """Collects a reply. Beyond `REPLY_BYTES_MAX` it keeps only the beginning, and sets `is_over_cap`."""

    def __init__(self) -> None:
        self.size = 0
        self._head = b""
        self._chunks: list[bytes] = []

    @property
    def is_over_cap(self) -> bool:
        return self.size > REPLY_BYTES_MAX

    def add(self, chunk: bytes) -> None:
        self.size += len(chunk)
        if self._head:
            return
        self._chunks.append(chunk)
        if self.is_over_cap:
            self._head = self.body()[:PART_BYTES_MAX]
            self._chunks.clear()

    def body(self) -> bytes:
        """The whole body, or its beginning if it was too large."""
        return self._head or b"".join(self._chunks)


@dataclass(frozen=True, slots=True)
class Reply:
    status: TurnStatus
    text: str = ""
    has_tool_calls: bool = False
    is_done: bool = False  # a stream that said that it is complete
    response_id: str = ""  # id under which the server stores this reply, if the API has one


@dataclass(frozen=True, slots=True)
class ReplyShape:
    """The reply format of one API. `from_stream` parses server-sent events, as far as received. Neither raises."""

    from_json: Callable[[bytes], Reply]
    from_stream: Callable[[bytes], Reply]


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
    object: str | None = None
    error: msgspec.Raw = _NULL

    @property
    def is_error(self) -> bool:
        return self.object == "error" or bytes(self.error) != b"null"


_COMPLETION = msgspec.json.Decoder(_Completion)


@dataclass(slots=True)
class _ChoiceText:
    pieces: list[str] = field(default_factory=list)
    is_finished: bool = False
    has_tool_calls: bool = False

    def add(self, choice: _Choice) -> None:
        for message in (choice.delta, choice.message):
            if message is not None:
                self.pieces.append(text_of(message.content))
                self.has_tool_calls = self.has_tool_calls or bool(message.tool_calls or message.function_call)
        self.is_finished = self.is_finished or bool(choice.finish_reason)

    def text(self) -> str:
        return "" if self.has_tool_calls else without_reasoning("".join(self.pieces))


def _reply(choices: Mapping[int, _ChoiceText], *, is_done: bool) -> Reply:
    in_order = [choices[index] for index in sorted(choices)]
    return Reply(
        TurnStatus.CLOSED,
        text=next(filter(None, (choice.text() for choice in in_order)), ""),
        has_tool_calls=any(choice.has_tool_calls for choice in in_order),
        is_done=is_done,
    )


def read_reply(status: int, headers: Headers, body: bytes, shape: ReplyShape | None = None) -> Reply:
    """Parse a complete reply, by default of a chat completion. Pure; about 2 microseconds per event of a stream."""
    shape = shape or COMPLETION_REPLIES
    if not 200 <= status < 300:
        return Reply(TurnStatus.FAILED)
    inflated = _inflated(first_header(headers, "content-encoding").strip().lower(), body)
    if inflated is None:
        return Reply(TurnStatus.CLOSED)
    start = inflated[:64].lstrip()
    if start.startswith(b"{"):
        return shape.from_json(inflated)
    is_stream = first_header(headers, "content-type").strip().lower().startswith("text/event-stream")
    if is_stream or start.startswith(_EVENT_STARTS):
        return shape.from_stream(inflated)
    return Reply(TurnStatus.CLOSED)


def without_reasoning(text: str) -> str:
    """The text without a leading `<think>` block; if the block never ends, nothing is left."""
    return _REASONING.sub("", text, count=1) if text.lstrip().startswith("<think>") else text


def _from_json(body: bytes) -> Reply:
    completion = decoded(_COMPLETION, body)
    if completion is None:
        return Reply(TurnStatus.CLOSED)
    if completion.is_error:
        return Reply(TurnStatus.FAILED)
    choices: dict[int, _ChoiceText] = {}
    _add(completion, choices)
    return _reply(choices, is_done=False)


def _from_stream(body: bytes) -> Reply:
    choices: dict[int, _ChoiceText] = {}
    for payload in events(body):
        if payload.strip() == b"[DONE]":
            return _reply(choices, is_done=True)
        chunk = decoded(_COMPLETION, payload)
        if chunk is None:
            continue
        if chunk.is_error:
            return Reply(TurnStatus.FAILED)
        _add(chunk, choices)
    is_finished = any(choice.is_finished for choice in choices.values())
    return _reply(choices, is_done=False) if is_finished else Reply(TurnStatus.ABORTED)


def _add(completion: _Completion, choices: dict[int, _ChoiceText]) -> None:
    for choice in completion.choices or ():
        choices.setdefault(choice.index, _ChoiceText()).add(choice)


COMPLETION_REPLIES = ReplyShape(_from_json, _from_stream)


def decoded(decoder: msgspec.json.Decoder[Value], body: bytes) -> Value | None:
    """A decoded reply, or event of it; None if it does not match the type."""
    try:
        return decoder.decode(body)
    except (msgspec.ValidationError, RecursionError):
        return None
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass
    try:  # invalid characters in a rare chunk must not affect the others
        return decoder.decode(well_formed(body.decode(errors="replace").encode()))
    except (msgspec.DecodeError, RecursionError, NotJson):
        return None


# The events of a stream, split once at its end, so that chunk boundaries do not matter


def events(body: bytes) -> Iterator[bytes]:
    """The data of every event, in order; several data lines of one event are joined by LF.

    Lines end with LF, CRLF or CR. Comments, other fields and events without data are left out. Unlike in a browser, a
    last event without a blank line counts: some servers close right after `data: [DONE]`.
    """
    data: list[bytes] = []
    for line in _lines(body.removeprefix(BYTE_ORDER_MARK)):
        if not line:
            if data:
                yield b"\n".join(data)
                data = []
        elif line.startswith(b"data:"):
            data.append(line[5:].removeprefix(b" "))
        elif line == b"data":
            data.append(b"")
    if data:
        yield b"\n".join(data)


def _lines(body: bytes) -> Iterator[bytes]:
    """Lines without line ends, one at a time: a body of line ends only must not become millions of objects."""
    if b"\r" in body:
        body = body.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    start = 0
    while (end := body.find(b"\n", start)) >= 0:
        yield body[start:end]
        start = end + 1
    if start < len(body):
        yield body[start:]


# Content codings


def _inflated(coding: str, body: bytes) -> bytes | None:
    """The decompressed body; of a truncated one as much as there is. None if it cannot be read."""
    try:
        match coding:
            case "" | "identity":
                return body
            case "gzip" | "x-gzip":
                return _members(body, wbits=31)
            case "deflate":  # with zlib's header as specified; some servers omit it
                return _members(body, wbits=15 if body[:1] and body[0] & 0x0F == 8 else -15)
            case _:
                return None
    except zlib.error:
        return None


def _members(body: bytes, *, wbits: int) -> bytes | None:
    """The concatenated compressed members; None for too many, or for more than `INFLATED_BYTES_MAX`."""
    pieces: list[bytes] = []
    room = INFLATED_BYTES_MAX
    for _ in range(GZIP_MEMBERS_MAX):
        inflater = zlib.decompressobj(wbits)
        pieces.append(inflater.decompress(body, room + 1))
        room -= len(pieces[-1])
        if room < 0:
            return None
        body = inflater.unused_data
        if not body:
            return b"".join(pieces)
    return None
