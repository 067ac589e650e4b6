"""The REST API over a real library: what each call takes and gives, and how it refuses."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio
from library_parts import NOW, Parts, library_parts
from prometheus_client import CollectorRegistry

from memory.api.rest import BODY_BYTES_MAX, RESERVED, create_app
from memory.model import Evidence, Memory, MemoryStatus, RequestOptions
from memory.runtime.metrics import Metrics
from memory.secrets import redaction
from memory.secrets.secret_classes import Span

ANN = {"x-authz-user-id": "ann"}
BOB = {"x-authz-user-id": "bob"}
JSON = {"content-type": "application/json"}
SECRET = "s3cret"


@pytest_asyncio.fixture
async def parts(tmp_path: Path) -> AsyncIterator[Parts]:
    async with library_parts(tmp_path) as built:
        yield built


@asynccontextmanager
async def api_of(
    parts: Parts, *, identity_mode: str = "development", **options: Any
) -> AsyncIterator[httpx.AsyncClient]:
    metrics = options.pop("metrics", None) or Metrics(CollectorRegistry())
    app = create_app(
        parts.library, identity_mode=identity_mode, edge_secret=options.pop("edge_secret", SECRET), metrics=metrics
    )
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost", **options) as client:
        yield client


@pytest_asyncio.fixture
async def api(parts: Parts) -> AsyncIterator[httpx.AsyncClient]:
    """Called by ann, in development."""
    async with api_of(parts, headers=ANN) as client:
        yield client


def assert_refused(answer: httpx.Response, status: int, *words: str) -> None:
    assert answer.status_code == status, answer.text
    error = answer.json()["error"]
    assert set(answer.json()) == {"error"}
    assert set(error) == {"code", "message"}
    for word in words:
        assert word in error["code"] + " " + error["message"]


async def add_one(api: httpx.AsyncClient, content: str = "I like tea", **fields: Any) -> str:
    answer = await api.post("/v1/memory", json={"memories": [{"content": content, **fields}]})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["ids"][0])


# Each call


async def test_what_is_created_is_found_shown_changed_and_deleted(api: httpx.AsyncClient) -> None:
    body = {
        "content": "I like green tea",
        "memory_type": "semantic",
        "category": "preference",
        "project_id": "red",
        "session_id": "s",
        "created_at": "2025-03-04T09:00:00Z",
        "importance": 0.9,
        "metadata": {"a": [1, "x", None]},
    }
    created = await api.post("/v1/memory", json={"memories": [body, {"content": "The car is blue"}]})
    assert created.status_code == 201
    one, two = created.json()["ids"]

    found = (await api.post("/v1/memory/search", json={"query": "green tea"})).json()
    assert found["took_ms"] > 0
    best = found["memories"][0]
    assert (best["id"], best["content"], best["memory_type"]) == (one, body["content"], "semantic")
    assert best["score"] > found["memories"][1]["score"]

    shown = (await api.get(f"/v1/memory/{one}")).json()
    assert {name: shown[name] for name in body} == body
    assert (shown["id"], shown["said_at"], shown["status"]) == (one, "2025-03-04T09:00:00Z", "active")

    changed = await api.patch(f"/v1/memory/{one}", json={"content": "I like black tea", "importance": 0})
    assert changed.status_code == 200
    assert (changed.json()["id"], changed.json()["content"], changed.json()["importance"]) == (
        one,
        "I like black tea",
        0,
    )

    assert (await api.get(f"/v1/memory/{one}/history")).json()["memories"] == [changed.json()]
    assert (await api.delete(f"/v1/memory/{one}")).status_code == 200
    assert_refused(await api.get(f"/v1/memory/{one}"), 404, "not_found")
    assert [m["id"] for m in (await api.get("/v1/memory")).json()["memories"]] == [two]


async def test_a_listing_goes_by_pages_status_type_and_time(api: httpx.AsyncClient, parts: Parts) -> None:
    for i in range(5):
        await add_one(api, f"number {i}", created_at=1_000 + i, memory_type="episodic" if i % 2 else "semantic")
    old = Memory(
        id="old", user_id="ann", content="old", created_at=1, updated_at=1, said_at=1, status=MemoryStatus.SUPERSEDED
    )
    await parts.put(old)

    async def contents(**parameters: Any) -> list[str]:
        return [m["content"] for m in (await api.get("/v1/memory", params=parameters)).json()["memories"]]

    assert await contents() == [f"number {i}" for i in (4, 3, 2, 1, 0)]
    assert await contents(memory_type="episodic") == ["number 3", "number 1"]
    assert await contents(status="superseded") == ["old"]
    assert len(await contents(status="all")) == 6
    assert await contents(as_of="1970-01-01T00:16:41Z") == ["number 1", "number 0"]
    assert await contents(as_of=1001) == ["number 1", "number 0"]
    first = (await api.get("/v1/memory?limit=3")).json()
    second = (await api.get("/v1/memory", params={"limit": 3, "cursor": first["next_cursor"]})).json()
    assert [m["content"] for m in first["memories"] + second["memories"]] == [f"number {i}" for i in (4, 3, 2, 1, 0)]
    assert second["next_cursor"] is None


async def test_a_search_hands_everything_to_the_ranking(api: httpx.AsyncClient, parts: Parts) -> None:
    body = {
        "query": "how much?",
        "limit": 7,
        "token_budget": 900,
        "memory_types": ["semantic"],
        "history": [
            {"role": "user", "content": "the trip"},
            {"role": "assistant", "content": [{"type": "text", "text": "ok"}]},
        ],
        "as_of": "2025-03-04T10:00:00+01:00",
    }
    assert (await api.post("/v1/memory/search", json=body)).json()["memories"] == []
    query, history, options, as_of = parts.searcher.asked[0]
    assert (query, as_of) == ("how much?", 1_741_078_800.0)
    assert [(m.role, m.content) for m in history] == [("user", "the trip"), ("assistant", "ok")]
    assert options == RequestOptions(memory_types=("semantic",), retrieval_limit=7, token_budget=900)


async def test_turns_are_accepted_and_learnt_and_flush_waits_for_them(api: httpx.AsyncClient, parts: Parts) -> None:
    messages = [{"role": "user", "content": "my cat is Tom"}, {"role": "assistant", "content": "nice"}]
    body = {"session_id": "s", "at": "2025-03-04T09:00:00Z", "messages": messages, "project_id": "red", "trace_id": "t"}
    accepted = await api.post("/v1/memory/turns", json=body)
    assert accepted.status_code == 202
    (turn,) = [turn async for turn in parts.library.turns("ann")]
    assert (turn.id, turn.at, turn.scope.project_id) == (accepted.json()["turn_id"], 1_741_078_800.0, "red")
    parts.now += 1
    assert (await api.post("/v1/memory/flush")).json() == {"pending": 1, "failed": 0}
    assert (await api.get("/v1/memory/stats")).json()["turns"] == {"pending": 1, "failed": 0}
    lease = await parts.lease()
    assert lease is not None
    await parts.learn(lease)
    assert (await api.post("/v1/memory/flush", json={"session_id": "s"})).json() == {"pending": 0, "failed": 0}
    stats = (await api.get("/v1/memory/stats")).json()
    assert stats["memories"] == {"active": 1, "superseded": 0, "archived": 0}
    assert stats["by_type"]["semantic"] == 1


async def test_a_scope_is_deleted_only_by_its_own_user_and_only_when_named(api: httpx.AsyncClient) -> None:
    await add_one(api, project_id="red")
    await add_one(api, project_id="blue")
    assert_refused(await api.delete("/v1/memory"), 400, "user_id must be given")
    assert_refused(await api.delete("/v1/memory?project_id=red"), 400, "user_id must be given")
    assert_refused(await api.delete("/v1/memory?user_id=bob"), 403, "forbidden")
    assert_refused(await api.delete("/v1/memory?user_id=ann&project_id="), 400, "project_id")
    assert (await api.get("/v1/memory/stats")).json()["memories"]["active"] == 2
    assert (await api.delete("/v1/memory?user_id=ann&project_id=red")).json() == {"deleted": 1, "withdrawn_turns": 0}
    assert (await api.delete("/v1/memory?user_id=ann")).json()["deleted"] == 1


async def test_health_follows_the_store_and_liveness_does_not(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    async def is_down() -> bool:
        return False

    async with api_of(parts) as api:
        assert [(await api.get(path)).status_code for path in ("/health", "/healthz")] == [200, 200]
        monkeypatch.setattr(parts.store, "is_ready", is_down)
        assert [(await api.get(path)).status_code for path in ("/health", "/healthz")] == [503, 200]


# Who calls


async def test_in_development_the_header_or_the_query_says_who_calls(parts: Parts) -> None:
    async with api_of(parts) as api:
        await add_one_as(api, "ann")
        assert (await api.get("/v1/memory/stats?user_id=ann")).json()["memories"]["active"] == 1
        assert (await api.get("/v1/memory/stats", headers=ANN)).json()["memories"]["active"] == 1
        assert (await api.get("/v1/memory/stats?user_id=ann", headers=ANN)).json()["memories"]["active"] == 1
        assert (await api.get("/v1/memory/stats?user_id=bob")).json()["memories"]["active"] == 0
        assert_refused(await api.get("/v1/memory/stats?user_id=bob", headers=ANN), 403, "forbidden")
        assert_refused(await api.get("/v1/memory/stats"), 401, "unauthenticated", "x-authz-user-id")


async def add_one_as(api: httpx.AsyncClient, user_id: str) -> str:
    answer = await api.post("/v1/memory", params={"user_id": user_id}, json={"memories": [{"content": "x"}]})
    return str(answer.json()["ids"][0])


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ([], 401),
        ([("x-authz-user-id", "ann")], 401),
        ([("x-authz-user-id", "ann"), ("x-memory-edge-secret", "wrong")], 401),
        ([("x-authz-user-id", "ann"), ("x-memory-edge-secret", SECRET), ("x-memory-edge-secret", SECRET)], 401),
        ([("x-memory-edge-secret", SECRET)], 401),
        ([("x-authz-user-id", "ann"), ("x-memory-edge-secret", SECRET)], 200),
        ([("x-authz-user-id", "ann"), ("x-authz-user-id", "bob"), ("x-memory-edge-secret", SECRET)], 400),
    ],
)
async def test_outside_development_the_header_counts_only_beside_the_edges_secret(
    headers: list[tuple[str, str]], status: int, parts: Parts
) -> None:
    async with api_of(parts, identity_mode="header") as api:
        assert (await api.get("/v1/memory/stats", headers=headers)).status_code == status
        expected = {200: 200, 401: 401, 400: 400}[status]
        assert (await api.get("/v1/memory/stats?user_id=ann", headers=headers)).status_code == expected


async def test_without_a_secret_set_nobody_is_believed_outside_development(parts: Parts) -> None:
    async with api_of(parts, identity_mode="header", edge_secret="") as api:
        headers = {**ANN, "x-memory-edge-secret": ""}
        assert_refused(await api.get("/v1/memory/stats", headers=headers), 401)


@pytest.mark.parametrize("user_id", [b" ann", b"ann\xe2\x80\x8b", b"a" * 257, b"\xff", b""])
async def test_an_id_that_cannot_be_is_refused(api: httpx.AsyncClient, user_id: bytes) -> None:
    answer = await api.get("/v1/memory/stats", headers={b"x-authz-user-id": user_id})
    assert answer.status_code == 400


@pytest.mark.parametrize(
    "query", ["user_id=%FF", "user_id=ann&user_id=bob", "user_id=ann%00", "user_id=", "user_id=%ed%a0%80"]
)
async def test_an_id_in_the_query_that_cannot_be_is_refused(parts: Parts, query: str) -> None:
    async with api_of(parts) as api:
        assert_refused(await api.get(f"/v1/memory/stats?{query}"), 400)


async def test_ids_are_compared_exactly(parts: Parts) -> None:
    async with api_of(parts) as api:
        alike = ["ann", "Ann", "ann.", "änn", "a\u0308nn", "ann\u2024", 'ann" or "a"=="a']
        ids = {user: await add_one_as(api, user) for user in alike}
        for user in alike:
            seen = (await api.get("/v1/memory", params={"user_id": user})).json()["memories"]
            assert [m["id"] for m in seen] == [ids[user]]
        assert_refused(await api.get(f"/v1/memory/{ids['Ann']}", params={"user_id": "ann"}), 404, "no such memory")


# Refusals

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


# Measures


async def test_calls_are_counted_by_route_and_code_and_nothing_that_a_client_chose(parts: Parts) -> None:
    metrics = Metrics(CollectorRegistry())
    async with api_of(parts, metrics=metrics, headers=ANN) as api:
        one = await add_one(api)
        await api.get(f"/v1/memory/{one}")
        await api.get("/v1/memory/somebody-elses")
    counted = {
        (sample.labels["route"], sample.labels["code"])
        for family in metrics.registry.collect()
        for sample in family.samples
        if sample.name == "memproxy_api_seconds_count"
    }
    assert counted == {("/v1/memory", "201"), ("/v1/memory/{id}", "200"), ("/v1/memory/{id}", "404")}


async def test_times_leave_as_whole_seconds_of_utc(api: httpx.AsyncClient) -> None:
    one = await add_one(api, created_at=1_741_078_800.999)
    assert (await api.get(f"/v1/memory/{one}")).json()["created_at"] == "2025-03-04T09:00:00Z"
    assert NOW == 1_750_000_000.0


async def test_forgetting_a_turn_forgets_what_stands_on_it_alone(api: httpx.AsyncClient, parts: Parts) -> None:
    told = {"created_at": NOW, "updated_at": NOW, "said_at": NOW, "user_id": "ann"}
    tea, again = Evidence("I like tea", "t1"), Evidence("I like tea!", "t2")
    await parts.put(
        Memory(id="alone", content="My cat is Tom", evidence=(Evidence("My cat is Tom", "t1"),), **told),
        Memory(id="twice", content="I like tea", evidence=(tea, again), **told),
        Memory(id="other", content="I sail", evidence=(Evidence("I sail", "t3"),), **told),
    )
    assert (await api.delete("/v1/memory/turns/t1", headers=BOB)).status_code == 404
    answer = await api.delete("/v1/memory/turns/t1")
    assert (answer.status_code, answer.json()) == (200, {"deleted": 1, "kept": 1})
    assert (await api.get("/v1/memory/alone")).status_code == 404
    left = (await api.get("/v1/memory/twice")).json()
    assert [quoted["turn_id"] for quoted in left["evidence"]] == ["t2"]
    assert (await api.get("/v1/memory/other")).status_code == 200
    assert_refused(await api.delete("/v1/memory/turns/t1"), 404, "not_found")
