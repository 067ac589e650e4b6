"""The REST API: how it refuses, and that it says why; methods, and the labels by which calls are counted."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from api_parts import ANN, add_one, api_of, assert_refused, counted
from library_parts import NOW, Parts
from prometheus_client import CollectorRegistry
from served_library import served_library

from memory.api.guards import RESERVED
from memory.api.rest import BODY_BYTES_MAX
from memory.runtime.metrics import Metrics
from memory.secrets import redaction
from memory.secrets.secret_classes import Span

HOSTS = ["10.0.0.5:8081", "health.internal", "", "a b", "a/b", "?", "[::1", "]:1", "http://[", "a@b", "a:99999", "\xe9"]
HELLO = {"role": "user", "content": "hello"}
NOT_ITS_SHAPE: list[tuple[str, Any, list[str]]] = [
    ("", {"memory": []}, ["unknown field memory", "did you mean memories?"]),
    ("", {"memories": [{"contnet": "x"}]}, ["did you mean content?"]),
    ("", {"memories": [{"content": 5}]}, ["$.memories[0].content", "str"]),
    ("", {"memories": []}, ["1 to 200"]),
    ("", {"memories": [{"content": "x", "created_at": "yesterday"}]}, ["created_at", "ISO 8601", "yesterday"]),
    ("", {"memories": [{"content": "x", "created_at": -1}]}, ["created_at"]),
    ("", {"memories": [{"content": "x", "created_at": "9999-12-31T23:59:59-12:00"}]}, ["created_at"]),
    ("", {"memories": [{"content": "x", "created_at": NOW + 86_401}]}, ["memories[0]", "created_at", "future"]),
    ("", {"memories": [{"content": "x", "created_at": NOW * 1000}]}, ["created_at", "seconds"]),
    ("", {"memories": [{"content": "x", "memory_type": "feeling"}]}, ["memories[0]", "semantic"]),
    ("", {"memories": [{"content": "a\0b"}]}, ["memories[0]: content", "U+0000"]),
    ("", {"memories": [{"content": "x", "metadata": {"a": [{"b\x1b": 1}]}}]}, ["memories[0]: metadata", "U+001B"]),
    ("", [], ["object"]),
    ("/search", {}, ["query"]),
    ("/search", {"query": " "}, ["query"]),
    ("/search", {"query": "x", "memory_types": ["feeling"]}, ["memory_type", "semantic"]),
    ("/search", {"query": "x", "limit": 201}, ["limit", "200"]),
    ("/search", {"query": "x", "limits": 5}, ["did you mean limit?"]),
    ("/search", {"query": "x", "history": "hello"}, ["history", "messages"]),
    ("/search", {"query": "x", "project_id": " edge"}, ["project_id"]),
    ("/turns", {"session_id": "s", "messages": []}, ["user message"]),
    ("/turns", {"session_id": "s", "messages": [{"role": "assistant", "content": "hello?"}]}, ["user message"]),
    ("/turns", {"session_id": "", "messages": [HELLO]}, ["session_id"]),
    ("/turns", {"messages": [HELLO]}, ["session_id"]),
    ("/turns", {"session_id": "s", "messages": [5]}, ["messages"]),
    ("/turns", {"session_id": "s", "messages": [HELLO], "at": "2999-01-01"}, ["at is in the future"]),
    ("/flush", {"session": "s"}, ["did you mean session_id?"]),
    ("/flush", {"session_id": " s"}, ["session_id"]),
]


async def test_a_body_that_is_not_its_shape_is_told_where(api: httpx.AsyncClient) -> None:
    for path, body, words in NOT_ITS_SHAPE:
        assert_refused(await api.post(f"/v1/memory{path}", json=body), 400, *words)
    fitting = await add_one(api, "one\r\n\ttwo", created_at=NOW + 86_399)  # another time zone's today
    turns = {"session_id": "s", "messages": [HELLO], "at": NOW + 86_399}
    assert (await api.post("/v1/memory/turns", json=turns)).status_code == 202
    for edit in ({"content": "a\0b"}, {"metadata": {"a": "\x7f"}}):
        assert_refused(await api.patch(f"/v1/memory/{fitting}", json=edit), 400, "control character")


async def test_a_parameter_that_cannot_be_and_a_body_that_is_not_json_are_refused(api: httpx.AsyncClient) -> None:
    for query in "limit=0 limit=101 limit=x limit=٣ status=gone memory_type=x as_of=nan cursor=!".split():
        assert_refused(await api.get(f"/v1/memory?{query}"), 400)
    assert_refused(await api.get("/v1/memory", params={"name": "x" * 1_001}), 400, "name")
    assert_refused(await api.get("/v1/memory?memory_typ=semantic"), 400, "did you mean memory_type?")
    no_json = (b"", b"{", b"\xff", b'{"query": "\xff"}', b'{"query": "\\ud800"}', b'{"query": NaN}', b"[" * 100_000)
    for body, path in product(no_json, ("/v1/memory/search", "/v1/memory/turns", "/v1/conversations/s1/messages")):
        assert_refused(await api.post(path, content=body, headers={"content-type": "application/json"}), 400)


async def test_a_body_over_the_limit_is_refused_with_and_without_a_declared_length(api: httpx.AsyncClient) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(BODY_BYTES_MAX // 65_536 + 1):
            yield b" " * 65_536

    assert_refused(await api.post("/v1/memory/search", content=b" " * (BODY_BYTES_MAX + 1)), 413, "too_large")
    assert_refused(await api.post("/v1/memory/search", content=chunks()), 413, "too_large")


async def test_a_word_that_names_a_call_is_no_memorys_id_and_other_methods_are_refused(api: httpx.AsyncClient) -> None:
    others = {"/search": ("GET", "POST"), "/turns": ("DELETE", "POST"), "/stats": ("PATCH", "GET"), "": ("PUT", "GET")}
    for path, (method, allowed) in others.items():
        answer = await api.request(method, f"/v1/memory{path}")
        assert_refused(answer, 405, "method_not_allowed")
        assert allowed in answer.headers["allow"]
    assert_refused(await api.get("/v1/memories"), 404, "not_found")
    for method, word in product(("GET", "PATCH", "DELETE"), sorted(RESERVED)):
        assert "no such memory" not in (await api.request(method, f"/v1/memory/{word}")).text, (method, word)


async def test_a_part_that_is_down_is_503_with_a_time_to_try_again_and_no_detail(
    api: httpx.AsyncClient, parts: Parts
) -> None:
    parts.embedder.is_down = True
    answer = await api.post("/v1/memory", json={"memories": [{"content": "x"}]})
    assert_refused(answer, 503, "unavailable", "embedder")
    assert answer.headers["retry-after"] == "1"
    assert "switched off by the test" not in answer.text


async def test_our_own_fault_is_a_500_that_tells_nothing(
    api: httpx.AsyncClient, parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError("ann's secret")

    monkeypatch.setattr(parts.store, "page", broken)
    answer = await api.get("/v1/memory")
    assert_refused(answer, 500, "internal")
    assert "secret" not in answer.text


async def test_a_turn_that_cannot_be_looked_through_for_secrets_is_refused_with_a_reason(
    api: httpx.AsyncClient, parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(text: str, *_: object, **__: object) -> list[Span]:
        raise IndexError(text)

    monkeypatch.setattr(redaction, "secret_spans", broken)
    monkeypatch.setattr(parts.library, "_intake", replace(parts.library._intake, redact=redaction.recordable))
    said = [{"role": "user", "content": "my door is red"}, {"role": "assistant", "content": "Nice."}]
    answer = await api.post("/v1/memory/turns", json={"session_id": "s", "at": NOW, "messages": said})
    assert_refused(answer, 400, "not_recordable", "IndexError")
    assert "door" not in answer.text


# HEAD, OPTIONS, the label of calls that match nothing, and probes with any Host


async def test_head_is_get_without_a_body(api: httpx.AsyncClient) -> None:
    for path in ("/v1/memory", f"/v1/memory/{await add_one(api)}", "/v1/memory/stats", "/health", "/openapi.json"):
        get, head = await api.get(path), await api.head(path)
        assert (head.status_code, head.content) == (200, b"")
        assert dict(head.headers) == dict(get.headers)
        assert int(head.headers["content-length"]) == len(get.content) > 0
    for path, status in (("/v1/memory/nothing", 404), ("/v1/memory?limit=0", 400), ("/v1/memory/search", 405)):
        head = await api.head(path)
        assert (head.status_code, head.content) == (status, b"")


async def test_options_names_the_methods_and_changes_nothing(api: httpx.AsyncClient) -> None:
    one = await add_one(api)
    for path, methods in {
        "/v1/memory": {"DELETE", "GET", "OPTIONS", "POST"},
        "/v1/memory/anything": {"DELETE", "GET", "OPTIONS", "PATCH"},
        "/v1/memory/search": {"OPTIONS", "POST"},
        "/health": {"GET", "OPTIONS"},
        "/v1/sessions/s1/end": {"OPTIONS", "POST"},
        "/v1/memory/sessions/s1/end": {"OPTIONS", "POST"},
        "/v1/sessions/a/b": {"DELETE", "GET", "OPTIONS"},
    }.items():
        answer = await api.options(path)
        assert (answer.status_code, answer.content) == (204, b"")
        assert {name.strip() for name in answer.headers["allow"].split(",")} == methods
        assert "access-control-allow-origin" not in answer.headers
    assert [m["id"] for m in (await api.get("/v1/memory")).json()["memories"]] == [one]
    assert_refused(await api.options("/v1/nothing"), 404, "not_found")


async def test_calls_are_counted_by_route_and_code_and_nothing_that_a_client_chose(parts: Parts) -> None:
    registry = CollectorRegistry()
    async with api_of(parts, headers=ANN, metrics=Metrics(registry)) as api:
        one = await add_one(api)
        for path in (f"/v1/memory/{one}", "/v1/memory/another", "/v1/ann's secret", "/v1/a/b", "/health", "/nothing"):
            await api.get(path)
        await api.head(f"/v1/memory/{one}")
        await api.get("/v1/memory", headers={"host": "evil.example"})
    assert counted(registry, "memproxy_api_seconds_count", "route", "code") == {
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
    with socket.create_connection(("127.0.0.1", urlsplit(url).port or 0), timeout=60) as connection:
        connection.sendall(f"GET {path} HTTP/{version_and_host}\r\nConnection: close\r\n\r\n".encode("latin-1"))
        with connection.makefile("rb") as answer:
            return answer.readline().decode().strip()
