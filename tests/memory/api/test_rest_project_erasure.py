"""The erasure of one project over REST: who may ask for it, what goes and what stays, and what its proof says."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from api_parts import BOB, add_one, assert_refused
from library_parts import NOW, Parts
from project_world import ProjectWorld, project_world

from memory.errors import Unavailable
from memory.model import Memory, MemoryStatus, RecallStatus, Receipt
from memory.service.erasure_states import LOOK_AGAIN_SECONDS

RED = {"project_id": "red"}


async def erased(api: httpx.AsyncClient, parts: Parts) -> str:
    """The id of an erasure of `red` whose files are rewritten."""
    answer = await api.delete("/v1/memory/everything", params=RED)
    assert answer.status_code == 202, answer.text
    assert answer.json()["state"] == "deleted"
    erasure_id = str(answer.json()["erasure_id"])
    await parts.erasures.rewritten(await parts.erasures.pending(), at=NOW + 5)
    return erasure_id


async def test_all_of_the_project_goes_and_all_else_stays(api: httpx.AsyncClient, parts: Parts) -> None:
    for project in ("red", "blue", ""):
        await add_one(api, f"The office of {project} is green", project_id=project)
        said = [{"role": "user", "content": f"I work on {project}"}]
        turn = {"session_id": f"s-{project}", "at": 1_000, "messages": said, "project_id": project}
        assert (await api.post("/v1/memory/turns", json=turn)).is_success
        profile = await api.put("/v1/profile", params={"project_id": project}, json={"pinned": [f"Be {project}"]})
        assert profile.is_success
        receipt = Receipt(f"r-{project}", "ann", NOW, RecallStatus.EMPTY, "nothing_relevant", project_id=project)
        parts.receipts.keep(receipt)
    parts.now += 1
    answer = (await api.delete("/v1/memory/everything", params=RED)).json()
    assert answer["deleted"] == {"memories": 1, "turns_withdrawn": 1}
    exported = (await api.get("/v1/memory/export", params=RED)).text
    assert len(exported.splitlines()) == 1
    listed = (await api.get("/v1/memory/receipts")).json()["receipts"]
    assert sorted(one["id"] for one in listed) == ["r-", "r-blue"]
    whole = (await api.get("/v1/memory/export")).text
    assert len(whole.splitlines()) == 1 + 2 * 3
    assert not [words for words in ('"red"', "of red", "on red", "Be red") if words in whole]


async def test_its_proof_is_partial_and_says_why(api: httpx.AsyncClient, parts: Parts) -> None:
    await add_one(api, "The office is green", project_id="red")
    await add_one(api, "The office is blue", project_id="blue")
    erasure_id = await erased(api, parts)
    shown = (await api.get(f"/v1/memory/erasures/{erasure_id}", params=RED)).json()
    assert (shown["state"], shown["rewritten_at"]) == ("partly_proven", "2025-06-15T15:06:45Z")
    [rows] = shown["scan"]["places"]
    assert (rows["place"], rows["found_in"]) == ("rows", [])
    assert "bytes of files" in rows["not_searched"][0]


@pytest.mark.parametrize(
    ("left", "named"),
    [
        (Memory("m1", "ann", "I like tea", NOW, NOW, NOW, project_id="red"), ["memories: 1"]),
        (
            Memory("m1", "ann", "I like tea", NOW, NOW, NOW, project_id="red", status=MemoryStatus.RAW),
            ["raw words: 1"],
        ),
        (Receipt("r1", "ann", NOW, RecallStatus.EMPTY, "nothing_relevant", project_id="red"), ["receipts: 1"]),
        ("turn", ["turns: 1"]),
        ("profile", ["profiles: 1"]),
    ],
    ids=["memory", "raw words", "receipt", "turn", "profile"],
)
async def test_what_is_left_of_it_is_named_until_it_is_gone(
    api: httpx.AsyncClient, parts: Parts, left: Memory | Receipt | str, named: list[str]
) -> None:
    erasure_id = await erased(api, parts)
    match left:
        case Memory():
            await parts.put(left)
        case Receipt():
            parts.receipts.keep(left)
            await parts.receipts.amend("ann", "another", {})  # written after it
        case "turn":
            turn = {"session_id": "s", "at": 1, "messages": [{"role": "user", "content": "Hello"}], **RED}
            assert (await api.post("/v1/memory/turns", json=turn)).is_success
        case _:
            await api.put("/v1/profile", params=RED, json={"pinned": ["Be brief"]})
    path = f"/v1/memory/erasures/{erasure_id}"
    shown = (await api.get(path, params=RED)).json()
    assert (shown["state"], shown["scan"]["found_in"]) == ("remains", named)
    parts.now += LOOK_AGAIN_SECONDS
    again = await erased(api, parts)
    assert (await api.get(f"/v1/memory/erasures/{again}", params=RED)).json()["state"] == "partly_proven"
    parts.now += 2 * LOOK_AGAIN_SECONDS
    assert (await api.get(path, params=RED)).json()["state"] == "partly_proven"


async def test_what_was_said_after_the_erasure_does_not_remain_of_it(api: httpx.AsyncClient, parts: Parts) -> None:
    erasure_id = await erased(api, parts)
    parts.now += 60
    for row in (
        Memory("m1", "ann", "I like tea", parts.now, parts.now, parts.now, project_id="red"),
        Memory("m2", "ann", "Tea", parts.now, parts.now, parts.now, project_id="red", status=MemoryStatus.RAW),
    ):
        await parts.put(row)
    turn = {"session_id": "s", "messages": [{"role": "user", "content": "Hello"}], **RED}
    assert (await api.post("/v1/memory/turns", json=turn)).is_success
    await api.put("/v1/profile", params=RED, json={"pinned": ["Be brief"]})
    await add_one(api, "The office is green", project_id="red")
    parts.receipts.keep(Receipt("r1", "ann", parts.now, RecallStatus.EMPTY, "nothing_relevant", project_id="red"))
    await parts.receipts.amend("ann", "another", {})  # written after it
    shown = (await api.get(f"/v1/memory/erasures/{erasure_id}", params=RED)).json()
    assert (shown["state"], shown["scan"]["found_in"]) == ("partly_proven", [])
    assert shown["scan"]["places"][0]["items"] >= 5


async def test_what_was_said_before_and_is_learnt_after_it_remains(api: httpx.AsyncClient, parts: Parts) -> None:
    erasure_id = await erased(api, parts)
    later = NOW + 60
    await parts.put(Memory("m1", "ann", "I like tea", later, later, NOW - 60, project_id="red"))
    await parts.put(Memory("m2", "ann", "I like milk", NOW - 60, later, later, project_id="red"))
    shown = (await api.get(f"/v1/memory/erasures/{erasure_id}", params=RED)).json()
    assert (shown["state"], shown["scan"]["found_in"]) == ("remains", ["memories: 2"])


async def test_it_is_known_to_its_user_alone_who_names_the_project(api: httpx.AsyncClient, parts: Parts) -> None:
    erasure_id = await erased(api, parts)
    path = f"/v1/memory/erasures/{erasure_id}"
    assert (await api.get(path, params=RED)).is_success
    assert_refused(await api.get(path), 404)
    assert_refused(await api.get(path, params={"project_id": "blue"}), 404)
    assert_refused(await api.get(path, params=RED, headers=BOB), 404)
    of_user = (await api.delete("/v1/memory/everything")).json()["erasure_id"]
    assert_refused(await api.get(f"/v1/memory/erasures/{of_user}", params=RED), 404)
    for project in ("", " red", "red\n"):
        for call in (api.delete("/v1/memory/everything", params={"project_id": project}),
                     api.get(path, params={"project_id": project})):  # fmt: skip
            assert_refused(await call, 400)


async def test_deleting_a_project_has_its_files_rewritten(api: httpx.AsyncClient, parts: Parts) -> None:
    await add_one(api, "The office is green", project_id="red")
    answer = await api.delete("/v1/memory", params={"user_id": "ann", **RED})
    assert answer.json() == {"deleted": 1, "withdrawn_turns": 0}
    [waiting] = await parts.erasures.pending()
    assert waiting.deleted == {"memories": 1, "turns_withdrawn": 0}


async def test_deleting_a_shared_project_has_its_files_rewritten_and_only_its_owner_may(
    api: httpx.AsyncClient, parts: Parts
) -> None:
    assert (await api.post("/v1/memory/projects", json=RED)).is_success
    assert (await api.put("/v1/memory/projects/red/members/bob", json={"role": "admin"})).is_success
    assert_refused(await api.delete("/v1/memory/projects/red", headers=BOB), 403)
    assert await parts.erasures.pending() == []
    assert (await api.delete("/v1/memory/projects/red")).json() == {"deleted": 1}
    [waiting] = await parts.erasures.pending()
    assert waiting.deleted == {"shared_projects": 1}
    assert_refused(await api.delete("/v1/memory/projects/red"), 404)


async def test_files_are_rewritten_also_if_deleting_a_shared_project_was_broken_off(
    api: httpx.AsyncClient, parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (await api.post("/v1/memory/projects", json=RED)).is_success

    async def broken_off(*_: str) -> None:
        raise Unavailable("store", "away")

    monkeypatch.setattr(parts.library.projects.membership, "delete", broken_off)
    assert_refused(await api.delete("/v1/memory/projects/red"), 503)
    [waiting] = await parts.erasures.pending()
    assert waiting.deleted == {"shared_projects": 0}


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[ProjectWorld]:
    async with project_world(tmp_path) as built:
        yield built


async def contents(world: ProjectWorld, user: str) -> set[str]:
    answer = await world.call(user, "GET", "/projects/apollo/memories")
    return {one["content"] for one in answer.json()["memories"]}


@pytest.mark.parametrize("role", ["viewer", "editor", "admin", "owner", "no member"])
async def test_in_a_shared_project_everybody_erases_what_is_theirs_and_nobody_what_others_shared(
    world: ProjectWorld, role: str
) -> None:
    await world.call("olga", "POST", "/projects", {"project_id": "apollo"})
    for user in ("sue", "mo"):
        await world.call("olga", "PUT", f"/projects/apollo/members/{user}", {"role": "editor"})
        one = {"content": f"the kestrel launch, says {user}", "project_id": "apollo", "visibility": "members"}
        assert (await world.call(user, "POST", "", {"memories": [one]})).is_success
    private = {"content": "my own kestrel", "project_id": "apollo"}
    await world.call("sue", "POST", "", {"memories": [private]})
    match role:
        case "no member":
            await world.call("olga", "DELETE", "/projects/apollo/members/sue")
        case "owner":
            await world.call("olga", "POST", "/projects/apollo/owner", {"user_id": "sue"})
        case _:
            await world.call("olga", "PUT", "/projects/apollo/members/sue", {"role": role})
    answer = await world.call("sue", "DELETE", "/everything?project_id=apollo")
    assert answer.json()["deleted"]["memories"] == 2
    assert await contents(world, "mo") == {"the kestrel launch, says mo"}
    assert (await world.call("sue", "GET", "?project_id=apollo")).json()["memories"] == []


async def test_a_token_for_some_projects_erases_those_alone(tmp_path: Path) -> None:
    async with project_world(tmp_path, has_tenants=True) as world:
        everywhere: dict[str, Any] = {"tenant": "acme", "projects": ["apollo", "zeus"]}
        for project in ("apollo", "zeus"):
            one = {"content": f"the office of {project} is green", "project_id": project}
            assert (await world.call("olga", "POST", "", {"memories": [one]}, **everywhere)).is_success
        alone: dict[str, Any] = {"tenant": "acme", "projects": ["apollo"]}
        assert_refused(await world.call("olga", "DELETE", "/everything?project_id=zeus", **alone), 403)
        assert_refused(await world.call("olga", "DELETE", "/everything", **alone), 403, "all of them")
        assert_refused(await world.call("olga", "GET", "/erasures/e1", **alone), 403, "all of them")
        assert_refused(await world.call("olga", "GET", "/erasures/e1?project_id=zeus", **alone), 403)
        other = await world.call("olga", "DELETE", "/everything?project_id=apollo", tenant="beta", projects=["apollo"])
        assert other.json()["deleted"]["memories"] == 0
        answer = await world.call("olga", "DELETE", "/everything?project_id=apollo", **alone)
        assert answer.json()["deleted"]["memories"] == 1
        left = await world.call("olga", "GET", "?project_id=zeus", **everywhere)
        assert [one["content"] for one in left.json()["memories"]] == ["the office of zeus is green"]
