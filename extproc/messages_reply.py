"""Parses replies of Anthropic's Messages API, a JSON object or an event stream, into one text.

| the reply                                        | status  | text                      |
|--------------------------------------------------|---------|---------------------------|
| a message                                        | closed  | all of its text blocks    |
| a tool call that the client has to answer        | closed  | none: no final answer yet |
| a refusal, or nothing but thinking               | closed  | none, and a reason        |
| an error, also in the middle of a stream         | failed  | none                      |
| a stream with neither its end nor a stop reason  | aborted | none                      |

Tools of the server ("server_tool_use", "mcp_tool_use") have their results in the same reply. Nothing here raises,
whatever the input.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from extproc.reply import Reply, ReplyShape, decoded, without_reasoning
from extproc.sse import events
from memory.chat.messages import TOOL_CALL
from memory.model import TurnStatus

_NULL = msgspec.Raw(b"null")


class _Block(msgspec.Struct, gc=False):
    type: str | None = None
    text: str | None = None


class _Message(msgspec.Struct, gc=False):
    type: str | None = None
    model: str | None = None
    content: list[_Block] | None = None
    stop_reason: str | None = None
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
    message: _Message | None = None
    content_block: _Block | None = None
    delta: _Delta | None = None
    error: msgspec.Raw = _NULL


_MESSAGE = msgspec.json.Decoder(_Message)
_EVENT = msgspec.json.Decoder(_Event)


class _MessagesReplies:
    """`extproc.reply.ReplyShape` for Messages."""

    def from_json(self, body: bytes) -> Reply:
        message = decoded(_MESSAGE, body)
        if message is None:
            return Reply(TurnStatus.CLOSED, reason="not_understood")
        if message.is_error:
            return Reply(TurnStatus.FAILED, reason="error")
        return _reply(message.content or (), message.model or "", message.stop_reason or "", is_done=False)

    def id_at_end(self, tail: bytes) -> str:
        return ""  # no later request names a message

    def from_stream(self, body: bytes) -> Reply:
        seen = _Stream()
        for payload in events(body):
            event = decoded(_EVENT, payload)
            if event is None:
                continue
            if event.type == "error" or bytes(event.error) != b"null":
                return Reply(TurnStatus.FAILED, reason="error")
            if event.type == "message_stop":
                return seen.reply(is_done=True)
            seen.add(event)
        return seen.reply(is_done=False) if seen.stop_reason else Reply(TurnStatus.ABORTED, reason="cut_off")


MESSAGES_REPLIES: ReplyShape = _MessagesReplies()


@dataclass(slots=True)
class _Stream:
    """The events of a stream so far: kind and text of each block, by index."""

    model: str = ""
    stop_reason: str = ""
    kinds: dict[int, str] = field(default_factory=dict)
    pieces: dict[int, list[str]] = field(default_factory=dict)

    def add(self, event: _Event) -> None:
        match event.type:
            case "message_start" if event.message is not None:
                self.model = event.message.model or ""
            case "content_block_start" if event.content_block is not None:
                self.kinds[event.index] = event.content_block.type or ""
                self.pieces[event.index] = [event.content_block.text or ""]
            case "content_block_delta" if event.delta is not None:
                self.pieces.setdefault(event.index, []).append(event.delta.text or "")
            case "message_delta" if event.delta is not None:
                self.stop_reason = event.delta.stop_reason or self.stop_reason

    def reply(self, *, is_done: bool) -> Reply:
        blocks = [_Block(self.kinds.get(at, "text"), "".join(said)) for at, said in sorted(self.pieces.items())]
        return _reply(blocks, self.model, self.stop_reason, is_done=is_done)


def _reply(blocks: Iterable[_Block], model: str, stop_reason: str, *, is_done: bool) -> Reply:
    blocks = tuple(blocks)
    has_calls = any(block.type == TOOL_CALL for block in blocks)
    said = "\n".join(block.text for block in blocks if block.type == "text" and block.text)
    text = "" if has_calls else without_reasoning(said)
    why = "tool_calls" if has_calls else "refusal" if stop_reason == "refusal" else "no_text"
    return Reply(
        TurnStatus.CLOSED,
        text=text,
        model=model,
        finish_reason=stop_reason,
        has_tool_calls=has_calls,
        is_done=is_done,
        reason="" if text else why,
    )
