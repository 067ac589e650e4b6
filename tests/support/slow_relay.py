"""Passes the bytes of TCP connections on to a port of this machine, late or not at all: a slow network, or a slow part.

In a thread of its own, so that a busy test delays nobody. Order and content of each connection are kept.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

CHUNK_BYTES = 1 << 16
CHUNKS_HELD_MAX = 256  # of one direction of a connection; past it the sender waits, as with a full window


class SlowRelay:
    """`port`: where it listens. Bytes arrive `delay_seconds` after they were read, in each direction.

    `turns_taken`: how often one side spoke after the other; two are a round trip.
    """

    def __init__(self, target_port: int) -> None:
        self.port = 0
        self.delay_seconds = 0.0
        self.turns_taken = 0
        self._target_port = target_port
        self._is_over = asyncio.Event()

    async def serve(self, is_ready: threading.Event) -> None:
        """Until it ends; then what still passes bytes on is cancelled."""
        self._loop = asyncio.get_running_loop()
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        is_ready.set()
        await self._is_over.wait()
        server.close()

    def end(self) -> None:
        self._loop.call_soon_threadsafe(self._is_over.set)

    async def _connected(self, client: asyncio.StreamReader, answers: asyncio.StreamWriter) -> None:
        try:
            part, requests = await asyncio.open_connection("127.0.0.1", self._target_port)
        except OSError:
            answers.transport.abort()
            return
        has_ended, spoke_last = False, [part]
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._pass_on(client, requests, spoke_last))
                tasks.create_task(self._pass_on(part, answers, spoke_last))
            has_ended = True
        except* OSError:
            pass  # one side is gone, and so is the other
        finally:
            for writer in (requests, answers):
                if has_ended:
                    writer.close()  # once all of it is sent
                else:
                    writer.transport.abort()

    async def _pass_on(
        self, source: asyncio.StreamReader, target: asyncio.StreamWriter, spoke_last: list[asyncio.StreamReader]
    ) -> None:
        held = asyncio.Queue[tuple[float, bytes]](CHUNKS_HELD_MAX)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._read(source, held, spoke_last))
            tasks.create_task(self._write(held, target))

    async def _read(
        self,
        source: asyncio.StreamReader,
        held: asyncio.Queue[tuple[float, bytes]],
        spoke_last: list[asyncio.StreamReader],
    ) -> None:
        """Its end is an empty chunk, late as any other."""
        chunk = b"."
        while chunk:
            chunk = await source.read(CHUNK_BYTES)
            self.turns_taken += spoke_last[0] is not source
            spoke_last[0] = source
            await held.put((time.monotonic() + self.delay_seconds, chunk))

    async def _write(self, held: asyncio.Queue[tuple[float, bytes]], target: asyncio.StreamWriter) -> None:
        while True:
            due, chunk = await held.get()
            await asyncio.sleep(due - time.monotonic())
            if not chunk:
                break
            target.write(chunk)
            await target.drain()
        target.write_eof()


@contextmanager
def running_relay(target_port: int) -> Iterator[SlowRelay]:
    """To a port that need not be served yet."""
    relay, is_ready = SlowRelay(target_port), threading.Event()
    thread = threading.Thread(target=lambda: asyncio.run(relay.serve(is_ready)), daemon=True)
    thread.start()
    assert is_ready.wait(10)
    try:
        yield relay
    finally:
        relay.end()
        thread.join(timeout=10)
