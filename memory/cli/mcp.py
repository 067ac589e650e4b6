"""`memproxy mcp`: the API's MCP server over standard input and output, for clients that start their servers themselves.

It defines no tools: every message goes to the API of a running memproxy, and every answer back.
"""

from __future__ import annotations

import asyncio
from typing import Annotated

from typer import Option

from memory.cli.options import ConfigOption
from memory.settings.loader import from_process

CALL_SECONDS_MAX = 30.0  # of one message to the API


def mcp(
    *,
    user: Annotated[str, Option(help="Whose memories.")],
    url: Annotated[
        str | None, Option("--api", help="Base URL of the API. [default: http://127.0.0.1:API_PORT]")
    ] = None,
    config: ConfigOption = None,
) -> None:
    """Serve the memory tools to an MCP client on standard input and output, until it closes them."""
    from memory.cli.caller import caller_headers

    settings = from_process(config, {})
    base = (url or f"http://127.0.0.1:{settings.api_port}").rstrip("/")
    asyncio.run(_bridge(f"{base}/mcp", caller_headers(settings, user)))


async def _bridge(url: str, headers: list[tuple[bytes, bytes]]) -> None:
    import httpx2
    from mcp.client.streamable_http import streamable_http_client
    from mcp.server.stdio import stdio_server

    async with (
        httpx2.AsyncClient(headers=headers, timeout=CALL_SECONDS_MAX, trust_env=False) as http,
        streamable_http_client(url, http_client=http) as (from_server, to_server),
        stdio_server() as (from_client, to_client),
        asyncio.TaskGroup() as both,
    ):

        async def forward_answers() -> None:
            async for message in from_server:
                if not isinstance(message, Exception):
                    await to_client.send(message)

        answers = both.create_task(forward_answers())
        async for message in from_client:
            if not isinstance(message, Exception):
                await to_server.send(message)
        answers.cancel()
