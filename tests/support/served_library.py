"""The REST API over a library of a test, on a free port of loopback, in a thread with a loop of its own."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn
from library_parts import Parts, library_parts
from prometheus_client import CollectorRegistry

from memory.api.callers import Callers
from memory.api.rest import create_app
from memory.processes.composition import SYSTEM_CLOCK
from memory.runtime.metrics import Metrics
from memory.runtime.telemetry import Telemetry


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
            metrics = Metrics(CollectorRegistry())
            callers = Callers(identity_mode=identity_mode, edge_secret=edge_secret, metrics=metrics)
            app = create_app(parts.library, callers, telemetry=Telemetry(SYSTEM_CLOCK, metrics))
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
