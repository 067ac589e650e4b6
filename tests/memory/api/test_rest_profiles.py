"""`/v1/profile`, and the same below `/v1/memory`, which the proxy's port serves."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from api_parts import BOB, add_one, api_of, assert_refused
from library_parts import Parts

both_paths = pytest.mark.parametrize("path", ["/v1/profile", "/v1/memory/profile"])


async def shown(api: httpx.AsyncClient, path: str = "/v1/profile", **parameters: str) -> dict[str, Any]:
    answer = await api.get(path, params=parameters)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


@both_paths
async def test_it_is_shown_pinned_switched_and_deleted(api: httpx.AsyncClient, path: str) -> None:
    assert_refused(await api.get(path), 404, "profile")
    memory_id = await add_one(api, "I prefer green tea", category="preference")
    first = await shown(api, path)
    assert first["lines"] == [{"text": "[2025-06] I prefer green tea", "memory_id": memory_id, "evidence": []}]
    assert (first["version"], first["enabled"], first["pinned"], first["project_id"]) == (1, True, [], "")
    changed = await api.put(path, json={"pinned": ["Answer in German"], "enabled": False})
    assert changed.status_code == 200
    assert changed.json() == await shown(api, path)
    assert (changed.json()["pinned"], changed.json()["enabled"]) == (["Answer in German"], False)
    assert (changed.json()["text"], changed.json()["tokens"]) == ("", 0)
    again = (await api.put(path, json={"enabled": True})).json()
    assert "- Answer in German\n- [2025-06] I prefer green tea\n" in again["text"]
    assert 0 < again["tokens"] <= 200
    assert (await api.delete(path)).json() == {"deleted": True}
    assert_refused(await api.get(path), 404, "profile")


async def test_a_project_has_its_own_and_nobody_sees_another_user_s(api: httpx.AsyncClient, parts: Parts) -> None:
    await add_one(api, "I prefer tabs", category="preference", project_id="atlas")
    assert (await shown(api, project_id="atlas"))["lines"][0]["text"] == "[2025-06] I prefer tabs"
    assert_refused(await api.get("/v1/profile"), 404)
    async with api_of(parts, headers=BOB) as bob:
        assert_refused(await bob.get("/v1/profile", params={"project_id": "atlas"}), 404)
        await bob.delete("/v1/profile")
    assert (await shown(api, project_id="atlas"))["lines"]


@pytest.mark.parametrize(
    ("body", "word"),
    [({}, "nothing to change"), ({"pinned": [""]}, "line"), ({"pin": []}, "pin"), ({"pinned": "x"}, "pinned")],
)
async def test_what_makes_no_sense_is_refused(api: httpx.AsyncClient, body: dict[str, Any], word: str) -> None:
    assert_refused(await api.put("/v1/profile", json=body), 400, word)


async def test_an_invalid_project_and_unknown_parameters_are_refused(api: httpx.AsyncClient) -> None:
    assert_refused(await api.get("/v1/profile", params={"project_id": " a"}), 400)
    assert_refused(await api.get("/v1/profile", params={"project": "a"}), 400, "project_id")
    assert_refused(await api.post("/v1/profile", json={}), 405)
