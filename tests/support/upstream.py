"""An OpenAI-compatible server that remembers, byte for byte, what reached it. It stands where vLLM would stand."""

from __future__ import annotations

import asyncio
import json
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from message_objects import PATH as MESSAGES_PATH
from message_objects import message_events, message_object, text_block
from response_objects import PATH as RESPONSES_PATH
from response_objects import Item, event_stream, response_object, text_item
from served_app import served
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

CHATS = {"/v1/chat/completions": "messages", RESPONSES_PATH: "input", MESSAGES_PATH: "messages"}
"""Each path with the member that has the messages."""


@dataclass(frozen=True, slots=True)
class Received:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    def json(self) -> dict[str, object]:
        return json.loads(self.body)

    def system_text(self) -> str:
        """All that stands in system messages: where a note would be."""
        messages = self.json()["messages"]
        return "\n".join(str(m["content"]) for m in messages if m["role"] == "system")


@dataclass
class Recorder(ABC):
    """A server of a test, with what it was sent."""

    received: list[Received] = field(default_factory=list)
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def last(self) -> Item:
        """The last body that came."""
        found: Item = json.loads(self.received[-1].body)
        return found

    async def _respond(self, request: Request) -> Response:
        body, path = await request.body(), request.url.path
        asks_itself = path.endswith("/v1/models") and "aiohttp" in request.headers.get("user-agent", "")
        if path.endswith(("/tokenize", "/apply-template")) or asks_itself:  # the filter's question beside a chat
            return refused(404, "not found")
        self.received.append(Received(request.method, path, dict(request.headers), body))
        try:
            return await self._answer(request.method, path, body)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return refused(400, "bad request")

    @abstractmethod
    async def _answer(self, method: str, path: str, body: bytes) -> Response:
        """Raises what a body of another shape leads to."""


def refused(status: int, message: str) -> Response:
    """As vLLM's APIs say it, each with some of these members."""
    error = {"message": message, "type": "BadRequestError", "code": status}
    return JSONResponse({"type": "error", "error": error}, status_code=status)


def streamed_or_whole(asked: Item, whole: Item, events: list[bytes], headers: dict[str, str] | None = None) -> Response:
    """As the body asks for it."""
    if asked.get("stream"):
        return StreamingResponse(iter(events), media_type="text/event-stream")
    return JSONResponse(whole, headers=headers)


AnyRecorder = TypeVar("AnyRecorder", bound=Recorder)


@contextmanager
def recording(server: AnyRecorder) -> Iterator[AnyRecorder]:
    """It answers whatever comes to a port of its own."""
    methods = ["GET", "POST", "PUT", "DELETE", "PATCH"]
    app = Starlette(routes=[Route("/{path:path}", server._respond, methods=methods)])
    with served(app, timeout_keep_alive=5) as server.port:
        yield server


@dataclass
class RecordingUpstream(Recorder):
    """Set `answer`, `status` or `chunk_seconds` between requests; read `received` and `streamed` after them."""

    answer: str = "Noted."
    message: dict[str, object] | None = None  # in the place of an answer, where nothing is streamed
    status: int = 200
    chunk_seconds: float = 0.0
    chunk_count: int = 0  # 0: one chunk for each word
    more_headers: dict[str, str] = field(default_factory=dict)
    is_held: bool = False  # whether chats wait for their answer
    later_system: int = 200  # the status of a chat with a system message that is not the first, in llama.cpp's words
    streamed: list[bytes] = field(default_factory=list)

    def behave(self) -> None:
        """As at the start, but for what was received."""
        self.answer, self.status = "Noted.", 200
        self.message = None
        self.chunk_seconds, self.chunk_count = 0.0, 0
        self.more_headers = {}
        self.is_held = False
        self.later_system = 200
        self.streamed.clear()

    def last_chat(self) -> Received:
        """Of any API."""
        return next(r for r in reversed(self.received) if r.path in CHATS)

    async def _answer(self, method: str, path: str, body: bytes) -> Response:
        if self.status != 200:
            return refused(self.status, "out of order")
        if method != "POST" or path not in CHATS:
            return JSONResponse({"path": path, "method": method, "bytes": len(body)})
        chat = json.loads(body)
        if not isinstance(chat[CHATS[path]], list | str if path == RESPONSES_PATH else list):
            raise TypeError(CHATS[path])
        while self.is_held:
            await asyncio.sleep(0.01)
        if path == RESPONSES_PATH:
            response = response_object([text_item(self.answer)], response_id=f"resp_{len(self.received)}")
            return streamed_or_whole(chat, response, event_stream(response), self.more_headers)
        if path == MESSAGES_PATH:
            answer = message_object([text_block(self.answer)])
            return streamed_or_whole(chat, answer, message_events(answer), self.more_headers)
        if self.later_system != 200 and any(message["role"] == "system" for message in chat["messages"][1:]):
            return refused(self.later_system, "System message must be at the beginning.")
        if chat.get("stream"):
            return StreamingResponse(self._chunks(), media_type="text/event-stream")
        message = self.message or {"role": "assistant", "content": self.answer}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        return JSONResponse(
            {"id": "c-1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage},
            headers=self.more_headers,
        )

    async def _chunks(self) -> AsyncIterator[bytes]:
        words = self.answer.split(" ") if not self.chunk_count else ["x"] * self.chunk_count
        for i, word in enumerate(words):
            if 0 < self.chunk_count <= i:  # fewer than at the start
                break
            delta = {"role": "assistant", "content": word if i == 0 else f" {word}"}
            yield self._event({"delta": delta, "finish_reason": None})
            if self.chunk_seconds:
                await asyncio.sleep(self.chunk_seconds)
        yield self._event({"delta": {}, "finish_reason": "stop"})
        done = b"data: [DONE]\n\n"
        self.streamed.append(done)
        yield done

    def _event(self, choice: dict[str, object]) -> bytes:
        chunk = {"id": "c-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "sent": time.time_ns()}
        event = b"data: " + json.dumps({**chunk, "choices": [{"index": 0, **choice}]}).encode() + b"\n\n"
        self.streamed.append(event)
        return event


def running_upstream() -> AbstractContextManager[RecordingUpstream]:
    return recording(RecordingUpstream())
