"""A server of `POST /v1/messages` as vLLM has it: what it sends, and what it was sent."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass, field

from message_objects import PATH, Item, message_events, message_object, text_block
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from upstream import Received, Recorder


@dataclass
class MessagesServer(Recorder):
    """Set `content` before a request: the blocks of the next answers. Read `received` after it."""

    content: list[list[Item]] = field(default_factory=list)  # in order; then it says "Noted."
    error: str = ""  # its message, in the place of an answer
    streamed: list[bytes] = field(default_factory=list)  # the events of the last stream
    ids: Iterator[int] = field(default_factory=itertools.count)

    def behave(self) -> None:
        """As at the start, but for what was received."""
        self.content.clear()
        self.error = ""

    async def _respond(self, request: Request) -> Response:
        body, path = await request.body(), request.url.path
        is_tokenizing = path.endswith(("/tokenize", "/apply-template"))  # the filter asks, beside a chat
        if is_tokenizing or request.method != "POST" or not path.startswith(PATH):
            return _refusal(404, "not found")
        self.received.append(Received(request.method, path, dict(request.headers), body))
        if self.error:
            return _refusal(400, self.error)
        try:
            asked = json.loads(body)
            _check(asked)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return _refusal(400, "bad request")
        if path != PATH:
            return JSONResponse({"input_tokens": len(body)})
        content = self.content.pop(0) if self.content else [text_block("Noted.")]
        message = message_object(content, message_id=f"msg_{next(self.ids)}")
        if asked.get("stream"):
            self.streamed = message_events(message)
            return StreamingResponse(iter(self.streamed), media_type="text/event-stream")
        return JSONResponse(message)


def _refusal(status: int, message: str) -> Response:
    error = {"type": "invalid_request_error", "message": message}
    return JSONResponse({"type": "error", "error": error}, status_code=status)


def _check(asked: Item) -> None:
    """Raises what a body of another shape leads to, as vLLM's types have it."""
    for message in asked["messages"]:
        if message["role"] not in ("user", "assistant", "system"):
            raise ValueError(message["role"])
        _check_content(message["content"])
    _check_content(asked.get("system") or "")


def _check_content(content: object) -> None:
    if not isinstance(content, str | list):
        raise TypeError(content)
    for block in content if isinstance(content, list) else ():
        if block["type"] == "text" and not isinstance(block["text"], str):
            raise TypeError(block)
