"""The MCP server through Envoy where the edge identifies users: each gets at their own memories, and at no others."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from product import Product, running_product
from token_issuer import AUDIENCE, ISSUER, LONG_AGO, TokenIssuer
from upstream import RecordingUpstream

GATEWAY, ELSEWHERE = "127.0.0.2", "127.0.0.1"  # header mode believes the first alone
KEPT, ASKED = "User's lighthouse is called Old Barnaby", "What is my lighthouse called?"


def calls(memory_id: str) -> dict[str, dict[str, str]]:
    """Arguments for each tool, of one who is after that memory."""
    return {
        "memory_save": {"content": "User's lighthouse is for sale"},
        "memory_search": {"query": ASKED},
        "memory_delete": {"memory_id": memory_id},
        "memory_projects": {},
        "memory_stats": {},
    }


@dataclass(frozen=True)
class Edge:
    """A product and how users reach it: with headers that identify them, from the address `source`."""

    product: Product
    identified: Callable[[str], dict[str, str]]
    source: str
    unbelieved: dict[str, dict[str, str]]  # headers that name ada and identify nobody, by what is wrong with them

    def agent(self, user: str, *, query: str = "") -> AbstractAsyncContextManager[Client]:
        return self.connected(self.identified(user), source=self.source, query=query)

    @asynccontextmanager
    async def connected(
        self, headers: dict[str, str], *, source: str = ELSEWHERE, query: str = ""
    ) -> AsyncIterator[Client]:
        transport = httpx2.AsyncHTTPTransport(local_address=source)
        url = f"{self.product.url}/v1/memory/mcp{query}"
        async with (
            httpx2.AsyncClient(transport=transport, headers=headers, timeout=30) as http,
            Client(streamable_http_client(url, http_client=http)) as client,
        ):
            yield client


@pytest.fixture(params=["header", "jwt"], scope="module")
def edge(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, shared_upstream: RecordingUpstream
) -> Iterator[Edge]:
    folder, issuer = tmp_path_factory.mktemp("edge"), TokenIssuer()
    keys, config = folder / "keys.json", folder / "settings.yaml"
    keys.write_text(issuer.key_set())
    tokens = {"issuer": ISSUER, "audiences": [AUDIENCE], "jwks_file": str(keys)}
    modes = {
        "header": {"identity": "header", "trusted_peers": [f"{GATEWAY}/32"]},
        "jwt": {"identity": "jwt", "jwt": tokens},
    }
    config.write_text(json.dumps(modes[request.param]))
    unbelieved = {"nothing": {}, "a header from anybody": named("ada"), "a token of another issuer": bearer("ada")}
    with running_product(folder / "data", upstream=shared_upstream.url, config=config) as product:
        if request.param == "header":
            yield Edge(product, named, GATEWAY, unbelieved)
        else:
            expired = {"a token that has expired": bearer("ada", issuer, exp=LONG_AGO)}
            yield Edge(product, lambda user: bearer(user, issuer), ELSEWHERE, unbelieved | expired)


def named(user: str) -> dict[str, str]:
    return {"x-authz-user-id": user}


def bearer(user: str, issuer: TokenIssuer | None = None, **claims: Any) -> dict[str, str]:
    """With a token of that issuer; of an unknown one if none is given."""
    return {"authorization": f"Bearer {(issuer or TokenIssuer()).token(sub=user, **claims)}"}


async def called(client: Client, name: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(name, arguments)
    assert not result.is_error, result.content
    return dict(result.structured_content)


async def refused(client: Client, name: str, **arguments: Any) -> str:
    result = await client.call_tool(name, arguments)
    assert result.is_error, result.structured_content
    return str(result.content[0].text)  # type: ignore[union-attr]


async def found(client: Client) -> list[str]:
    return [memory["content"] for memory in (await called(client, "memory_search", query=ASKED))["memories"]]


async def test_all_tools_work_under_the_identity_of_the_edge(edge: Edge) -> None:
    async with edge.agent("ada") as ada, edge.agent("grace") as grace:
        assert {tool.name for tool in (await ada.list_tools()).tools} == set(calls(""))
        saved = await called(ada, "memory_save", content=KEPT)
        assert await found(ada) == [KEPT]
        assert (await called(ada, "memory_stats"))["active"] == 1
        assert await called(ada, "memory_projects") == {"projects": []}
        assert await found(grace) == []
        assert (await called(grace, "memory_stats"))["active"] == 0
        assert "no such memory" in await refused(grace, "memory_delete", memory_id=saved["id"])
        assert await called(ada, "memory_delete", memory_id=saved["id"]) == {"deleted": 1}
        assert await found(ada) == []


async def test_who_names_another_user_beside_their_own_identity_gets_nothing_of_that_user(edge: Edge) -> None:
    async with edge.agent("ada") as ada:
        saved = await called(ada, "memory_save", content=KEPT)
        async with edge.agent("mallory") as mallory, edge.agent("mallory", query="?user_id=ada") as liar:
            assert await found(mallory) == []
            assert "no such memory" in await refused(mallory, "memory_delete", memory_id=saved["id"])
            for name, arguments in calls(saved["id"]).items():
                assert "unknown field `user_id`" in await refused(mallory, name, **arguments, user_id="ada")
                assert "the caller's own" in await refused(liar, name, **arguments)
        assert await found(ada) == [KEPT]
        assert await called(ada, "memory_delete", memory_id=saved["id"]) == {"deleted": 1}


@pytest.mark.parametrize("query", ["", "?user_id=ada"])
async def test_nobody_is_served_whom_the_edge_does_not_identify(edge: Edge, query: str) -> None:
    async with edge.agent("ada") as ada:
        saved = await called(ada, "memory_save", content=KEPT)
        for headers in edge.unbelieved.values():
            async with edge.connected(headers, query=query) as nobody:
                for name, arguments in calls(saved["id"]).items():
                    assert "no user" in await refused(nobody, name, **arguments)
        assert await found(ada) == [KEPT]
        assert await called(ada, "memory_delete", memory_id=saved["id"]) == {"deleted": 1}
