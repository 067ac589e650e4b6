"""One project over REST: who may erase it, what goes and what stays; and its export.

An export has what the caller has in exactly that project, and what its members share with each other.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from itertools import product
from pathlib import Path
from typing import Any

import httpx
import pytest
from api_parts import ANN, BOB, add_one, api_of, assert_refused
from library_parts import NOW, Parts, library_parts
from project_members import let_in
from project_world import ProjectWorld, project_world

from memory.errors import Unavailable
from memory.model import RecallStatus, Receipt, Turn
from memory.model.projects import ProjectRole

RED = {"project_id": "red"}
LINES = {"content-type": "application/x-ndjson"}
SECRETS = {"owner_only": "the kestrel badge", "members": "the kestrel launch", "public": "the kestrel hotline"}


# Erasure


async def test_all_of_the_project_goes_and_all_else_stays(
    api: httpx.AsyncClient, parts: Parts, live: Callable[[str], Awaitable[Turn]]
) -> None:
    projects = ("red", "blue", "")
    for project in projects:
        await live(project)
    for project in projects:
        said = {"role": "user", "content": f"I also work on {project or 'nowhere'}"}  # nobody learns it
        turn = {"session_id": f"s-{project}", "at": 2_000, "messages": [said], "project_id": project}
        assert (await api.post("/v1/memory/turns", json=turn)).is_success
        receipt = Receipt(f"r-{project}", "ann", NOW, RecallStatus.EMPTY, "nothing_relevant", project_id=project)
        parts.receipts.keep(receipt)
    parts.now += 1
    answer = (await api.delete("/v1/memory/everything", params=RED)).json()
    assert answer["deleted"] == {"memories": 2, "turns_withdrawn": 1}
    exported = (await api.get("/v1/memory/export", params=RED)).text
    assert [json.loads(line)["kind"] for line in exported.splitlines()] == ["memproxy-export"]
    listed = (await api.get("/v1/memory/receipts")).json()["receipts"]
    assert sorted(one["id"] for one in listed) == ["r-", "r-blue"]
    whole = (await api.get("/v1/memory/export")).text
    assert len(whole.splitlines()) == 1 + 2 * 8
    assert not [words for words in ('"red"', "of red", "on red", "it red", "red!") if words in whole]


async def test_its_state_says_whether_files_are_rewritten(api: httpx.AsyncClient, parts: Parts) -> None:
    """To its user alone, who names the project."""
    answer = await api.delete("/v1/memory/everything", params=RED)
    assert (answer.status_code, answer.json()["state"]) == (202, "deleted")
    await parts.erasures.rewritten(await parts.erasures.pending(), at=NOW + 5)
    path = f"/v1/memory/erasures/{answer.json()['erasure_id']}"
    shown = (await api.get(path, params=RED)).json()
    assert (shown["state"], shown["rewritten_at"]) == ("rewritten", "2025-06-15T15:06:45Z")
    assert_refused(await api.get(path), 404)
    assert_refused(await api.get(path, params={"project_id": "blue"}), 404)
    assert_refused(await api.get(path, params=RED, headers=BOB), 404)
    of_user = (await api.delete("/v1/memory/everything")).json()["erasure_id"]
    assert_refused(await api.get(f"/v1/memory/erasures/{of_user}", params=RED), 404)
    for project in ("", " red", "red\n", "x" * 300):
        for method, asked in ("DELETE", "/v1/memory/everything"), ("GET", path), ("GET", "/v1/memory/export"):
            assert_refused(await api.request(method, asked, params={"project_id": project}), 400)


async def test_deleting_a_project_has_its_files_rewritten(api: httpx.AsyncClient, parts: Parts) -> None:
    await add_one(api, "The office is green", project_id="red")
    answer = await api.delete("/v1/memory", params={"user_id": "ann", **RED})
    assert answer.json() == {"deleted": 1, "withdrawn_turns": 0}
    [waiting] = await parts.erasures.pending()
    assert waiting.deleted == {"memories": 1, "turns_withdrawn": 0}


async def test_deleting_a_shared_project_has_its_files_rewritten_also_if_it_is_broken_off(
    api: httpx.AsyncClient, parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken_off(*_: str) -> None:
        raise Unavailable("store", "away")

    path, membership = "/v1/memory/projects/red", parts.library.projects.membership
    assert (await api.post("/v1/memory/projects", json=RED)).is_success
    await let_in(membership, "ann", "red", "bob", ProjectRole.ADMIN)
    assert_refused(await api.delete(path, headers=BOB), 403)
    assert await parts.erasures.pending() == []
    with monkeypatch.context() as patch:
        patch.setattr(membership, "delete", broken_off)
        assert_refused(await api.delete(path), 503)
    assert (await api.delete(path)).json() == {"deleted": 1}
    deleted = [waiting.deleted["shared_projects"] for waiting in await parts.erasures.pending()]
    assert sorted(deleted) == [0, 1]
    assert_refused(await api.delete(path), 404)


async def contents(world: ProjectWorld, user: str) -> set[str]:
    answer = await world.call(user, "GET", "/projects/apollo/memories")
    return {one["content"] for one in answer.json()["memories"]}


@pytest.mark.parametrize("role", ["viewer", "editor", "admin", "owner", "no member"])
async def test_in_a_shared_project_everybody_erases_what_is_theirs_and_nobody_what_others_shared(
    world: ProjectWorld, role: str
) -> None:
    await world.call("olga", "POST", "/projects", {"project_id": "apollo"})
    for user in ("sue", "mo"):
        await world.let_in("olga", "apollo", user, "editor")
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


# Export


async def test_it_has_all_of_exactly_that_project_and_is_imported_elsewhere(
    api: httpx.AsyncClient, live: Callable[[str], Awaitable[Turn]], tmp_path: Path
) -> None:
    for project in ("red", "", "blue"):
        await live(project)
    exported = await api.get("/v1/memory/export", params=RED)
    lines = [json.loads(line) for line in exported.text.splitlines()]
    kinds = ["memproxy-export", "profile", "memory", "memory", "turn", "message", "raw_words"]
    assert [one["kind"] for one in lines] == kinds
    assert all("red" in json.dumps(one) for one in lines[1:])
    assert not [word for word in ("blue", "nowhere") if word in exported.text]
    plain = await api.get("/v1/memory/export", params={**RED, "record": "false"})
    assert plain.text.splitlines() == exported.text.splitlines()[:4]
    whole = (await api.get("/v1/memory/export")).text.splitlines()
    assert set(exported.text.splitlines()) < set(whole)
    assert len(whole) == 1 + 3 * (len(kinds) - 1)
    (tmp_path / "elsewhere").mkdir()
    async with library_parts(tmp_path / "elsewhere") as other, api_of(other, headers=ANN) as elsewhere:
        counts = (await elsewhere.post("/v1/memory/import", content=exported.content, headers=LINES)).json()
        assert (counts["stored"], counts["turns"], counts["messages"], counts["raw_words"]) == (2, 1, 1, 1)
        again = await elsewhere.get("/v1/memory/export", params=RED)
        assert [json.loads(line)["kind"] for line in again.text.splitlines()] == kinds


async def in_export(world: ProjectWorld, user: str) -> set[tuple[str, str]]:
    """Authors and contents. Of what others share there are not the words by which they came to it."""
    answer = await world.call(user, "GET", "/export?project_id=apollo")
    assert answer.status_code == 200, answer.text
    lines = [json.loads(line) for line in answer.text.splitlines()[1:]]
    memories = [one["memory"] for one in lines]
    assert {one["kind"] for one in lines} <= {"memory", "shared_memory"}
    theirs = [one["memory"] for one in lines if one["memory"]["user_id"] != user]
    assert {one["kind"] for one in lines if one["memory"] in theirs} <= {"shared_memory"}
    assert [one for one in theirs if one.get("evidence") or one.get("session_id")] == []
    assert all(one["project_id"] == "apollo" for one in memories)
    return {(one["user_id"], one["content"]) for one in memories}


async def test_members_get_what_they_may_see_and_others_what_they_shared_themselves(world: ProjectWorld) -> None:
    await world.call("olga", "POST", "/projects", {"project_id": "apollo"})
    for user, role in (("vic", "viewer"), ("ed", "editor"), ("ada", "admin"), ("gone", "editor")):
        await world.let_in("olga", "apollo", user, role)
    authors = ("ed", "gone")
    for author, (visibility, content) in product(authors, SECRETS.items()):
        one = {"content": f"{content}, says {author}", "project_id": "apollo", "session_id": "s1"}
        [memory_id] = (await world.call(author, "POST", "", {"memories": [one]})).json()["ids"]
        if visibility != "owner_only":
            assert (await world.call(author, "PATCH", f"/{memory_id}", {"visibility": visibility})).is_success
    await world.call("olga", "DELETE", "/projects/apollo/members/gone")
    all_of = {author: {(author, f"{content}, says {author}") for content in SECRETS.values()} for author in authors}
    private = {(author, f"{SECRETS['owner_only']}, says {author}") for author in authors}
    for member in ("vic", "ada", "olga"):
        assert await in_export(world, member) == (all_of["ed"] | all_of["gone"]) - private
    assert await in_export(world, "ed") == all_of["ed"] | (all_of["gone"] - private)
    assert await in_export(world, "gone") == all_of["gone"]  # no member any more, and still the author
    assert await in_export(world, "xena") == set()


# Tokens for some projects


async def test_a_token_for_some_projects_exports_and_erases_those_alone(tmp_path: Path) -> None:
    everywhere: dict[str, Any] = {"tenant": "acme", "projects": ["apollo", "zeus"]}
    alone: dict[str, Any] = {"tenant": "acme", "projects": ["apollo"]}
    beta: dict[str, Any] = {"tenant": "beta", "projects": ["apollo"]}
    async with project_world(tmp_path, has_tenants=True) as world:
        for project in ("apollo", "zeus"):
            one = {"content": f"the office of {project} is green", "project_id": project}
            assert (await world.call("olga", "POST", "", {"memories": [one]}, **everywhere)).is_success
        for path in ("/export", "/export?project_id=apollo"):  # the only one is meant
            answer = await world.call("olga", "GET", path, **alone)
            assert ("apollo is green" in answer.text, "zeus" in answer.text) == (True, False)
        assert_refused(await world.call("olga", "GET", "/export?project_id=zeus", **alone), 403, "other projects")
        assert_refused(await world.call("olga", "GET", "/export", **everywhere), 403)
        other = await world.call("olga", "GET", "/export?project_id=apollo", **beta)
        assert len(other.text.splitlines()) == 1
        assert_refused(await world.call("olga", "DELETE", "/everything?project_id=zeus", **alone), 403)
        assert_refused(await world.call("olga", "DELETE", "/everything", **alone), 403, "all of them")
        assert_refused(await world.call("olga", "GET", "/erasures/e1", **alone), 403, "all of them")
        assert_refused(await world.call("olga", "GET", "/erasures/e1?project_id=zeus", **alone), 403)
        other = await world.call("olga", "DELETE", "/everything?project_id=apollo", **beta)
        assert other.json()["deleted"]["memories"] == 0
        answer = await world.call("olga", "DELETE", "/everything?project_id=apollo", **alone)
        assert answer.json()["deleted"]["memories"] == 1
        left = await world.call("olga", "GET", "?project_id=zeus", **everywhere)
        assert [one["content"] for one in left.json()["memories"]] == ["the office of zeus is green"]
