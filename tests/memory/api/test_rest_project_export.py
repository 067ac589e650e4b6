"""The export of one project: what the caller has in exactly that one, and what its members share with each other."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from api_parts import ANN, api_of, assert_refused
from library_parts import Parts, library_parts
from project_world import ProjectWorld, project_world

from memory.model import Change, ChangeKind
from memory.model.raw_words import rows_of

LINES = {"content-type": "application/x-ndjson"}
SECRETS = {"owner_only": "the kestrel badge", "members": "the kestrel launch", "public": "the kestrel hotline"}


async def live(api: httpx.AsyncClient, parts: Parts, project: str) -> None:
    """A memory, a learnt turn with a tool's message and raw words, and a profile, each with the project's name."""
    here = {"project_id": project} if project else {}
    name = project or "nowhere"
    memory = {"content": f"The office of {name} is green", **here}
    assert (await api.post("/v1/memory", json={"memories": [memory]})).is_success
    said = [{"role": "user", "content": f"I work on {name}"}, {"role": "assistant", "content": "Fine"}]
    turn = {"session_id": f"s-{name}", "at": 1_000, "messages": said, **here}
    assert (await api.post("/v1/memory/turns", json=turn)).is_success
    lease = await parts.lease()
    assert lease is not None
    await parts.learn(lease)
    [row] = rows_of(lease.turns[0], [said[0]["content"]])
    vectors = await parts.embedder.embed([row.content], is_urgent=False)
    await parts.store.apply("ann", [Change(ChangeKind.CREATE, row)], vectors)
    added = {"source_type": "tool", "source": "radio", "target_type": "agent", "target": "a", "content": f"{name}!"}
    path = f"/v1/memory/conversations/s-{name}/messages"
    assert (await api.post(path, json={"messages": [added], **here})).is_success
    profile = await api.put("/v1/profile", params=here, json={"pinned": [f"Call it {name}"]})
    assert profile.is_success, profile.text


async def test_it_has_all_of_exactly_that_project_and_is_imported_elsewhere(
    api: httpx.AsyncClient, parts: Parts, tmp_path: Path
) -> None:
    for project in ("red", "", "blue"):
        await live(api, parts, project)
    exported = await api.get("/v1/memory/export", params={"project_id": "red"})
    lines = [json.loads(line) for line in exported.text.splitlines()]
    kinds = ["memproxy-export", "profile", "memory", "memory", "turn", "message", "raw_words"]
    assert [one["kind"] for one in lines] == kinds
    assert all("red" in json.dumps(one) for one in lines[1:])
    assert not [word for word in ("blue", "nowhere") if word in exported.text]
    plain = await api.get("/v1/memory/export", params={"project_id": "red", "record": "false"})
    assert plain.text.splitlines() == exported.text.splitlines()[:4]
    whole = (await api.get("/v1/memory/export")).text.splitlines()
    assert set(exported.text.splitlines()) < set(whole)
    assert len(whole) == 1 + 3 * (len(kinds) - 1)
    (tmp_path / "elsewhere").mkdir()
    async with library_parts(tmp_path / "elsewhere") as other, api_of(other, headers=ANN) as elsewhere:
        counts = (await elsewhere.post("/v1/memory/import", content=exported.content, headers=LINES)).json()
        assert (counts["stored"], counts["turns"], counts["messages"], counts["raw_words"]) == (2, 1, 1, 1)
        again = await elsewhere.get("/v1/memory/export", params={"project_id": "red"})
        assert [json.loads(line)["kind"] for line in again.text.splitlines()] == kinds


async def test_a_project_that_nobody_knows_is_empty_and_an_invalid_one_is_refused(api: httpx.AsyncClient) -> None:
    answer = await api.get("/v1/memory/export", params={"project_id": "nowhere"})
    assert [json.loads(line)["kind"] for line in answer.text.splitlines()] == ["memproxy-export"]
    for project in ("", " red", "red\n", "x" * 300):
        assert_refused(await api.get("/v1/memory/export", params={"project_id": project}), 400)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[ProjectWorld]:
    async with project_world(tmp_path) as built:
        yield built


async def in_export(world: ProjectWorld, user: str) -> set[tuple[str, str]]:
    """Authors and contents."""
    answer = await world.call(user, "GET", "/export?project_id=apollo")
    assert answer.status_code == 200, answer.text
    lines = [json.loads(line) for line in answer.text.splitlines()[1:]]
    assert {(one["memory"]["user_id"] == user, one["kind"]) for one in lines} <= {
        (True, "memory"),
        (True, "shared_memory"),
        (False, "shared_memory"),
    }
    assert all(one["memory"]["project_id"] == "apollo" for one in lines)
    return {(one["memory"]["user_id"], one["memory"]["content"]) for one in lines}


async def test_members_get_what_they_may_see_and_others_what_they_shared_themselves(world: ProjectWorld) -> None:
    await world.call("olga", "POST", "/projects", {"project_id": "apollo"})
    for user, role in (("vic", "viewer"), ("ed", "editor"), ("ada", "admin"), ("gone", "editor")):
        await world.call("olga", "PUT", f"/projects/apollo/members/{user}", {"role": role})
    for author in ("ed", "gone"):
        for visibility, content in SECRETS.items():
            one = {"content": f"{content}, says {author}", "project_id": "apollo", "visibility": visibility}
            assert (await world.call(author, "POST", "", {"memories": [one]})).is_success
    await world.call("olga", "DELETE", "/projects/apollo/members/gone")
    all_of = {
        author: {(author, f"{content}, says {author}") for content in SECRETS.values()} for author in ("ed", "gone")
    }
    private = {(author, f"{SECRETS['owner_only']}, says {author}") for author in ("ed", "gone")}
    for member in ("vic", "ada", "olga"):
        assert await in_export(world, member) == (all_of["ed"] | all_of["gone"]) - private
    assert await in_export(world, "ed") == all_of["ed"] | (all_of["gone"] - private)
    assert await in_export(world, "gone") == all_of["gone"]  # no member any more, and still the author
    assert await in_export(world, "xena") == set()


async def test_nobody_gets_the_words_by_which_others_came_to_what_they_share(world: ProjectWorld) -> None:
    await world.call("olga", "POST", "/projects", {"project_id": "apollo"})
    await world.call("olga", "PUT", "/projects/apollo/members/vic", {"role": "viewer"})
    one = {"content": "the kestrel launch is on Friday", "project_id": "apollo", "session_id": "s1"}
    [memory_id] = (await world.call("olga", "POST", "", {"memories": [one]})).json()["ids"]
    await world.call("olga", "PATCH", f"/{memory_id}", {"visibility": "members"})
    exported = (await world.call("vic", "GET", "/export?project_id=apollo")).text
    [shared] = [json.loads(line)["memory"] for line in exported.splitlines()[1:]]
    assert (shared["user_id"], shared.get("evidence", []), shared.get("session_id", "")) == ("olga", [], "")


async def test_a_token_for_some_projects_exports_those_alone(tmp_path: Path) -> None:
    async with project_world(tmp_path, has_tenants=True) as world:
        for project in ("apollo", "zeus"):
            one = {"content": f"the office of {project} is green", "project_id": project}
            everywhere: dict[str, Any] = {"tenant": "acme", "projects": ["apollo", "zeus"]}
            assert (await world.call("olga", "POST", "", {"memories": [one]}, **everywhere)).is_success
        alone: dict[str, Any] = {"tenant": "acme", "projects": ["apollo"]}
        for path in ("/export", "/export?project_id=apollo"):  # the only one is meant
            answer = await world.call("olga", "GET", path, **alone)
            assert "apollo is green" in answer.text
            assert "zeus" not in answer.text
        assert_refused(await world.call("olga", "GET", "/export?project_id=zeus", **alone), 403, "other projects")
        assert_refused(await world.call("olga", "GET", "/export", **everywhere), 403)
        other = await world.call("olga", "GET", "/export?project_id=apollo", tenant="beta", projects=["apollo"])
        assert len(other.text.splitlines()) == 1
