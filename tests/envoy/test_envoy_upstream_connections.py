"""A server that closes a connection after an answer, unannounced, as llama.cpp's does after a streamed one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from filter_stack import running_stack

ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nkeep-alive: timeout=5, max=100\r\n\r\nok"


@asynccontextmanager
async def closing_upstream() -> AsyncIterator[int]:
    """Answers the first request of each connection and closes it when the next one arrives: a race, always lost."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(ANSWER)
        await writer.drain()
        await reader.read(1)
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


@pytest.mark.parametrize(("is_kept_alive", "expected"), [(True, [200, 503]), (False, [200, 200])])
async def test_with_a_connection_for_each_request_nothing_meets_the_closing(
    is_kept_alive: bool, expected: list[int]
) -> None:
    async with (
        closing_upstream() as port,
        running_stack(f"http://127.0.0.1:{port}", is_upstream_kept_alive=is_kept_alive) as stack,
        stack.client() as client,
    ):
        assert [(await client.post("/v1/files")).status_code for _ in expected] == expected
