"""`/v1/memory/opt-out`: what a user who has opted out can still do, and what nobody can do for them."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from api_parts import BOB, add_one, assert_refused
from library_parts import Parts

PATH = "/v1/memory/opt-out"
LINES = {"content-type": "application/x-ndjson"}


async def test_a_user_opts_out_and_in_and_the_state_is_shown_in_stats(api: httpx.AsyncClient, parts: Parts) -> None:
    is_in = {"opted_out": False, "opted_out_since": None}
    was_out = {"opted_out": True, "opted_out_since": "2025-06-15T15:06:40Z"}
    assert (await api.get(PATH)).json() == is_in
    for later in (0, 60):  # repeated: the time stays
        parts.now += later
        assert (await api.put(PATH)).json() == was_out
    assert (await api.get(PATH)).json() == was_out
    assert was_out.items() <= (await api.get("/v1/memory/stats")).json().items()
    assert (await api.get(PATH, headers=BOB)).json() == is_in
    assert (await api.delete(PATH)).json() == is_in
    assert not (await api.get("/v1/memory/stats")).json()["opted_out"]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/memory", {"memories": [{"content": "I like tea"}]}),
        ("/v1/memory/search", {"query": "What do I like?"}),
        ("/v1/memory/turns", {"session_id": "s", "at": 1.0, "messages": [{"role": "user", "content": "I like tea"}]}),
        (
            "/v1/memory/conversations/c/messages",
            {"messages": [{"source_type": "user", "target_type": "agent", "target": "a", "content": "I like tea"}]},
        ),
    ],
)
async def test_nothing_is_searched_or_stored_meanwhile(
    api: httpx.AsyncClient, parts: Parts, path: str, body: dict[str, Any]
) -> None:
    assert (await api.post(path, json=body)).is_success
    recorded = (await api.get("/v1/memory/messages")).json()
    asked, stored = len(parts.searcher.asked), (await api.get("/v1/memory/stats")).json()
    await api.put(PATH)
    assert_refused(await api.post(path, json=body), 403, "opted_out")
    after = (await api.get("/v1/memory/stats")).json()
    assert (await api.get("/v1/memory/messages")).json() == recorded
    assert (after["memories"], after["turns"]) == (stored["memories"], stored["turns"])
    assert len(parts.searcher.asked) == asked
    await api.delete(PATH)
    assert (await api.post(path, json=body)).is_success


async def test_no_file_is_imported_meanwhile(api: httpx.AsyncClient) -> None:
    await add_one(api, "I like tea")
    await api.put("/v1/profile", json={"pinned": ["Be brief"]})
    lines = (await api.get("/v1/memory/export")).content
    await api.delete("/v1/memory", params={"user_id": "ann"})
    await api.put(PATH)
    assert_refused(await api.post("/v1/memory/import", content=lines, headers=LINES), 403, "opted_out")
    assert (await api.get("/v1/memory")).json()["memories"] == []
    await api.delete(PATH)
    counts = (await api.post("/v1/memory/import", content=lines, headers=LINES)).json()
    assert (counts["stored"], counts["profiles"]) == (1, 1)  # the user was erased: nothing is known of them any more


@pytest.mark.parametrize("path", ["/v1/memory", "/v1/memory/import"])
async def test_who_opts_out_while_memories_are_embedded_is_not_stored(
    api: httpx.AsyncClient, parts: Parts, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    embed = type(parts.embedder).embed

    async def slow(self: Any, texts: Any, **options: Any) -> Any:
        await api.put(PATH)
        return await embed(self, texts, **options)

    row = {"id": "m", "user_id": "ann", "content": "tea", "created_at": 1, "updated_at": 1, "said_at": 1}
    lines = {"kind": "memproxy-export", "user_id": "ann"}, {"kind": "memory", "memory": row}
    body: dict[str, Any] = {"json": {"memories": [{"content": "tea"}]}}
    if path != "/v1/memory":
        body = {"content": "\n".join(map(json.dumps, lines)), "headers": LINES}
    with monkeypatch.context() as patch:
        patch.setattr(type(parts.embedder), "embed", slow)
        assert_refused(await api.post(path, **body), 403, "opted_out")
    assert (await api.get("/v1/memory")).json()["memories"] == []


async def test_what_is_stored_stays_and_can_be_listed_corrected_and_forgotten(api: httpx.AsyncClient) -> None:
    memory_id, other_id = await add_one(api, "I live in Ulm"), await add_one(api, "I like tea")
    await api.put(PATH)
    listed = (await api.get("/v1/memory")).json()["memories"]
    assert {memory["id"] for memory in listed} == {memory_id, other_id}
    edited = await api.patch(f"/v1/memory/{memory_id}", json={"content": "I live in Bonn"})
    assert edited.json()["content"] == "I live in Bonn"
    assert (await api.delete(f"/v1/memory/{memory_id}")).is_success
    assert (await api.get(f"/v1/memory/{other_id}")).is_success


async def test_erasing_everything_keeps_the_opt_out(api: httpx.AsyncClient) -> None:
    await add_one(api)
    await api.put(PATH)
    assert (await api.delete("/v1/memory", params={"user_id": "ann"})).is_success
    assert (await api.get(PATH)).json()["opted_out"] is True
