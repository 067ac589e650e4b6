"""The REST API: how it refuses, and that it says why."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from api_parts import add_one, assert_refused
from library_parts import NOW, Parts

from memory.api.guards import RESERVED
from memory.api.rest import BODY_BYTES_MAX
from memory.secrets import redaction
from memory.secrets.secret_classes import Span

JSON = {"content-type": "application/json"}

HELLO = {"role": "user", "content": "hello"}


async def test_what_is_said_tomorrow_may_be_another_time_zones_today(api: httpx.AsyncClient) -> None:
    await add_one(api, created_at=NOW + 86_399)
    turns = {"session_id": "s", "messages": [HELLO], "at": NOW + 86_399}
    assert (await api.post("/v1/memory/turns", json=turns)).status_code == 202


@pytest.mark.parametrize(
    ("path", "body", "words"),
    [
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
        ("/search", {"query": "x", "limit": 201}, ["limit", "200"]),
        ("/search", {"query": "x", "limits": 5}, ["did you mean limit?"]),
        ("/search", {"query": "x", "history": "hello"}, ["history", "messages"]),
        ("/search", {"query": "x", "project_id": " edge"}, ["project_id"]),
        ("/turns", {"session_id": "s", "messages": []}, ["user message"]),
        ("/turns", {"session_id": "", "messages": [{"role": "user", "content": "x"}]}, ["session_id"]),
        ("/turns", {"messages": [{"role": "user", "content": "x"}]}, ["session_id"]),
        ("/turns", {"session_id": "s", "messages": [5]}, ["messages"]),
        ("/turns", {"session_id": "s", "messages": [HELLO], "at": "2999-01-01"}, ["at is in the future"]),
        ("/flush", {"session": "s"}, ["did you mean session_id?"]),
        ("/flush", {"session_id": " s"}, ["session_id"]),
    ],
)
async def test_a_body_that_is_not_its_shape_is_told_where(
    api: httpx.AsyncClient, path: str, body: Any, words: list[str]
) -> None:
    assert_refused(await api.post(f"/v1/memory{path}", json=body), 400, *words)


async def test_a_control_character_is_refused_in_an_edit_as_well_and_ends_of_lines_are_none(
    api: httpx.AsyncClient,
) -> None:
    path = f"/v1/memory/{await add_one(api, 'one' + chr(13) + chr(10) + chr(9) + 'two')}"
    for edit in ({"content": "a\0b"}, {"metadata": {"a": "\x7f"}}):
        assert_refused(await api.patch(path, json=edit), 400, "control character")


@pytest.mark.parametrize(
    "query",
    ["limit=0", "limit=101", "limit=x", "limit=٣", "status=gone", "memory_type=x", "as_of=nan", "cursor=!", "a=b"],
)
async def test_a_parameter_that_cannot_be_is_refused(api: httpx.AsyncClient, query: str) -> None:
    assert_refused(await api.get(f"/v1/memory?{query}"), 400)


async def test_an_unknown_parameter_is_told_its_nearest_neighbour(api: httpx.AsyncClient) -> None:
    assert_refused(await api.get("/v1/memory?memory_typ=semantic"), 400, "did you mean memory_type?")


@pytest.mark.parametrize(
    "body", [b"", b"{", b"\xff", b'{"query": "\xff"}', b'{"query": "\\ud800"}', b'{"query": NaN}', b"[" * 100_000]
)
async def test_a_body_that_is_not_json_is_refused(api: httpx.AsyncClient, body: bytes) -> None:
    assert_refused(await api.post("/v1/memory/search", content=body, headers=JSON), 400)


async def test_a_body_over_the_limit_is_refused_with_and_without_a_declared_length(api: httpx.AsyncClient) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(BODY_BYTES_MAX // 65_536 + 1):
            yield b" " * 65_536

    assert_refused(await api.post("/v1/memory/search", content=b" " * (BODY_BYTES_MAX + 1)), 413, "too_large")
    assert_refused(await api.post("/v1/memory/search", content=chunks()), 413, "too_large")


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", "search", "POST"),
        ("DELETE", "turns", "POST"),
        ("GET", "flush", "POST"),
        ("PATCH", "stats", "GET"),
    ],
)
async def test_a_word_that_names_a_call_is_no_memorys_id(
    api: httpx.AsyncClient, method: str, path: str, allowed: str
) -> None:
    answer = await api.request(method, f"/v1/memory/{path}")
    assert_refused(answer, 405, "method_not_allowed")
    assert allowed in answer.headers["allow"]


@pytest.mark.parametrize("word", sorted(RESERVED))
@pytest.mark.parametrize("method", ["GET", "PATCH", "DELETE"])
async def test_no_reserved_word_is_looked_up_as_a_memory(api: httpx.AsyncClient, method: str, word: str) -> None:
    assert "no such memory" not in (await api.request(method, f"/v1/memory/{word}")).text


async def test_paths_and_methods_that_are_not_there_answer_in_the_same_shape(api: httpx.AsyncClient) -> None:
    assert_refused(await api.get("/v1/memories"), 404, "not_found")
    assert_refused(await api.put("/v1/memory", json={}), 405, "method_not_allowed")


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
    def broken(text: str) -> list[Span]:
        raise IndexError(text)

    monkeypatch.setattr(redaction, "secret_spans", broken)
    monkeypatch.setattr(parts.library, "_redact", redaction.recordable)
    said = [{"role": "user", "content": "my door is red"}, {"role": "assistant", "content": "Nice."}]
    answer = await api.post("/v1/memory/turns", json={"session_id": "s", "at": NOW, "messages": said})
    assert_refused(answer, 400, "not_recordable", "IndexError")
    assert "door" not in answer.text
