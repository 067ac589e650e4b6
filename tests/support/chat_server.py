"""A small real server of `/v1/chat/completions` whose answer, pace and manners a test decides."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web
from served_app import served_here

CHUNK_BYTES = 1 << 16


class Cut(str):
    """An answer that ended at `max_tokens`, as the server says of it."""

    __slots__ = ()


class FakeModelServer:
    """`content` is what it says, or what `says`, where set, makes of the request. `body`, where set, is sent instead of
    a completion; `seconds` is how long it thinks.

    So many connections as `hang_ups` says are cut before it answers; `breaks_off` cuts them in the middle of an answer.
    `drips` sends a byte every 20 ms, for ever. `asked` holds the bodies of all requests, `hung_up` counts those whose
    client went away.
    """

    def __init__(self) -> None:
        self.content: str | None = "{}"
        self.says: Callable[[dict[str, Any]], str] | None = None
        self.body: bytes | None = None
        self.status = 200
        self.seconds = 0.0
        self.drips = False
        self.hang_ups = 0
        self.breaks_off = False
        self.asked: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.peers: set[int] = set()
        self.hung_up = 0
        self.sent_bytes = 0
        self.url = ""

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(await request.json())
        self.headers.append({name.lower(): value for name, value in request.headers.items()})
        if request.transport is not None:
            self.peers.add(request.transport.get_extra_info("peername")[1])
            if self.hang_ups:
                self.hang_ups -= 1
                request.transport.abort()
        try:
            await asyncio.sleep(self.seconds)
            return await self._written(request)
        except (asyncio.CancelledError, ConnectionError):
            self.hung_up += 1
            raise

    async def _written(self, request: web.Request) -> web.StreamResponse:
        if self.drips or self.breaks_off or self.body is not None:
            return await self._raw(request)
        content = self.content if self.says is None else self.says(self.asked[-1])
        finish = "length" if isinstance(content, Cut) else "stop"
        choice = {"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": finish}
        usage = {"prompt_tokens": 100, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 90}}
        return web.Response(
            status=self.status,
            content_type="application/json",
            body=json.dumps({"id": "c", "object": "chat.completion", "choices": [choice], "usage": usage}).encode(),
        )

    async def _raw(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(status=self.status)
        await response.prepare(request)
        while self.drips:
            await response.write(b" ")
            await asyncio.sleep(0.02)
        if self.breaks_off:
            await response.write(b'{"choices": [')
            assert request.transport is not None
            request.transport.abort()
            return response
        body = self.body or b""
        for start in range(0, len(body), CHUNK_BYTES):
            await response.write(body[start : start + CHUNK_BYTES])
            self.sent_bytes += CHUNK_BYTES
        await response.write_eof()
        return response

    async def models(self, _request: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": "scripted", "object": "model"}]})


@asynccontextmanager
async def running_chat_server(port: int = 0, *, prefix: str = "") -> AsyncIterator[FakeModelServer]:
    server = FakeModelServer()
    app = web.Application()
    app.router.add_post(f"{prefix}/v1/chat/completions", server.answer)
    app.router.add_get(f"{prefix}/v1/models", server.models)
    async with served_here(app, port) as url:
        server.url = url + prefix
        yield server
