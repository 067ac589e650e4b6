"""Which calls the REST API takes from whom: no page that a browser shows may call it, and no body comes undeclared."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from weakref import WeakKeyDictionary

import httpx
import pytest
import pytest_asyncio
from library_parts import library_parts
from prometheus_client import CollectorRegistry

from memory.api.asgi import AsgiApp
from memory.api.rest import create_app
from memory.processes.composition import SYSTEM_CLOCK
from memory.runtime.instruments import Instruments
from memory.runtime.metrics import Metrics


@dataclass(frozen=True)
class Served:
    """What a client calls."""

    app: AsgiApp
    registry: CollectorRegistry


SERVED: WeakKeyDictionary[httpx.AsyncClient, Served] = WeakKeyDictionary()
ANN = {"x-authz-user-id": "ann", "x-memory-edge-secret": "s3cret"}
MEMORY = b'{"memories":[{"content":"planted"}]}'
EVERYWHERE = pytest.mark.parametrize("api", ["development", "header"], indirect=True)
IN_DEVELOPMENT = pytest.mark.parametrize("api", ["development"], indirect=True)


@pytest_asyncio.fixture
async def api(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    """The API in the identity mode that the test names; every call says it is ann."""
    async with library_parts(tmp_path) as parts:
        metrics = Metrics(registry := CollectorRegistry())
        app = create_app(
            parts.library,
            identity_mode=request.param,
            edge_secret="s3cret",
            instruments=Instruments(SYSTEM_CLOCK, metrics),
        )
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost:8081", headers=ANN) as client:
            SERVED[client] = Served(app, registry)
            yield client


async def memories(api: httpx.AsyncClient) -> int:
    return len((await api.get("/v1/memory")).json()["memories"])


def api_calls(api: httpx.AsyncClient) -> float:
    """How many calls of ours were counted."""
    return sum(
        sample.value
        for family in SERVED[api].registry.collect()
        for sample in family.samples
        if sample.name == "memproxy_api_seconds_count"
    )


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


ODD_PATHS = [
    "//v1/memory",
    "///v1//memory",
    "/v1//memory",
    "/.//v1/memory",
    "/./v1/memory",
    "/x/../v1/memory",
    "/%2Fv1/memory",
    "/%2f%2fv1/memory",
    "/%2e/v1/memory",
    "/%76%31/memory",
    "//%76%31/memory",
    "/v1%2fmemory",
    "/unknown",
]


async def call(api: httpx.AsyncClient, method: str, target: str, headers: dict[str, str]) -> tuple[int, bytes]:
    """Status and body. The path is left alone, which httpx does not do."""
    path, _, query = target.partition("?")
    scope: dict[str, Any] = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": unquote(path),
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": query.encode(),
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        "server": ("127.0.0.1", 8081),
        "client": ("127.0.0.1", 5),
    }
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    await SERVED[api].app(scope, receive, send)
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent)


@IN_DEVELOPMENT
@pytest.mark.parametrize("path", ODD_PATHS)
async def test_a_path_written_another_way_is_checked_as_well(api: httpx.AsyncClient, path: str) -> None:
    assert (await add(api, JSON)).status_code == 201
    for headers in ({"host": "evil.example"}, {"host": "localhost", "origin": "http://evil.example"}):
        for method, asked in (("GET", path), ("DELETE", f"{path}?user_id=ann"), ("POST", f"{path}/flush")):
            status, body = await call(api, method, asked, ANN | headers)
            assert status == 403
            assert b"forbidden" in body
    assert await memories(api) == 1


@EVERYWHERE
@pytest.mark.parametrize("path", ["//v1/memory/flush", "/v1//memory/flush", "//v1/memory/sessions/s/end"])
async def test_a_path_written_another_way_needs_the_header_and_is_counted(api: httpx.AsyncClient, path: str) -> None:
    crossing = ANN | {"host": "localhost", "sec-fetch-site": "cross-site"}
    assert (await call(api, "POST", path, crossing))[0] == 403
    counted = api_calls(api)
    await call(api, "POST", path, ANN | {"host": "localhost"})
    assert api_calls(api) == counted + 1


@IN_DEVELOPMENT
@pytest.mark.parametrize("path", ["/health", "/healthz", "//healthz"])
async def test_probes_may_send_any_host(api: httpx.AsyncClient, path: str) -> None:
    assert (await call(api, "GET", path, {"host": "evil.example"}))[0] == 200


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
