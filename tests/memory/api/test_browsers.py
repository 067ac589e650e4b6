"""Which calls the REST API takes from whom: no page that a browser shows may call it, and no body comes undeclared."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import httpx
import pytest
from api_parts import SECRET, app_of, assert_refused, client_of, counted
from library_parts import library_parts
from prometheus_client import CollectorRegistry

from memory.api.asgi import AsgiApp
from memory.runtime.metrics import Metrics

ANN = {"x-authz-user-id": "ann", "x-memory-edge-secret": SECRET}
MEMORY = b'{"memories":[{"content":"planted"}]}'
EVERYWHERE = pytest.mark.parametrize("served", ["development", "header"], indirect=True)
IN_DEVELOPMENT = pytest.mark.parametrize("served", ["development"], indirect=True)


@dataclass(frozen=True)
class Served:
    app: AsgiApp
    registry: CollectorRegistry

    def calls(self) -> float:
        """How many calls of ours were counted."""
        return sum(counted(self.registry, "memproxy_api_seconds_count", "route", "code").values())


@pytest.fixture
async def served(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Served]:
    """The API in the identity mode that the test names."""
    metrics = Metrics(CollectorRegistry())
    async with library_parts(tmp_path) as parts:
        yield Served(app_of(parts.library, request.param, metrics=metrics), metrics.registry)


@pytest.fixture
async def api(served: Served) -> AsyncIterator[httpx.AsyncClient]:
    """Every call says it is ann."""
    async with client_of(served.app, base_url="http://localhost:8081", headers=ANN) as client:
        yield client


async def memories(api: httpx.AsyncClient) -> int:
    return len((await api.get("/v1/memory")).json()["memories"])


async def add(api: httpx.AsyncClient, headers: Any) -> httpx.Response:
    return await api.post("/v1/memory", content=MEMORY, headers=headers)


def with_type(kind: str) -> list[tuple[str, str]]:
    return [("content-type", kind)]


JSON = with_type("application/json")
OUR_PAGE = [("x-memory-page", "1")]
NOT_JSON = [
    [],
    *map(with_type, ("text/plain", "text/plain; application/json", "application/x-www-form-urlencoded")),
    *map(with_type, ("application/jsonp", "application/json, text/plain")),
    JSON + with_type("text/plain"),
]


@EVERYWHERE
async def test_a_body_that_does_not_say_it_is_json_is_refused_and_told_what_to_send(api: httpx.AsyncClient) -> None:
    for headers in NOT_JSON:
        answer = await add(api, headers)
        assert_refused(answer, 415, "unsupported_media_type", "content-type: application/json")
    assert await memories(api) == 0
    for kind in ("application/json", "application/json; charset=utf-8", "Application/JSON"):
        assert (await add(api, with_type(kind))).status_code == 201
    for headers in ([], with_type("application/x-www-form-urlencoded")):  # of no body
        assert (await api.post("/v1/memory/flush", headers=headers)).status_code == 200


@IN_DEVELOPMENT
async def test_in_development_this_machine_is_called_by_its_loopback_names(api: httpx.AsyncClient) -> None:
    loopback = ("localhost", "LOCALHOST:8080", "127.0.0.1", "127.0.0.1:8081", "127.9.8.7:1", "[::1]", "[::1]:8081")
    for host in loopback:
        assert (await add(api, [("host", host), *JSON])).status_code == 201, host
        for scheme in ("http", "https"):
            assert (await add(api, [("origin", f"{scheme}://{host}"), *OUR_PAGE, *JSON])).status_code == 201, host


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
        assert_refused(answer, 403, "forbidden", "x-memory-page")
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
    *("evil.example", "evil.example:8081", "localhost.evil.example", "127.0.0.1.evil.example", "10.0.0.1", "0.0.0.0"),
    *("evil.example/localhost", "localhost@evil.example", "evil@localhost", "localhost:8081:1", "127.0.0.1\tevil"),
    *("[::2]", ""),
]


@IN_DEVELOPMENT
async def test_in_development_a_name_that_was_pointed_at_this_machine_is_refused(api: httpx.AsyncClient) -> None:
    for host in STRANGE:
        for answer in (
            await add(api, [("host", host), *JSON]),
            await add(api, [("host", "localhost"), ("host", host), *JSON]),
            await api.get("/v1/memory", headers=[("host", host)]),
            await api.delete("/v1/memory?user_id=ann", headers=[("host", host)]),
        ):
            assert (answer.status_code, answer.json()["error"]["code"]) == (403, "forbidden"), host
    assert await memories(api) == 0


ODD_PATHS = [
    *("//v1/memory", "///v1//memory", "/v1//memory", "/.//v1/memory", "/./v1/memory", "/x/../v1/memory", "/unknown"),
    *("/%2Fv1/memory", "/%2f%2fv1/memory", "/%2e/v1/memory", "/%76%31/memory", "//%76%31/memory", "/v1%2fmemory"),
]


async def call(served: Served, method: str, target: str, headers: dict[str, str]) -> tuple[int, bytes]:
    """Status and body. The path is left alone, which httpx does not do."""
    path, _, query = target.partition("?")

    async def as_written(scope: Any, receive: Any, send: Any) -> None:
        written = {"path": unquote(path), "raw_path": path.encode(), "query_string": query.encode()}
        await served.app(scope | written, receive, send)

    async with client_of(as_written) as client:
        answer = await client.request(method, "/", headers=headers)
    return answer.status_code, answer.content


@IN_DEVELOPMENT
async def test_a_path_written_another_way_is_checked_as_well(served: Served, api: httpx.AsyncClient) -> None:
    assert (await add(api, JSON)).status_code == 201
    for path in ODD_PATHS:
        for headers in ({"host": "evil.example"}, {"host": "localhost", "origin": "http://evil.example"}):
            for method, asked in (("GET", path), ("DELETE", f"{path}?user_id=ann"), ("POST", f"{path}/flush")):
                status, body = await call(served, method, asked, ANN | headers)
                assert (status, b"forbidden" in body) == (403, True), asked
    assert await memories(api) == 1
    for path in ("/health", "/healthz", "//healthz"):  # probes may send any host
        assert (await call(served, "GET", path, {"host": "evil.example"}))[0] == 200


@EVERYWHERE
async def test_a_path_written_another_way_needs_the_header_and_is_counted(served: Served) -> None:
    crossing = ANN | {"host": "localhost", "sec-fetch-site": "cross-site"}
    for path in ("//v1/memory/flush", "/v1//memory/flush", "//v1/memory/sessions/s/end"):
        assert (await call(served, "POST", path, crossing))[0] == 403
        before = served.calls()
        await call(served, "POST", path, ANN | {"host": "localhost"})
        assert served.calls() == before + 1


@IN_DEVELOPMENT
async def test_in_development_a_page_of_another_host_is_refused(api: httpx.AsyncClient) -> None:
    for origin in ("null", "file://", "chrome-extension://abc", *(f"http://{host}" for host in STRANGE)):
        answer = await add(api, [("origin", origin), *OUR_PAGE, *JSON])
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "forbidden"), origin
        assert (await api.post("/v1/memory/flush", headers=[("origin", origin), *OUR_PAGE])).status_code == 403
    assert await memories(api) == 0


@pytest.mark.parametrize("served", ["header"], indirect=True)
async def test_behind_an_edge_that_vouches_hosts_and_origins_are_the_edges_to_judge(api: httpx.AsyncClient) -> None:
    elsewhere = [("host", "memory.example"), ("origin", "https://app.example")]
    assert (await add(api, [*elsewhere, *OUR_PAGE, *JSON])).status_code == 201
