"""The REST API over a real library: what each call takes and gives."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import httpx
import pytest
from api_parts import BOB, add_one, api_of, assert_refused, learn_all
from library_parts import NOW, Parts

from memory.chat.envelopes import Envelopes
from memory.model import Evidence, Memory, MemoryStatus, RequestOptions
from memory.model.claim_filters import ClaimFilter


async def test_what_is_created_is_found_shown_changed_and_deleted(api: httpx.AsyncClient) -> None:
    kinds = {"memory_type": "semantic", "category": "preference", "project_id": "red", "session_id": "s"}
    said = {"created_at": "2025-03-04T09:00:00Z", "importance": 0.9, "metadata": {"a": [1, "x", None]}}
    body = {"content": "I like green tea", **kinds, **said}
    other = {"content": "The car is blue", "created_at": 1_741_078_800.999}
    created = await api.post("/v1/memory", json={"memories": [body, other]})
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

    edit = {"content": "I like black tea", "importance": 0}
    changed = await api.patch(f"/v1/memory/{one}", json=edit)
    assert changed.status_code == 200
    assert changed.json() == shown | edit | {"updated_at": changed.json()["updated_at"]}

    past = (await api.get(f"/v1/memory/{one}/history")).json()
    assert past["memories"] == [changed.json()]
    (earlier,) = past["earlier"]
    assert (earlier["memory_id"], earlier["content"], earlier["corrected_by"]) == (one, body["content"], "user")
    assert (earlier["since"], earlier["until"]) == ("2025-03-04T09:00:00Z", changed.json()["updated_at"])
    assert (await api.delete(f"/v1/memory/{one}")).status_code == 200
    assert_refused(await api.get(f"/v1/memory/{one}"), 404, "not_found")
    [left] = (await api.get("/v1/memory")).json()["memories"]
    assert (left["id"], left["created_at"]) == (two, "2025-03-04T09:00:00Z")  # whole seconds of UTC


async def test_a_listing_goes_by_pages_status_type_and_time(api: httpx.AsyncClient, parts: Parts) -> None:
    for i in range(5):
        await add_one(api, f"number {i}", created_at=1_000 + i, memory_type="episodic" if i % 2 else "semantic")
    await parts.put(Memory("old", "ann", "old", 1, 1, 1, status=MemoryStatus.SUPERSEDED))

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


async def test_facts_of_a_sentence_stand_together_and_pages_stay(api: httpx.AsyncClient, parts: Parts) -> None:
    said = "We keep bees and I dive, by the way."
    for number, clause in enumerate(("I dive", "", "We keep bees", "", "by the way")):
        content = clause or f"Fact {number}"
        evidence = (Evidence(said if clause else content, "t", clause=content),)
        await parts.put(Memory(f"m{number}", "ann", content, NOW - number, NOW, NOW, evidence=evidence))

    async def page(**parameters: Any) -> dict[str, Any]:
        found: dict[str, Any] = (await api.get("/v1/memory", params=parameters)).json()
        return found

    whole = (await page())["memories"]
    assert [one["content"] for one in whole] == ["We keep bees", "I dive", "by the way", "Fact 1", "Fact 3"]
    ids = [one["sentence_id"] for one in whole]
    assert ids == [ids[0]] * 3 + [None] * 2
    assert (await api.get("/v1/memory/m0")).json()["sentence_id"] == ids[0] is not None
    first = await page(limit=3)
    second = await page(limit=3, cursor=first["next_cursor"])
    assert [one["id"] for one in first["memories"]] == ["m2", "m0", "m1"]
    assert [(one["id"], one["sentence_id"]) for one in second["memories"]] == [("m3", None), ("m4", ids[0])]


async def test_a_listing_is_read_as_clients_of_the_router_read_it(api: httpx.AsyncClient) -> None:
    for number, kind in enumerate(("semantic", "episodic", "procedural", "episodic")):
        await add_one(api, f"number {number}", memory_type=kind)
    found = (await api.get("/v1/memory", params={"type": "episodic, procedural", "limit": 2})).json()
    assert [(one["type"], one["memory_type"]) for one in found["memories"]] == [("episodic",) * 2, ("procedural",) * 2]
    assert (found["total"], found["limit"]) == (3, 2)
    assert (await api.get("/v1/memory")).json()["total"] == 4
    for uncounted in ({"as_of": "2020-01-01"}, {"value": "tea"}):
        assert (await api.get("/v1/memory", params=uncounted)).json()["total"] is None
    for wrong in ("other", "semantic,other"):
        assert_refused(await api.get("/v1/memory", params={"type": wrong}), 400, "memory_type must be one of")
    assert_refused(await api.get("/v1/memory?type=semantic&memory_type=semantic"), 400, "give one of them")
    assert_refused(await api.delete("/v1/memory?user_id=ann&type=semantic"), 400, "unknown field type")
    assert (await api.get("/v1/memory")).json()["total"] == 4


async def test_a_search_hands_everything_to_the_ranking(api: httpx.AsyncClient, parts: Parts) -> None:
    claim = {"subject": "pet", "name": "Tom", "attribute": "food", "value": "fish"}
    answer = {"role": "assistant", "content": [{"type": "text", "text": "ok"}]}
    body = {
        "query": "how much?",
        "limit": 7,
        "token_budget": 900,
        "memory_types": ["semantic"],
        "history": [{"role": "user", "content": "the trip"}, answer],
        "as_of": "2025-03-04T10:00:00+01:00",
    }
    assert (await api.post("/v1/memory/search", json=body | claim)).json()["memories"] == []
    await api.post("/v1/memory/search", json={"query": "what?", "subject": None, "name": ""})
    (query, history, options, as_of), (_, _, plain, _) = parts.searcher.asked
    assert (query, as_of) == ("how much?", 1_741_078_800.0)
    assert [(m.role, m.content) for m in history] == [("user", "the trip"), ("assistant", "ok")]
    asked = RequestOptions(memory_types=("semantic",), retrieval_limit=7, token_budget=900)
    assert options == replace(asked, claim=ClaimFilter("pet", "Tom", "food", "fish"))
    assert plain.claim == ClaimFilter()
    for field in claim:
        assert_refused(await api.post("/v1/memory/search", json={"query": "what?", field: "x" * 1_001}), 400, field)


async def test_turns_are_read_as_chats_are_and_learnt_and_flush_waits(api: httpx.AsyncClient, parts: Parts) -> None:
    parts.library.envelopes = Envelopes.parsed(["ask", "-hint"])
    said = (("ann", "<hint>\nI am Al\n</hint>\n<ask>\nI am Ann\n</ask>"), ("Bob", "I am Bob"))
    messages = [{"role": "user", "name": name, "content": text} for name, text in said]
    messages.append({"role": "assistant", "content": "nice"})
    body = {"session_id": "s", "at": "2025-03-04T09:00:00Z", "messages": messages, "project_id": "red", "trace_id": "t"}
    accepted = await api.post("/v1/memory/turns", json=body)
    assert accepted.status_code == 202
    (turn,) = [turn async for turn in parts.library.turns("ann")]
    assert (turn.id, turn.at, turn.scope.project_id) == (accepted.json()["turn_id"], 1_741_078_800.0, "red")
    assert [one.content for one in turn.messages] == ["I am Ann"]
    parts.now += 1
    assert (await api.post("/v1/memory/flush")).json() == {"pending": 1, "failed": 0}
    assert (await api.get("/v1/memory/stats")).json()["turns"] == {"pending": 1, "failed": 0}
    await learn_all(parts)
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


async def test_forgetting_a_turn_forgets_what_stands_on_it_alone(api: httpx.AsyncClient, parts: Parts) -> None:
    told = {"alone": ("My cat is Tom", ["t1"]), "twice": ("I like tea", ["t1", "t2"]), "other": ("I sail", ["t3"])}
    for memory_id, (said, turns) in told.items():
        evidence = tuple(Evidence(said, turn) for turn in turns)
        await parts.put(Memory(memory_id, "ann", said, NOW, NOW, NOW, evidence=evidence))
    assert (await api.delete("/v1/memory/turns/t1", headers=BOB)).status_code == 404
    answer = await api.delete("/v1/memory/turns/t1")
    assert (answer.status_code, answer.json()) == (200, {"deleted": 1, "kept": 1})
    assert (await api.get("/v1/memory/alone")).status_code == 404
    left = (await api.get("/v1/memory/twice")).json()
    assert [quoted["turn_id"] for quoted in left["evidence"]] == ["t2"]
    assert (await api.get("/v1/memory/other")).status_code == 200
    assert_refused(await api.delete("/v1/memory/turns/t1"), 404, "not_found")
