"""Shared projects that somebody else makes take no id, reach no prompt, make nobody a member and fill no limits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from project_world import ProjectWorld, expiring_roles, project_world

from memory.model.projects import Invitation, ProjectRole, SharedProject
from memory.service import project_members as limits

PLANTED, OWN = "The kestrel gate is painted crimson", "The kestrel gate is painted turquoise"
QUESTION = "What colour is the kestrel gate painted?"
GARDEN = {"project_id": "garden"}


@pytest_asyncio.fixture
async def world(tmp_path: Path) -> AsyncIterator[ProjectWorld]:
    """Grace has used the project garden by herself; then Mallory shares one of that id, and something in it."""
    async with project_world(tmp_path) as built:
        await said(built, "grace", OWN)
        assert (await built.call("mallory", "POST", "/projects", GARDEN)).status_code == 201
        await said(built, "mallory", PLANTED, visibility="public")
        yield built


async def said(world: ProjectWorld, user: str, content: str, **more: str) -> str:
    answer = await world.call(user, "POST", "", {"memories": [{"content": content, **GARDEN, **more}]})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["ids"][0])


async def invite(world: ProjectWorld, by: str, user: str, project: str = "garden") -> Any:
    answer = await world.call(by, "PUT", f"/projects/{project}/members/{user}", {"role": "viewer"})
    return answer.json()


async def invitations(world: ProjectWorld, user: str) -> list[dict[str, str]]:
    found: list[dict[str, str]] = (await world.call(user, "GET", "/invitations")).json()["invitations"]
    return found


async def told(world: ProjectWorld, user: str) -> str:
    """What reaches the user by any way that names the project."""
    search = await world.call(user, "POST", "/search", {"query": QUESTION, **GARDEN})
    read = [await world.call(user, "GET", path) for path in ("/projects/garden/memories", "/export?project_id=garden")]
    chats = [await world.chat(user, "garden", *asked) for asked in ((QUESTION,), (QUESTION, "And the key?"))]
    return "\n".join((search.text, *(answer.text for answer in read), *chats))


async def test_nobody_takes_an_id_that_somebody_uses(world: ProjectWorld) -> None:
    assert (await world.call("grace", "GET", "/projects/garden")).status_code == 404
    assert (await world.call("grace", "POST", "/projects", GARDEN)).status_code == 201
    await said(world, "grace", "The kestrel feeds at noon", visibility="members")
    for user, mine, others in (("grace", "noon", PLANTED), ("mallory", PLANTED, "noon")):
        found = await told(world, user)
        assert (mine in found, others in found) == (True, False), user
    assert (await world.call("mallory", "DELETE", "/projects/garden")).status_code == 200
    assert "noon" in await told(world, "grace")


async def test_within_a_tenant_an_id_is_of_one_project(tmp_path: Path) -> None:
    async with project_world(tmp_path, has_tenants=True) as world:
        for user, tenant, status in (("ann", "acme", 201), ("bob", "acme", 409), ("bob", "beta", 201)):
            answer = await world.call(user, "POST", "/projects", GARDEN, tenant=tenant, projects=["garden"])
            assert answer.status_code == status, answer.text
            assert status != 409 or "ask to be invited" in answer.json()["error"]["message"]


async def test_nothing_of_a_project_that_a_user_has_not_joined_is_in_their_prompts(world: ProjectWorld) -> None:
    await invite(world, "mallory", "grace")
    for user in ("grace", "heidi"):
        assert PLANTED not in await told(world, user)
    assert OWN in await world.chat("grace", "garden", QUESTION)


async def test_nor_after_they_left_it_although_public(world: ProjectWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    roles_expire = expiring_roles(monkeypatch)
    await world.let_in("mallory", "garden", "grace", "viewer")
    assert PLANTED in await world.chat("grace", "garden", QUESTION)
    [memory] = await world.projects.authored("mallory")
    assert (await world.call("grace", "DELETE", "/projects/garden/members/grace")).status_code == 200
    assert (await world.call("grace", "GET", f"/{memory.memory_id}")).status_code == 200, "by its id alone"
    roles_expire()
    assert PLANTED not in await told(world, "grace")


async def test_nobody_is_a_member_without_having_agreed(world: ProjectWorld) -> None:
    answer = await invite(world, "mallory", "grace")
    assert (answer["role"], answer["joined_at"]) == ("viewer", None)
    [invitation] = await invitations(world, "grace")
    assert (invitation["project_id"], invitation["role"], invitation["invited_by"]) == ("garden", "viewer", "mallory")
    assert (await world.call("grace", "GET", "/projects")).json()["projects"] == []
    for other in ("mallory", "heidi"):
        for method, path in (("POST", "/accept"), ("DELETE", "")):
            refused = await world.call(other, method, f"/invitations/{invitation['id']}{path}")
            assert refused.status_code == 404, "not theirs to answer"
    handed = await world.call("mallory", "POST", "/projects/garden/owner", {"user_id": "grace"})
    assert handed.status_code == 404, "nor made a member by being made its owner"
    assert (await world.call("grace", "DELETE", f"/invitations/{invitation['id']}")).status_code == 200
    accepted = await world.call("grace", "POST", f"/invitations/{invitation['id']}/accept")
    assert accepted.status_code == 404, "she declined"
    await invite(world, "mallory", "grace")
    await world.call("mallory", "DELETE", "/projects/garden/members/grace")
    accepted = await world.call("grace", "POST", f"/invitations/{invitation['id']}/accept")
    assert accepted.status_code == 404, "it was withdrawn"
    await world.let_in("mallory", "garden", "grace", "viewer")
    assert PLANTED in await world.chat("grace", "garden", QUESTION)


async def test_whoever_has_a_project_of_that_id_joins_no_other(world: ProjectWorld) -> None:
    await world.call("grace", "POST", "/projects", GARDEN)
    await invite(world, "mallory", "grace")
    [invitation] = await invitations(world, "grace")
    refused = await world.call("grace", "POST", f"/invitations/{invitation['id']}/accept")
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "project_exists")
    assert PLANTED not in await told(world, "grace")
    assert (await world.call("grace", "DELETE", "/projects/garden")).status_code == 200
    assert (await world.call("grace", "POST", f"/invitations/{invitation['id']}/accept")).status_code == 200
    assert PLANTED in await told(world, "grace")


async def test_a_token_answers_invitations_to_its_own_projects_alone(tmp_path: Path) -> None:
    async with project_world(tmp_path, has_tenants=True) as world:
        garden, other = ({"tenant": "acme", "projects": [project]} for project in ("garden", "zeus"))
        await world.call("ann", "POST", "/projects", GARDEN, **garden)
        await world.call("ann", "PUT", "/projects/garden/members/bob", {"role": "admin"}, **garden)
        [invitation] = (await world.call("bob", "GET", "/invitations", **garden)).json()["invitations"]
        assert invitation["invited_by"] == "ann"
        assert (await world.call("bob", "GET", "/invitations", **other)).json() == {"invitations": []}
        for method, path in (("POST", "/accept"), ("DELETE", "")):
            for who in (other, {"tenant": "beta", "projects": ["garden"]}):
                answer = await world.call("bob", method, f"/invitations/{invitation['id']}{path}", **who)
                assert answer.status_code == 404
        accepted = await world.call("bob", "POST", f"/invitations/{invitation['id']}/accept", **garden)
        assert accepted.json()["role"] == "admin"


@pytest.mark.slow("a user with 1,000 projects")
async def test_what_others_did_to_a_user_does_not_fill_their_limit(world: ProjectWorld) -> None:
    """As whoever called the API of an earlier release could make her a member."""
    for number in range(limits.PROJECTS_JOINED_MAX):
        project = SharedProject(f"{number:032x}", "", f"p{number}", 0.0)
        await world.projects.create(project, "mallory")
        await world.projects.set_roles(project.key, {"grace": ProjectRole.VIEWER}, at=0.0)
    assert (await world.call("grace", "POST", "/projects", GARDEN)).status_code == 201
    refused = (await world.call("mallory", "POST", "/projects", {"project_id": "one more"})).json()
    assert f"a user may belong to {limits.PROJECTS_JOINED_MAX} projects" in refused["error"]["message"]
    await world.call("grace", "POST", "/projects", {"project_id": "choir"})
    await invite(world, "grace", "mallory", "choir")
    [invitation] = await invitations(world, "mallory")
    refused = (await world.call("mallory", "POST", f"/invitations/{invitation['id']}/accept")).json()
    assert f"a user may belong to {limits.PROJECTS_JOINED_MAX} projects" in refused["error"]["message"]


async def test_any_number_of_invitations_is_bounded_and_hides_no_later_one(world: ProjectWorld) -> None:
    for number in range(limits.INVITATIONS_BY_ONE_MAX + 1):
        await world.call("mallory", "POST", "/projects", {"project_id": f"p{number}"})
        answer = await invite(world, "mallory", "grace", f"p{number}")
    assert f"has not answered {limits.INVITATIONS_BY_ONE_MAX} invitations of yours" in answer["error"]["message"]
    project = SharedProject("f" * 32, "", "crowd", 0.0)
    await world.projects.create(project, "olga")
    crowd = [Invitation(project, f"user {n}", ProjectRole.VIEWER, "olga", 0.0) for n in range(limits.MEMBERS_MAX - 1)]
    await asyncio.gather(*map(world.projects.invite, crowd))
    answer = await invite(world, "olga", "one-more", "crowd")
    assert f"a project may have {limits.MEMBERS_MAX} members" in answer["error"]["message"]
    for number in range(limits.INVITATIONS_SHOWN_MAX):
        one = SharedProject(f"{number:032x}", "", "spam", float(number))
        await world.projects.create(one, f"sender {number}")
        spam = Invitation(one, "grace", ProjectRole.VIEWER, f"sender {number}", one.created_at)
        await world.projects.invite(spam)
    await world.call("heidi", "POST", "/projects", {"project_id": "choir"})
    await invite(world, "heidi", "grace", "choir")
    shown = await invitations(world, "grace")
    assert (len(shown), shown[0]["project_id"]) == (limits.INVITATIONS_SHOWN_MAX, "choir")


async def test_who_is_erased_is_named_by_no_invitation(world: ProjectWorld) -> None:
    await world.let_in("mallory", "garden", "ed", "admin")
    await invite(world, "ed", "grace")
    await invite(world, "mallory", "heidi")
    for user in ("ed", "heidi"):
        await world.library.erase(user)
    assert (await world.call("mallory", "GET", "/projects/garden/members")).json()["invited"] == []
    assert await invitations(world, "grace") == []
