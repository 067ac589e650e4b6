"""The MCP server below the proxy's own port, with the identity that Envoy vouches for, against what chats are told."""

from __future__ import annotations

import httpx
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from product import Product
from upstream import RecordingUpstream


async def test_what_a_tool_saves_a_chat_is_told_and_what_it_deletes_is_gone(
    shared_product: Product, upstream: RecordingUpstream
) -> None:
    user = "agent of the lighthouse"
    async with (
        create_mcp_http_client(headers={"x-authz-user-id": user}) as http,
        Client(streamable_http_client(f"{shared_product.url}/v1/memory/mcp", http_client=http)) as agent,
    ):
        saved = await agent.call_tool("memory_save", {"content": "User's lighthouse is called Old Barnaby"})
        answer = shared_product.ask("What is my lighthouse called?", user)
        assert answer.headers["x-memory-status"] == "used"
        assert b"Old Barnaby" in upstream.last_chat().body
        gone = await agent.call_tool("memory_delete", {"memory_id": saved.structured_content["id"]})
        assert not gone.is_error
        shared_product.ask("What is my lighthouse called, again?", user)
        assert b"Old Barnaby" not in upstream.last_chat().body


async def test_the_names_of_other_calls_stay_theirs(shared_product: Product) -> None:
    answer = httpx.get(f"{shared_product.url}/v1/memory/mcp/history", headers={"x-authz-user-id": "ann"}, timeout=10)
    assert answer.status_code == 404
