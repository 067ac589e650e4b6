"""The MCP server and our commands where the edge identifies users: each gets at their own memories, and no others."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest
from edge_gateway import ELSEWHERE, IDENTITY, KEEPER, KEPT_USER, TENANT, Edge, bearer
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_calls import called, refused
from product import Product
from token_issuer import LONG_AGO, TokenIssuer

pytestmark = pytest.mark.full("a product for each mode")
MEMPROXY = str(Path(sys.executable).with_name("memproxy"))
KEPT, ASKED = "User's lighthouse is called Old Barnaby", "What is my lighthouse called?"


def calls(memory_id: str) -> dict[str, dict[str, str]]:
    """Arguments for each tool, of one who is after that memory."""
    return {
        "memory_save": {"content": "User's lighthouse is for sale"},
        "memory_search": {"query": ASKED},
        "memory_list": {},
        "memory_delete": {"memory_id": memory_id},
        "memory_projects": {},
        "memory_stats": {},
    }


@dataclass(frozen=True)
class Agents:
    """Clients of the MCP server behind the edge."""

    edge: Edge

    def unbelieved(self, user: str) -> list[dict[str, str]]:
        """Headers that name this user and identify nobody."""
        claims = {"sub": user, "tenant": TENANT}
        found = [{}, {IDENTITY: user}, bearer(TokenIssuer().token(**claims))]
        if self.edge.mode == "jwt":
            found.append(bearer(self.edge.issuer.token(**claims, exp=LONG_AGO)))
        return found

    def agent(self, user: str, *, query: str = "") -> AbstractAsyncContextManager[Client]:
        return self.connected(self.edge.identified(user), source=self.edge.source, query=query)

    @asynccontextmanager
    async def connected(
        self, headers: dict[str, str], *, source: str = ELSEWHERE, query: str = ""
    ) -> AsyncIterator[Client]:
        transport = httpx2.AsyncHTTPTransport(local_address=source)
        url = f"{self.edge.product.url}/v1/memory/mcp{query}"
        async with (
            httpx2.AsyncClient(transport=transport, headers=headers, timeout=30) as http,
            Client(streamable_http_client(url, http_client=http)) as client,
        ):
            yield client


@pytest.fixture
def agents(edge_product: Edge) -> Agents:
    return Agents(edge_product)


async def found(client: Client) -> list[str]:
    return [memory["content"] for memory in (await called(client, "memory_search", query=ASKED))["memories"]]


async def test_all_tools_work_under_the_identity_of_the_edge(agents: Agents) -> None:
    async with agents.agent("lin") as lin, agents.agent("grace") as grace:
        assert {tool.name for tool in (await lin.list_tools()).tools} == set(calls(""))
        saved = await called(lin, "memory_save", content=KEPT)
        assert await found(lin) == [KEPT]
        assert (await called(lin, "memory_stats"))["active"] == 1
        assert await called(lin, "memory_projects") == {"projects": []}
        assert await found(grace) == []
        assert (await called(grace, "memory_stats"))["active"] == 0
        assert "no such memory" in await refused(grace, "memory_delete", memory_id=saved["id"])
        assert await called(lin, "memory_delete", memory_id=saved["id"]) == {"deleted": 1}
        assert await found(lin) == []


async def test_who_names_another_user_beside_their_own_identity_gets_nothing_of_that_user(agents: Agents) -> None:
    async with agents.agent("lin") as lin:
        saved = await called(lin, "memory_save", content=KEPT)
        async with agents.agent("morag") as mallory, agents.agent("morag", query="?user_id=lin") as liar:
            assert await found(mallory) == []
            assert "no such memory" in await refused(mallory, "memory_delete", memory_id=saved["id"])
            for name, arguments in calls(saved["id"]).items():
                assert "unknown field `user_id`" in await refused(mallory, name, **arguments, user_id="lin")
                assert "the caller's own" in await refused(liar, name, **arguments)
        assert await found(lin) == [KEPT]
        assert await called(lin, "memory_delete", memory_id=saved["id"]) == {"deleted": 1}


@pytest.mark.parametrize("query", ["", "?user_id=lin"])
async def test_nobody_is_served_whom_the_edge_does_not_identify(agents: Agents, query: str) -> None:
    async with agents.agent("lin") as lin:
        saved = await called(lin, "memory_save", content=KEPT)
        for headers in agents.unbelieved("lin"):
            async with agents.connected(headers, query=query) as nobody:
                for name, arguments in calls(saved["id"]).items():
                    assert "no user" in await refused(nobody, name, **arguments)
        assert await found(lin) == [KEPT]
        assert await called(lin, "memory_delete", memory_id=saved["id"]) == {"deleted": 1}


def ran(product: Product, *words: str, token: str = KEEPER, user: str = KEPT_USER) -> subprocess.CompletedProcess[str]:
    inherited = os.environ  # noqa: TID251 - what a shell would pass on
    environment = {**inherited, **({"MEMPROXY_TOKEN": token} if token else {})}
    command = [MEMPROXY, *words, "--user", user, "--api", product.api]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)


async def test_with_a_token_memories_are_saved_listed_moved_and_erased(edge_product: Edge, tmp_path: Path) -> None:
    product = edge_product.product
    bridge = StdioServerParameters(
        command=MEMPROXY, args=["mcp", "--api", product.api, "--user", KEPT_USER], env={"MEMPROXY_TOKEN": KEEPER}
    )
    async with Client(bridge) as model:
        assert not (await model.call_tool("memory_save", {"content": KEPT})).is_error
    file = str(tmp_path / "ada.jsonl")
    steps = ((("export", "--output", file), True), (("forget", "--all", "--yes"), False), (("import", file), True))
    for words, is_kept in steps:
        done = ran(product, *words)
        assert done.returncode == 0, done.stderr
        assert (KEPT in ran(product, "list", "--json").stdout) is is_kept


def test_without_a_token_the_message_says_how_to_identify(edge_product: Edge) -> None:
    product = edge_product.product
    nobody = ran(product, "list", token="")
    assert nobody.returncode != 0
    assert "MEMPROXY_TOKEN" in nobody.stderr
    assert "MEMPROXY_TOKEN" in ran(product, "list", token=KEEPER + "x").stderr
    assert ran(product, "list", user="grace").returncode != 0
