"""Loads the MCP server with the first call for it: the SDK takes half a second and 33 MB, and many never use it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import structlog
from litestar.handlers import ASGIRouteHandler, asgi

from memory.api.asgi import AsgiApp, AsgiReceive, AsgiScope, AsgiSend
from memory.api.refusals import send_refusal

if TYPE_CHECKING:
    from memory.api.mcp import MemoryMcp

PATHS = ("/mcp", "/v1/memory/mcp")  # the second also through the proxy, with the same identity

log = structlog.get_logger(__name__)


class McpOnDemand:
    """The routes of an MCP server that `load` makes, in a thread, when it is called for the first time."""

    def __init__(self, load: Callable[[], MemoryMcp]) -> None:
        self._load = load
        self._group: asyncio.TaskGroup | None = None
        self._app: asyncio.Future[AsgiApp] | None = None
        self._closing = asyncio.Event()

    @property
    def routes(self) -> list[ASGIRouteHandler]:
        async def serve(scope: AsgiScope, receive: AsgiReceive, send: AsgiSend) -> None:
            await self(scope, receive, send)

        return [asgi(list(PATHS), copy_scope=True)(serve)]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Open this while the routes are served."""
        async with asyncio.TaskGroup() as self._group:
            try:
                yield
            finally:
                self._closing.set()

    async def __call__(self, scope: AsgiScope, receive: AsgiReceive, send: AsgiSend) -> None:
        assert self._group is not None
        if self._app is None:
            self._app = asyncio.get_running_loop().create_future()
            self._group.create_task(self._serve(self._app))
        app = await asyncio.shield(self._app)
        await app(_with_one_accept(scope), receive, send)

    async def _serve(self, app: asyncio.Future[AsgiApp]) -> None:
        try:
            server = await asyncio.to_thread(self._load)
        except ImportError as error:  # of the SDK; the rest of the API needs none of it
            log.error("the MCP server cannot be loaded", module=error.name, reason=type(error).__name__)
            app.set_result(_unavailable)
            return
        async with server.running():
            app.set_result(server.app)
            await self._closing.wait()


def _with_one_accept(scope: AsgiScope) -> AsgiScope:
    """Who names no types takes any, and several headers are one list. The SDK reads one header, and refuses none."""
    accepted = b", ".join(value for name, value in scope["headers"] if name == b"accept" and value) or b"*/*"
    others = [(name, value) for name, value in scope["headers"] if name != b"accept"]
    return {**scope, "headers": [*others, (b"accept", accepted)]}


async def _unavailable(_: AsgiScope, __: AsgiReceive, send: AsgiSend) -> None:
    message = "MCP is unavailable: its SDK cannot be loaded; the log says why"
    await send_refusal(send, "unavailable", message, 503)
