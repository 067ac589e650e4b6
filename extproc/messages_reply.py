"""Parses replies of Anthropic's Messages API, a JSON object or an event stream, into one text.

| the reply                                        | status  | text                      |
|--------------------------------------------------|---------|---------------------------|
| a message                                        | closed  | all of its text blocks    |
| a tool call that the client has to answer        | closed  | none: no final answer yet |
| a refusal, or nothing but thinking               | closed  | none                      |
| an error, also in the middle of a stream         | failed  | none                      |
| a stream with neither its end nor a stop reason  | aborted | none                      |

Tools of the server ("server_tool_use", "mcp_tool_use") have their results in the same reply. Nothing here raises,
whatever the input.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from extproc.reply import Reply, ReplyShape, decoded, events, without_reasoning
from memory.chat.messages import TOOL_CALL
from memory.model import TurnStatus

_NULL = msgspec.Raw(b"null")


class _Block(msgspec.Struct, gc=False):
    type: str | None = None
    text: str | None = None


class _Message(msgspec.Struct, gc=False):
    type: str | None = None
    content: list[_Block] | None = None
    error: msgspec.Raw = _NULL

    @property
    def is_error(self) -> bool:
        return self.type == "error" or bytes(self.error) != b"null"


class _Delta(msgspec.Struct, gc=False):
    text: str | None = None
    stop_reason: str | None = None


class _Event(msgspec.Struct, gc=False):
    """One event; of unused kinds only the type is read."""

    type: str | None = None
    index: int = 0
    content_block: _Block | None = None
    delta: _Delta | None = None
    error: msgspec.Raw = _NULL


_MESSAGE = msgspec.json.Decoder(_Message)
_EVENT = msgspec.json.Decoder(_Event)


def _from_json(body: bytes) -> Reply:
    message = decoded(_MESSAGE, body)
    if message is None:
        return Reply(TurnStatus.CLOSED)
    if message.is_error:
        return Reply(TurnStatus.FAILED)
    return _reply(message.content or (), is_done=False)


def _from_stream(body: bytes) -> Reply:
    seen = _Stream()
    for payload in events(body):
        event = decoded(_EVENT, payload)
        if event is None:
            continue
        if event.type == "error" or bytes(event.error) != b"null":
            return Reply(TurnStatus.FAILED)
        if event.type == "message_stop":
            return seen.reply(is_done=True)
        seen.add(event)
    return seen.reply(is_done=False) if seen.has_stopped else Reply(TurnStatus.ABORTED)


MESSAGES_REPLIES = ReplyShape(_from_json, _from_stream)


@dataclass(slots=True)
class _Stream:
    """The events of a stream so far: kind and text of each block, by index."""

    has_stopped: bool = False  # and said why
    kinds: dict[int, str] = field(default_factory=dict)
    pieces: dict[int, list[str]] = field(default_factory=dict)

    def add(self, event: _Event) -> None:
        match event.type:
            case "content_block_start" if event.content_block is not None:
                self.kinds[event.index] = event.content_block.type or ""
                self.pieces[event.index] = [event.content_block.text or ""]
            case "content_block_delta" if event.delta is not None:
                self.pieces.setdefault(event.index, []).append(event.delta.text or "")
            case "message_delta" if event.delta is not None:
                self.has_stopped = self.has_stopped or bool(event.delta.stop_reason)

    def reply(self, *, is_done: bool) -> Reply:
        blocks = [_Block(self.kinds.get(at, "text"), "".join(said)) for at, said in sorted(self.pieces.items())]
        return _reply(blocks, is_done=is_done)


def _reply(blocks: Sequence[_Block], *, is_done: bool) -> Reply:
    has_calls = any(block.type == TOOL_CALL for block in blocks)
    said = "\n".join(block.text for block in blocks if block.type == "text" and block.text)
    text = "" if has_calls else without_reasoning(said)
    return Reply(TurnStatus.CLOSED, text=text, has_tool_calls=has_calls, is_done=is_done)
