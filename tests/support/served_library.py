"""The REST API over a library of a test, on a free port of loopback, in a thread with a loop of its own."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn
from api_parts import app_of
from library_parts import Parts, library_parts


@contextmanager
def served_library(
    folder: Path,
    fill: Callable[[Parts], Awaitable[object]],
    *,
    identity_mode: str = "development",
    edge_secret: str = "",
) -> Iterator[str]:
    """Its URL. `fill` stores what the test starts with."""
    started: list[uvicorn.Server] = []
    is_up = threading.Event()

    async def serve(listener: socket.socket) -> None:
        async with library_parts(folder) as parts:
            await fill(parts)
            app = app_of(parts.library, identity_mode, edge_secret=edge_secret)
            server = uvicorn.Server(uvicorn.Config(app, log_config=None, ws="none", lifespan="off"))
            started.append(server)
            is_up.set()
            await server.serve(sockets=[listener])

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=lambda: asyncio.run(serve(listener)))
        thread.start()
        assert is_up.wait(60)
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            started[0].should_exit = True
            thread.join(60)
