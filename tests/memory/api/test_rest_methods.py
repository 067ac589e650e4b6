"""HEAD, OPTIONS, the label of calls that match nothing, and probes with any Host."""

from __future__ import annotations

import socket
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from api_parts import ANN, add_one, api_of, assert_refused
from library_parts import Parts
from prometheus_client import CollectorRegistry
from served_library import served_library

from memory.runtime.metrics import Metrics

HOSTS = ["10.0.0.5:8081", "health.internal", "", "a b", "a/b", "?", "[::1", "]:1", "http://[", "a@b", "a:99999", "\xe9"]


def counted(registry: CollectorRegistry) -> dict[tuple[str, str], float]:
    """Calls by route and status."""
    return {
        (sample.labels["route"], sample.labels["code"]): sample.value
        for metric in registry.collect()
        for sample in metric.samples
        if sample.name == "memproxy_api_seconds_count" and sample.value
    }


@pytest.mark.parametrize("path", ["/v1/memory", "/v1/memory/{}", "/v1/memory/stats", "/health", "/openapi.json"])
async def test_head_is_get_without_a_body(api: httpx.AsyncClient, path: str) -> None:
    path = path.format(await add_one(api))
    get, head = await api.get(path), await api.head(path)
    assert (head.status_code, head.content) == (200, b"")
    assert dict(head.headers) == dict(get.headers)
    assert int(head.headers["content-length"]) == len(get.content) > 0


async def test_head_is_refused_as_get_is(api: httpx.AsyncClient) -> None:
    for path, status in (("/v1/memory/nothing", 404), ("/v1/memory?limit=0", 400), ("/v1/memory/search", 405)):
        head = await api.head(path)
        assert (head.status_code, head.content) == (status, b"")


@pytest.mark.parametrize(
    ("path", "methods"),
    [
        ("/v1/memory", {"DELETE", "GET", "OPTIONS", "POST"}),
        ("/v1/memory/anything", {"DELETE", "GET", "OPTIONS", "PATCH"}),
        ("/v1/memory/search", {"OPTIONS", "POST"}),
        ("/health", {"GET", "OPTIONS"}),
        ("/v1/sessions/s1/end", {"OPTIONS", "POST"}),
        ("/v1/memory/sessions/s1/end", {"OPTIONS", "POST"}),
        ("/v1/sessions/a/b", {"DELETE", "GET", "OPTIONS"}),
    ],
)
async def test_options_names_the_methods_and_changes_nothing(
    api: httpx.AsyncClient, path: str, methods: set[str]
) -> None:
    one = await add_one(api)
    answer = await api.options(path)
    assert (answer.status_code, answer.content) == (204, b"")
    assert {name.strip() for name in answer.headers["allow"].split(",")} == methods
    assert "access-control-allow-origin" not in answer.headers
    assert [m["id"] for m in (await api.get("/v1/memory")).json()["memories"]] == [one]


async def test_options_of_nothing_is_nothing(api: httpx.AsyncClient) -> None:
    assert_refused(await api.options("/v1/nothing"), 404, "not_found")


async def test_calls_are_counted_by_route_and_those_of_no_route_together(parts: Parts) -> None:
    registry = CollectorRegistry()
    async with api_of(parts, headers=ANN, metrics=Metrics(registry)) as api:
        one = await add_one(api)
        for path in (f"/v1/memory/{one}", "/v1/memory/another", "/v1/ann's secret", "/v1/a/b", "/health", "/nothing"):
            await api.get(path)
        await api.head(f"/v1/memory/{one}")
        await api.get("/v1/memory", headers={"host": "evil.example"})
    assert counted(registry) == {
        ("/v1/memory", "201"): 1,
        ("/v1/memory/{id}", "200"): 2,
        ("/v1/memory/{id}", "404"): 1,
        ("unmatched", "404"): 2,
        ("unmatched", "403"): 1,
    }


@pytest.mark.parametrize("identity_mode", ["development", "header"])
def test_probes_may_send_any_host_or_none(tmp_path: Path, identity_mode: str) -> None:
    async def nothing(_: Parts) -> None:
        return

    with served_library(tmp_path, nothing, identity_mode=identity_mode) as url:
        requests = [(path, f"1.1\r\nHost: {host}") for path in ("/health", "/healthz") for host in HOSTS]
        answers = {one: first_line(url, *one) for one in [*requests, ("/health", "1.0"), ("/healthz", "1.0")]}
    assert {one: line for one, line in answers.items() if line != "HTTP/1.1 200 OK"} == {}


def first_line(url: str, path: str, version_and_host: str) -> str:
    with socket.create_connection(("127.0.0.1", urlsplit(url).port or 0), timeout=10) as connection:
        connection.sendall(f"GET {path} HTTP/{version_and_host}\r\nConnection: close\r\n\r\n".encode("latin-1"))
        with connection.makefile("rb") as answer:
            return answer.readline().decode().strip()
