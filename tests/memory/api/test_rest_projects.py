"""Shared projects over REST: every role, every action, every visibility, and nothing that anybody should not see."""

from __future__ import annotations

import asyncio
import json
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from project_world import ProjectWorld, project_world

from memory.ports import MemoryFilter

MEMBERS = {"vic": "viewer", "ed": "editor", "ada": "admin"}
OWNER, OUTSIDER = "olga", "xena"
EVERYBODY = (OUTSIDER, *MEMBERS, OWNER)
EDITORS = ("ed", "ada", OWNER)
SECRETS = {"owner_only": "the kestrel badge opens the vault", "members": "the kestrel launch is on Friday",
           "public": "the kestrel hotline is 4711"}  # fmt: skip


async def made(world: ProjectWorld, project: str = "apollo", **who: Any) -> None:
    assert (await world.call(OWNER, "POST", "/projects", {"project_id": project}, **who)).status_code == 201
    for user, role in MEMBERS.items():
        await world.let_in(OWNER, project, user, role, **who)


async def added(world: ProjectWorld, user: str, visibility: str, content: str, **who: Any) -> str:
    """The id of a memory that the user authored in apollo, whatever their role is now."""
    memory = {"content": content, "project_id": "apollo", "visibility": visibility}
    answer = await world.call(user, "POST", "", {"memories": [memory]}, **who)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["ids"][0])


async def authored_by_all(world: ProjectWorld) -> dict[tuple[str, str], str]:
    """One memory of each visibility by each user, also by those who were editors once. By author and visibility."""
    for user in (OUTSIDER, "vic"):
        await world.let_in(OWNER, "apollo", user, "editor")
    made = {
        (user, visibility): await added(world, user, visibility, f"{said}, says {user}")
        for user, (visibility, said) in product(EVERYBODY, SECRETS.items())
    }
    assert (await world.call(OWNER, "PUT", "/projects/apollo/members/vic", {"role": "viewer"})).is_success
    assert (await world.call(OWNER, "DELETE", f"/projects/apollo/members/{OUTSIDER}")).is_success
    return made


def readable(user: str, author: str, visibility: str) -> bool:
    if visibility == "owner_only":
        return user == author
    return visibility == "public" or user != OUTSIDER


def writable(user: str, author: str, visibility: str) -> bool:
    if visibility == "owner_only":
        return user == author
    return user in ("ada", OWNER) or (user == author == "ed")


async def seen(world: ProjectWorld, user: str) -> dict[str, set[str]]:
    """What each way of reading shows the user, as texts of memories."""
    asked = {"query": "kestrel", "project_id": "apollo", "limit": 100, "token_budget": 9999}
    search = await world.call(user, "POST", "/search", asked)
    listed = await world.call(user, "GET", "/projects/apollo/memories")
    private = await world.call(user, "GET", "?project_id=apollo")
    export = (await world.call(user, "GET", "/export")).text.splitlines()
    chat = (await world.chat(user, "apollo", "What about the kestrel?")).splitlines()
    return {
        "search": {memory["content"] for memory in search.json()["memories"]},
        "list": {memory["content"] for memory in listed.json().get("memories", ())},
        "own": {memory["content"] for memory in private.json()["memories"]},
        "export": {line["memory"]["content"] for line in map(json.loads, export) if "memory" in line},
        "chat": {line for line in chat if "kestrel" in line},
    }


async def test_everybody_reads_what_they_may_and_nothing_else_by_any_way(world: ProjectWorld) -> None:
    await made(world)
    memories = await authored_by_all(world)
    texts = {(author, seen_by): f"{SECRETS[seen_by]}, says {author}" for author, seen_by in memories}
    for user in EVERYBODY:
        found = await seen(world, user)
        joined = user != OUTSIDER  # who has not joined recalls nothing of others
        shared = {text for (_, v), text in texts.items() if joined and v != "owner_only"}
        own = {text for (author, v), text in texts.items() if v == "owner_only" and author == user}
        assert found["list"] == shared, user
        assert found["own"] == own, user
        assert found["search"] == shared | own, user
        assert found["export"] == {text for (author, _), text in texts.items() if author == user}, user
        for path in ("", "/projects", "/projects/apollo/memories", "/export", "/stats", "/receipts"):
            assert " project/" not in (await world.call(user, "GET", path)).text, "how it is stored"
        forbidden = set(texts.values()) - shared - own
        assert found["chat"], user
        assert not [line for line in found["chat"] if any(text in line for text in forbidden)], user
        for (author, visibility), memory_id in memories.items():
            for path in ("", "/history"):
                answer = await world.call(user, "GET", f"/{memory_id}{path}")
                assert answer.status_code == (200 if readable(user, author, visibility) else 404), (user, author, path)
                assert texts[author, visibility] in answer.text or not answer.is_success
                assert not answer.is_success or SECRETS[visibility] in answer.text


CHANGES: dict[str, tuple[str, Any]] = {
    "edit": ("PATCH", {"content": "overwritten"}),
    "show": ("PATCH", {"visibility": "public"}),
    "hide": ("PATCH", {"visibility": "members"}),
    "forget": ("DELETE", None),
}


@pytest.mark.parametrize("action", CHANGES)
async def test_everybody_changes_what_they_may_and_nothing_else(world: ProjectWorld, action: str) -> None:
    await made(world)
    method, body = CHANGES[action]
    for (author, visibility), memory_id in (await authored_by_all(world)).items():
        if visibility == "owner_only" and action in ("show", "hide"):
            continue  # that is sharing: below
        allowed = [user for user in EVERYBODY if writable(user, author, visibility)]
        for user in set(EVERYBODY) - set(allowed):
            answer = await world.call(user, method, f"/{memory_id}", body)
            status = 403 if readable(user, author, visibility) else 404
            assert answer.status_code == status, (user, author, visibility)
        kept = (await world.call(author if visibility == "owner_only" else OWNER, "GET", f"/{memory_id}")).json()
        assert (kept["content"], kept["visibility"]) == (f"{SECRETS[visibility]}, says {author}", visibility)
        for user in allowed[: 1 if action == "forget" else None]:
            answer = await world.call(user, method, f"/{memory_id}", body)
            assert answer.status_code == 200, (user, author, visibility, answer.text)
        for user in EVERYBODY if action == "forget" else ():
            assert (await world.call(user, "GET", f"/{memory_id}")).status_code == 404


@pytest.mark.parametrize(("visibility", "action"), list(product(("members", "public"), ("add", "share"))))
async def test_only_editors_and_above_add_and_share(world: ProjectWorld, visibility: str, action: str) -> None:
    await made(world)
    for user in (*EVERYBODY, "nobody in particular"):
        body: dict[str, Any] = {"memories": [{"content": f"{user} was here", "project_id": "apollo"}]}
        path, method = "", "POST"
        if action == "add":
            body["memories"][0]["visibility"] = visibility
        else:
            own = (await world.call(user, "POST", "", body)).json()["ids"][0]
            path, method, body = f"/{own}", "PATCH", {"visibility": visibility}
        answer = await world.call(user, method, path, body)
        expected = {"add": 201, "share": 200}[action] if user in EDITORS else {"vic": 403}.get(user, 404)
        assert answer.status_code == expected, (user, answer.text)
        if answer.is_success and action == "share":
            assert (await world.call(user, "GET", f"/{own}")).status_code == 404, "it moved"
            assert answer.json()["visibility"] == visibility
            assert (await world.call("vic", "GET", f"/{answer.json()['id']}")).json()["user_id"] == user
    listed = (await world.call(OWNER, "GET", "/projects/apollo/memories")).json()["memories"]
    assert {memory["content"] for memory in listed} == {f"{user} was here" for user in EDITORS}


async def test_members_are_managed_by_those_above_them_and_by_nobody_else(world: ProjectWorld) -> None:
    roles = {OUTSIDER: None, "new": None, **MEMBERS, OWNER: "owner"}
    below_admin = (None, "viewer", "editor")
    for actor, subject, after in product((OUTSIDER, *MEMBERS, OWNER), roles, (None, "viewer", "editor", "admin")):
        project = f"p {actor} {subject} {after}"
        await made(world, project)
        path = f"/projects/{project}/members/{subject}"
        answer = await world.call(actor, *(("PUT", path, {"role": after}) if after else ("DELETE", path)))
        before = roles[subject]
        if actor == OUTSIDER:
            expected = 404
        elif actor == subject and after is None:
            expected = 400 if actor == OWNER else 200
        elif (actor == OWNER and subject != OWNER) or (
            actor == "ada" and before in below_admin and after in below_admin
        ):
            expected = 404 if before is None and after is None else 200
        else:
            expected = 404 if actor == "ada" and before is None and after is None else 403
        assert answer.status_code == expected, (actor, subject, after, answer.text)
        found = (await world.call(OWNER, "GET", f"/projects/{project}/members")).json()
        now = [*found["members"], *found["invited"]]
        assert {one["user_id"] for one in found["members"]} <= {*MEMBERS, OWNER}, "nobody joins by another's call"
        wanted = (after if expected == 200 else before) if subject in MEMBERS or expected == 200 else before
        assert {one["user_id"]: one["role"] for one in now}.get(subject) == wanted, (actor, subject, after)
        assert [one["user_id"] for one in now if one["role"] == "owner"] == [OWNER]


async def test_a_project_is_shown_to_members_deleted_and_transferred_by_its_owner(world: ProjectWorld) -> None:
    await made(world)
    for user, role in {OUTSIDER: None, **MEMBERS, OWNER: "owner"}.items():
        for path in ("", "/members"):
            answer = await world.call(user, "GET", f"/projects/apollo{path}")
            assert answer.status_code == (200 if role else 404)
        listed = (await world.call(user, "GET", "/projects")).json()["projects"]
        assert [(one["project_id"], one["role"]) for one in listed] == ([("apollo", role)] if role else [])
        if role != "owner":
            for method, path, body in (("DELETE", "", None), ("POST", "/owner", {"user_id": user})):
                answer = await world.call(user, method, f"/projects/apollo{path}", body)
                assert answer.status_code == (403 if role else 404)
    assert (await world.call("ada", "POST", "/projects", {"project_id": "apollo"})).status_code == 409
    assert (await world.call(OWNER, "POST", "/projects/apollo/owner", {"user_id": OUTSIDER})).status_code == 404
    assert (await world.call(OWNER, "POST", "/projects/apollo/owner", {"user_id": "vic"})).json()["role"] == "admin"
    assert (await world.call(OWNER, "DELETE", "/projects/apollo")).status_code == 403
    memory_id = await added(world, "ed", "public", "the kestrel flies")
    access = await world.projects.access(OWNER, "apollo")
    assert access is not None
    assert (await world.call("vic", "DELETE", "/projects/apollo")).status_code == 200
    assert (await world.call("ed", "GET", f"/{memory_id}")).status_code == 404
    assert await world.store.count(MemoryFilter(access.project.owner_id, status=None, with_raw=True)) == 0
    assert (await world.call(OUTSIDER, "POST", "/projects", {"project_id": "apollo"})).status_code == 201
    assert (await world.call(OUTSIDER, "GET", "/projects/apollo/memories")).json()["memories"] == []


async def test_a_project_of_nobody_stays_private_to_each_user(world: ProjectWorld) -> None:
    for user in ("ann", "bob"):
        await world.call(user, "POST", "", {"memories": [{"content": f"the kestrel of {user}", "project_id": "solo"}]})
    for user in ("ann", "bob"):
        found = await world.call(user, "POST", "/search", {"query": "kestrel", "project_id": "solo"})
        assert [one["content"] for one in found.json()["memories"]] == [f"the kestrel of {user}"]
        assert (await world.call(user, "GET", "/projects/solo/memories")).status_code == 404
        body = {"memories": [{"content": "x", "project_id": "solo", "visibility": "members"}]}
        assert (await world.call(user, "POST", "", body)).status_code == 404


async def test_a_memory_is_shared_and_taken_back_and_others_never_see_its_words(world: ProjectWorld) -> None:
    await made(world)
    said = {"memories": [{"content": "we ship on Fridays", "session_id": "s"}]}
    (own,) = (await world.call("ed", "POST", "", said)).json()["ids"]
    of_no_project = {"visibility": "members"}
    sharing = of_no_project | {"project_id": "apollo"}
    for refused in of_no_project, sharing | {"content": "x"}:
        assert (await world.call("ed", "PATCH", f"/{own}", refused)).status_code == 400
    shared = await world.call("ed", "PATCH", f"/{own}", sharing)
    shared_id = shared.json()["id"]
    assert shared.json()["session_id"] is None
    tag = (await world.call("vic", "GET", f"/{shared_id}")).headers["etag"]
    assert (await world.call("ada", "PATCH", f"/{shared_id}", {"visibility": "owner_only"})).status_code == 403
    assert (await world.call("ed", "PATCH", f"/{shared_id}", {"visibility": "public"})).json()["id"] == shared_id
    assert (await world.call("vic", "GET", f"/{shared_id}")).headers["etag"] != tag
    assert (await world.call(OUTSIDER, "GET", f"/{shared_id}")).status_code == 200
    back = (await world.call("ed", "PATCH", f"/{shared_id}", {"visibility": "owner_only"})).json()
    assert (back["visibility"], back["content"], back["project_id"]) == ("owner_only", "we ship on Fridays", "apollo")
    for user in EVERYBODY:
        assert (await world.call(user, "GET", f"/{shared_id}")).status_code == 404
        assert (await world.call(user, "GET", f"/{back['id']}")).status_code == (200 if user == "ed" else 404)


async def test_what_a_shared_memory_said_before_is_for_its_author(world: ProjectWorld) -> None:
    await made(world)
    (one,) = (await world.call("ed", "POST", "", {"memories": [{"content": "we ship on Fridays"}]})).json()["ids"]
    await world.call("ed", "PATCH", f"/{one}", {"content": "we ship on Mondays"})
    shared = await world.call("ed", "PATCH", f"/{one}", {"visibility": "members", "project_id": "apollo"})
    one = shared.json()["id"]
    assert (await world.call("ada", "PATCH", f"/{one}", {"content": "we ship on Tuesdays"})).status_code == 200
    past = (await world.call("ed", "GET", f"/{one}/history")).json()["earlier"]
    wordings = [("we ship on Mondays", "member"), ("we ship on Fridays", "user")]
    assert [(one["content"], one["corrected_by"]) for one in past] == wordings
    for user in ("ada", "vic"):
        theirs = await world.call(user, "GET", f"/{one}/history")
        assert theirs.json()["earlier"] == []
        assert "Fridays" not in theirs.text + (await world.call(user, "GET", f"/{one}")).text
    back = (await world.call("ed", "PATCH", f"/{one}", {"visibility": "owner_only"})).json()["id"]
    assert len((await world.call("ed", "GET", f"/{back}/history")).json()["earlier"]) == 2


async def test_tenants_and_bounds_of_tokens_are_never_crossed(tmp_path: Path) -> None:
    acme: dict[str, Any] = {"tenant": "acme", "projects": ["apollo"]}
    beta: dict[str, Any] = {"tenant": "beta", "projects": ["apollo"]}
    async with project_world(tmp_path, has_tenants=True) as world:
        await made(world, **acme)
        public = await added(world, "ed", "public", SECRETS["public"], **acme)
        members = await added(world, "ed", "members", SECRETS["members"], **acme)
        shown = (await world.call("vic", "GET", "/projects/apollo/members", **acme)).json()["members"]
        assert {one["user_id"] for one in shown} == {OWNER, *MEMBERS}
        assert (await world.call(OUTSIDER, "GET", f"/{public}", **acme)).status_code == 200
        for who, expected in ((beta, 404), (acme | {"projects": ["zeus"]}, 403)):
            for user in EVERYBODY:
                for memory_id in (public, members):
                    for method, body in (("GET", None), ("PATCH", {"importance": 0.1}), ("DELETE", None)):
                        assert (await world.call(user, method, f"/{memory_id}", body, **who)).status_code == 404
                for path in ("", "/members", "/memories"):
                    assert (await world.call(user, "GET", f"/projects/apollo{path}", **who)).status_code == expected
                assert (await world.call(user, "DELETE", "/projects/apollo", **who)).status_code == expected
                assert (await world.call(user, "GET", "/projects", **who)).json()["projects"] == []
                found = await world.call(user, "POST", "/search", {"query": "kestrel", "token_budget": 999}, **who)
                assert found.json()["memories"] == []
                assert await world.chat(f"beta/{user}", "apollo", "What about the kestrel?") == ""
        assert (await world.call(OWNER, "POST", "/projects", {"project_id": "apollo"}, **beta)).status_code == 201
        assert (await world.call("vic", "GET", f"/{members}", **acme)).status_code == 200


async def test_erasing_a_user_takes_what_they_shared_and_hands_their_projects_over(world: ProjectWorld) -> None:
    await made(world)
    memories = await authored_by_all(world)
    await world.call(OWNER, "POST", "/projects", {"project_id": "lonely"})
    deleted = await world.call(OWNER, "DELETE", f"?user_id={OWNER}")
    assert deleted.json()["deleted"] == 3
    left = (await world.call("ada", "GET", "/projects/apollo/members")).json()["members"]
    assert {one["user_id"]: one["role"] for one in left} == {"vic": "viewer", "ed": "editor", "ada": "owner"}
    assert (await world.call(OWNER, "GET", "/projects")).json()["projects"] == []
    assert (await world.call(OUTSIDER, "POST", "/projects", {"project_id": "lonely"})).status_code == 201
    assert (await world.call("ada", "GET", f"/{memories[OWNER, 'public']}")).status_code == 404
    await world.call(OUTSIDER, "DELETE", f"?user_id={OUTSIDER}")  # who left before
    for (author, visibility), memory_id in memories.items():
        answer = await world.call("ada", "GET", f"/{memory_id}")
        is_there = author not in (OWNER, OUTSIDER) and readable("ada", author, visibility)
        assert answer.status_code == (200 if is_there else 404)
    stored = world.store._records.values()
    assert not [one for one in stored if one.memory.content.endswith((OWNER, OUTSIDER))]
    await world.call("ed", "DELETE", "?user_id=ed&project_id=apollo")
    assert not [one for one in stored if one.memory.content.endswith("says ed")]
    assert "apollo" in (await world.call("ed", "GET", "/projects")).text, "they stay a member"


async def test_of_a_demotion_and_a_write_at_the_same_time_one_comes_first(world: ProjectWorld) -> None:
    await made(world)
    body = {"memories": [{"content": "late news", "project_id": "apollo", "visibility": "members"}]}
    demoted = world.call(OWNER, "DELETE", "/projects/apollo/members/ed")
    answers = await asyncio.gather(demoted, *(world.call("ed", "POST", "", body) for _ in range(5)))
    assert answers[0].status_code == 200
    assert {answer.status_code for answer in answers[1:]} <= {201, 404}
    assert (await world.call("ed", "POST", "", body)).status_code == 404
