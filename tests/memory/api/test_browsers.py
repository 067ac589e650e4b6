"""Which calls the REST API takes from whom: no page that a browser shows may call it, and no body comes undeclared."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio
from library_parts import library_parts
from prometheus_client import CollectorRegistry

from memory.api.rest import create_app
from memory.runtime.metrics import Metrics

ANN = {"x-authz-user-id": "ann", "x-memory-edge-secret": "s3cret"}
MEMORY = b'{"memories":[{"content":"planted"}]}'
EVERYWHERE = pytest.mark.parametrize("api", ["development", "header"], indirect=True)
IN_DEVELOPMENT = pytest.mark.parametrize("api", ["development"], indirect=True)


@pytest_asyncio.fixture
async def api(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    """The API in the identity mode that the test names; every call says it is ann."""
    async with library_parts(tmp_path) as parts:
        metrics = Metrics(CollectorRegistry())
        app = create_app(parts.library, identity_mode=request.param, edge_secret="s3cret", metrics=metrics)
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost:8081", headers=ANN) as client:
            yield client


async def memories(api: httpx.AsyncClient) -> int:
    return len((await api.get("/v1/memory")).json()["memories"])


async def add(api: httpx.AsyncClient, headers: Any) -> httpx.Response:
    return await api.post("/v1/memory", content=MEMORY, headers=headers)


def with_type(kind: str) -> list[tuple[str, str]]:
    return [("content-type", kind)]


JSON = with_type("application/json")
OUR_PAGE = [("x-memory-page", "1")]


@EVERYWHERE
@pytest.mark.parametrize("kind", ["application/json", "application/json; charset=utf-8", "Application/JSON"])
async def test_json_that_says_so_is_taken(api: httpx.AsyncClient, kind: str) -> None:
    assert (await add(api, with_type(kind))).status_code == 201


@EVERYWHERE
@pytest.mark.parametrize(
    "headers",
    [
        [],
        with_type("text/plain"),
        with_type("text/plain; application/json"),
        with_type("application/x-www-form-urlencoded"),
        with_type("application/jsonp"),
        with_type("application/json, text/plain"),
        with_type("application/json") + with_type("text/plain"),
    ],
)
async def test_a_body_that_does_not_say_it_is_json_is_refused_and_told_what_to_send(
    api: httpx.AsyncClient, headers: Any
) -> None:
    answer = await add(api, headers)
    assert answer.status_code == 415
    assert answer.json()["error"]["code"] == "unsupported_media_type"
    assert "content-type: application/json" in answer.json()["error"]["message"]
    assert await memories(api) == 0


@EVERYWHERE
@pytest.mark.parametrize("headers", [[], with_type("application/x-www-form-urlencoded")])
async def test_without_a_body_there_is_nothing_to_declare(api: httpx.AsyncClient, headers: Any) -> None:
    assert (await api.post("/v1/memory/flush", headers=headers)).status_code == 200


@IN_DEVELOPMENT
@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:8080", "127.0.0.1", "127.0.0.1:8081", "127.9.8.7:1", "[::1]", "[::1]:8081"]
)
async def test_in_development_this_machine_is_called_by_its_loopback_names(api: httpx.AsyncClient, host: str) -> None:
    assert (await add(api, [("host", host), *JSON])).status_code == 201
    for scheme in ("http", "https"):
        assert (await add(api, [("origin", f"{scheme}://{host}"), *OUR_PAGE, *JSON])).status_code == 201


@EVERYWHERE
@pytest.mark.parametrize(
    "browser",
    [("origin", "http://localhost:3000"), ("origin", "http://localhost:8081"), ("sec-fetch-site", "same-site")],
)
async def test_a_browser_changes_nothing_without_the_header_that_foreign_pages_cannot_send(
    api: httpx.AsyncClient, browser: tuple[str, str]
) -> None:
    assert (await add(api, JSON)).status_code == 201
    for answer in (
        await add(api, [browser, *JSON]),
        await api.post("/v1/memory/flush", headers=[browser]),
        await api.delete("/v1/memory?user_id=ann", headers=[browser]),
        await api.patch("/v1/memory/id-000000", content=b'{"importance":0}', headers=[browser, *JSON]),
        await api.put("/v1/memory/profile", content=b"{}", headers=[browser, *JSON]),
        await api.post("/v1/memory/operator/dead-letters/replay", content=b'{"ids":["x"]}', headers=[browser, *JSON]),
    ):
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "forbidden")
        assert "x-memory-page" in answer.json()["error"]["message"]
    assert (await api.get("/v1/memory", headers=[browser])).status_code == 200
    assert await memories(api) == 1
    answer = await api.delete("/v1/memory?user_id=ann", headers=[browser, *OUR_PAGE])
    assert answer.json() == {"deleted": 1, "withdrawn_turns": 0}


@EVERYWHERE
async def test_no_preflight_is_approved(api: httpx.AsyncClient) -> None:
    asked = {"access-control-request-method": "DELETE", "access-control-request-headers": "x-memory-page"}
    answer = await api.options("/v1/memory", headers={"origin": "http://localhost:3000", **asked})
    assert not [name for name in answer.headers if name.startswith("access-control-")]


STRANGE = [
    "evil.example",
    "evil.example:8081",
    "localhost.evil.example",
    "127.0.0.1.evil.example",
    "evil.example/localhost",
    "localhost@evil.example",
    "evil@localhost",
    "localhost:8081:1",
    "127.0.0.1\tevil",
    "10.0.0.1",
    "0.0.0.0",
    "[::2]",
    "",
]


@IN_DEVELOPMENT
@pytest.mark.parametrize("host", STRANGE)
async def test_in_development_a_name_that_was_pointed_at_this_machine_is_refused(
    api: httpx.AsyncClient, host: str
) -> None:
    for answer in (
        await add(api, [("host", host), *JSON]),
        await add(api, [("host", "localhost"), ("host", host), *JSON]),
        await api.get("/v1/memory", headers=[("host", host)]),
        await api.delete("/v1/memory?user_id=ann", headers=[("host", host)]),
    ):
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "forbidden")
    assert await memories(api) == 0


@IN_DEVELOPMENT
@pytest.mark.parametrize("origin", ["null", "file://", "chrome-extension://abc", *(f"http://{h}" for h in STRANGE)])
async def test_in_development_a_page_of_another_host_is_refused(api: httpx.AsyncClient, origin: str) -> None:
    answer = await add(api, [("origin", origin), *OUR_PAGE, *JSON])
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "forbidden")
    assert (await api.post("/v1/memory/flush", headers=[("origin", origin), *OUR_PAGE])).status_code == 403
    assert await memories(api) == 0


@pytest.mark.parametrize("api", ["header"], indirect=True)
async def test_behind_an_edge_that_vouches_hosts_and_origins_are_the_edges_to_judge(api: httpx.AsyncClient) -> None:
    answer = await add(api, [("host", "memory.example"), ("origin", "https://app.example"), *OUR_PAGE, *JSON])
    assert answer.status_code == 201
