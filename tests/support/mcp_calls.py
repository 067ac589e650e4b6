"""The MCP server on a port, and calls of its tools with the SDK's own client."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from api_parts import app_of
from library_parts import Parts
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from project_world import ProjectWorld
from prometheus_client import CollectorRegistry
from served_app import asgi_here

from memory.api.callers import USERS_ONLY, CallerRules, Callers
from memory.api.mcp import MemoryMcp
from memory.api.mcp_on_demand import PATHS, McpOnDemand
from memory.runtime.metrics import Metrics
from memory.runtime.task_groups import unwrapped


@asynccontextmanager
async def serving(
    parts: Parts | ProjectWorld, identity: str = "development", secret: str = "", rules: CallerRules = USERS_ONLY
) -> AsyncIterator[str]:
    """The API on a free port of loopback; its URL."""
    metrics = Metrics(CollectorRegistry())
    callers = Callers(identity_mode=identity, edge_secret=secret, metrics=metrics, rules=rules)
    mcp = McpOnDemand(lambda: MemoryMcp(parts.library, callers, metrics))
    app = app_of(parts.library, callers=callers, metrics=metrics, routes=mcp.routes)
    with unwrapped():
        async with mcp.running(), asgi_here(app) as url:
            yield url


@asynccontextmanager
async def client(url: str, path: str = PATHS[0], **headers: str) -> AsyncIterator[Client]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    async with (
        create_mcp_http_client(headers=named) as http,
        Client(streamable_http_client(url + path, http_client=http)) as connected,
    ):
        yield connected


async def called(connected: Client, name: str, **arguments: Any) -> dict[str, Any]:
    result = await connected.call_tool(name, arguments)
    assert not result.is_error, result.content
    assert json.loads(result.content[0].text) == result.structured_content  # type: ignore[union-attr]
    return dict(result.structured_content)


async def refused(connected: Client, name: str, **arguments: Any) -> str:
    result = await connected.call_tool(name, arguments)
    assert result.is_error
    return str(result.content[0].text)  # type: ignore[union-attr]
