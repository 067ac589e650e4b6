"""Applications on a free port of loopback, in this loop or in a thread; and whatever is open in a loop of its own."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from typing import Any, TypeVar

import uvicorn
from aiohttp import web
from starlette.applications import Starlette

from memory.runtime.task_groups import unwrapped

Opened = TypeVar("Opened")


@contextmanager
def served(app: Starlette, *, port: int = 0, **settings: int) -> Iterator[int]:
    """The port; that one, where one is named. `settings`: further ones of uvicorn."""
    with socket.create_server(("127.0.0.1", port)) as listener:
        server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off", access_log=False, **settings))
        thread = threading.Thread(target=lambda: server.run(sockets=[listener]), daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        try:
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join(timeout=10)


@contextmanager
def in_own_loop(opening: AbstractAsyncContextManager[Opened]) -> Iterator[tuple[Opened, asyncio.AbstractEventLoop]]:
    """What it gives, and the loop in which it is open, which runs in a thread of its own."""
    up: Future[tuple[Opened, asyncio.AbstractEventLoop]] = Future()
    is_over = asyncio.Event()

    async def hold() -> None:
        async with opening as opened:
            up.set_result((opened, asyncio.get_running_loop()))
            await is_over.wait()

    with ThreadPoolExecutor(1) as thread:
        ended = thread.submit(lambda: asyncio.run(hold()))
        wait((up, ended), return_when=FIRST_COMPLETED)
        if not up.done():
            ended.result()
        opened, loop = up.result()
        try:
            yield opened, loop
        finally:
            loop.call_soon_threadsafe(is_over.set)
            ended.result()


@asynccontextmanager
async def asgi_here(app: Any) -> AsyncIterator[str]:
    """The URL of an ASGI application that is served in this loop."""
    with socket.create_server(("127.0.0.1", 0)) as listener, unwrapped():
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, ws="none", lifespan="off"))
        async with asyncio.TaskGroup() as group:
            group.create_task(server.serve(sockets=[listener]))
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
            server.should_exit = True


@asynccontextmanager
async def served_here(app: web.Application, port: int = 0) -> AsyncIterator[str]:
    """The URL of an application of aiohttp. Whoever hangs up has their answer cancelled."""
    runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port, reuse_address=True).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])
