"""Passes the bytes of TCP connections on to a port of this machine, late or not at all: a slow network, or a slow part.

In a thread of its own, so that a busy test delays nobody. Order and content of each connection are kept.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

CHUNK_BYTES = 1 << 16
CHUNKS_HELD_MAX = 256  # of one direction of a connection; past it the sender waits, as with a full window


@dataclass
class SlowRelay:
    """`port`: where it listens. Bytes arrive `delay_seconds` after they were read, in each direction."""

    target_port: int
    port: int = 0
    delay_seconds: float = 0.0
    passed_bytes: int = 0

    def __post_init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._moves = asyncio.Event()
        self._moves.set()

    def stall(self) -> None:
        """Nothing is passed on, and new connections are accepted, until `resume`."""
        self._loop.call_soon_threadsafe(self._moves.clear)

    def resume(self) -> None:
        self._loop.call_soon_threadsafe(self._moves.set)

    def run(self, is_ready: threading.Event, stop: asyncio.Event) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve(is_ready, stop))

    def end(self, stop: asyncio.Event) -> None:
        self._loop.call_soon_threadsafe(stop.set)

    async def _serve(self, is_ready: threading.Event, stop: asyncio.Event) -> None:
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        is_ready.set()
        await stop.wait()
        server.close()  # the runner cancels what still passes bytes on

    async def _connected(self, client: asyncio.StreamReader, answers: asyncio.StreamWriter) -> None:
        try:
            part, requests = await asyncio.open_connection("127.0.0.1", self.target_port)
        except OSError:
            answers.transport.abort()
            return
        has_ended = False
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._pass_on(client, requests))
                tasks.create_task(self._pass_on(part, answers))
            has_ended = True
        except* OSError:
            pass  # one side is gone, and so is the other
        finally:
            for writer in (requests, answers):
                if has_ended:
                    writer.close()  # once all of it is sent
                else:
                    writer.transport.abort()

    async def _pass_on(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        held = asyncio.Queue[tuple[float, bytes]](CHUNKS_HELD_MAX)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._read(source, held))
            tasks.create_task(self._write(held, target))

    async def _read(self, source: asyncio.StreamReader, held: asyncio.Queue[tuple[float, bytes]]) -> None:
        """Its end is an empty chunk, late as any other."""
        chunk = b"."
        while chunk:
            chunk = await source.read(CHUNK_BYTES)
            await held.put((self._loop.time() + self.delay_seconds, chunk))

    async def _write(self, held: asyncio.Queue[tuple[float, bytes]], target: asyncio.StreamWriter) -> None:
        while True:
            due, chunk = await held.get()
            await asyncio.sleep(due - self._loop.time())
            await self._moves.wait()
            if not chunk:
                break
            target.write(chunk)
            self.passed_bytes += len(chunk)
            await target.drain()
        target.write_eof()


@contextmanager
def running_relay(target_port: int) -> Iterator[SlowRelay]:
    """To a port that need not be served yet."""
    relay, is_ready, stop = SlowRelay(target_port), threading.Event(), asyncio.Event()
    thread = threading.Thread(target=relay.run, args=(is_ready, stop), daemon=True)
    thread.start()
    assert is_ready.wait(10)
    try:
        yield relay
    finally:
        with suppress(RuntimeError):  # it has ended
            relay.end(stop)
        thread.join(timeout=10)
