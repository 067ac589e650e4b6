"""The relay between the product and a part passes everything on, in order, as late as it is set to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress

import pytest
from slow_relay import CHUNK_BYTES, CHUNKS_HELD_MAX, SlowRelay, running_relay

TEXT = bytes(range(256)) * 4_000  # many chunks
SECONDS_MAX = 30.0


@asynccontextmanager
async def echo() -> AsyncIterator[int]:
    """A server that sends back what it gets; its port."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with closing(writer), suppress(ConnectionResetError):
            while chunk := await reader.read(CHUNK_BYTES):
                writer.write(chunk)
                await writer.drain()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]


async def sent_through(relay: SlowRelay, text: bytes) -> bytes:
    """What comes back of it, to the end of the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", relay.port)
    async with asyncio.timeout(SECONDS_MAX), asyncio.TaskGroup() as tasks:
        answer = tasks.create_task(reader.read(-1))
        writer.write(text)
        await writer.drain()
        writer.write_eof()
    writer.close()
    return answer.result()


@pytest.mark.parametrize("delay", [0.0, 0.1])
async def test_all_bytes_arrive_in_order_as_late_as_wanted(delay: float) -> None:
    async with echo() as port:
        with running_relay(port) as relay:
            relay.delay_seconds = delay
            began = asyncio.get_running_loop().time()
            assert await sent_through(relay, TEXT) == TEXT
            assert asyncio.get_running_loop().time() - began >= 2 * delay
            assert relay.passed_bytes == 2 * len(TEXT)


async def test_while_it_stalls_nothing_arrives_and_nothing_is_lost() -> None:
    async with echo() as port:
        with running_relay(port) as relay:
            relay.stall()
            async with asyncio.TaskGroup() as tasks:
                waiting = [tasks.create_task(sent_through(relay, TEXT[:1_000])) for _ in range(3)]
                done, _ = await asyncio.wait(waiting, timeout=0.3)
                assert (done, relay.passed_bytes) == (set(), 0)
                relay.resume()
            assert [one.result() for one in waiting] == [TEXT[:1_000]] * 3


async def test_whoever_sends_more_than_it_holds_has_to_wait() -> None:
    async with echo() as port:
        with running_relay(port) as relay:
            relay.stall()
            _, writer = await asyncio.open_connection("127.0.0.1", relay.port)
            writer.write(bytes(4 * CHUNKS_HELD_MAX * CHUNK_BYTES))
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.5):
                    await writer.drain()
            writer.transport.abort()


async def test_a_part_that_is_gone_is_a_closed_connection() -> None:
    async with echo() as port:
        pass
    with running_relay(port) as relay:
        reader, writer = await asyncio.open_connection("127.0.0.1", relay.port)
        with suppress(ConnectionResetError):
            assert await reader.read(1) == b""
        writer.close()
