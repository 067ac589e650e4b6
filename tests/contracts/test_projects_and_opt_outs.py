"""What users decide: projects that they share, and to opt out. Seen by every process at once. On every adapter."""

from __future__ import annotations

import asyncio

import pytest
from turn_logs import START, Deployment, Process

from memory.model.memories import MemoryVisibility
from memory.model.projects import Invitation, ProjectMember, ProjectRole, SharedMemory, SharedProject
from memory.ports.projects import Projects

AT = 1_750_000_000.0
APOLLO = SharedProject("k1", "", "apollo", AT)
ANN = "ann.lee@example.com"


@pytest.fixture
def projects(process: Process) -> Projects:
    return process.projects


async def seen(projects: Projects, user: str) -> tuple[SharedProject, ProjectRole | None] | None:
    """The project apollo for this user, and their role."""
    found = await projects.access(user, "apollo")
    return None if found is None else (found.project, found.role)


def entry(number: int, *, key: str = "k1", author: str = "ann", at: float = AT) -> SharedMemory:
    return SharedMemory(f"{key}.{number}", key, author, MemoryVisibility.MEMBERS, at)


async def test_the_first_to_create_a_project_is_its_owner_and_the_only_member(projects: Projects) -> None:
    acmes = SharedProject("k1", "acme", "apollo", AT)
    assert await projects.create(acmes, "acme/ann")
    assert not await projects.create(SharedProject("k2", "acme", "apollo", AT + 1), "acme/bob")
    assert await seen(projects, "acme/ann") == (acmes, ProjectRole.OWNER)
    assert await seen(projects, "acme/bob") is None
    bobs = await projects.access_by_key("k1", "acme/bob")
    assert bobs is not None
    assert (bobs.project, bobs.role) == (acmes, None)
    assert await projects.members("k1") == [ProjectMember("acme/ann", ProjectRole.OWNER, AT)]
    assert await projects.access_by_key("k2", "acme/bob") is None
    tried = [SharedProject(f"b{n}", "beta", "apollo", AT) for n in range(9)]
    assert sum(await asyncio.gather(*(projects.create(one, f"user-{one.key}") for one in tried))) == 1  # at once
    assert sum([await projects.access_by_key(one.key, "x") is not None for one in tried]) == 1


async def test_without_tenants_nobody_takes_an_id_and_tenants_have_projects_of_their_own(projects: Projects) -> None:
    tenants = {"ann": "", "bob": "", "cid": "", "acme/ann": "acme", "beta/ann": "beta"}
    theirs = {user: SharedProject(f"key of {user}", tenant, "apollo", AT) for user, tenant in tenants.items()}
    for user, project in theirs.items():
        assert await projects.create(project, user)
    await projects.delete(theirs.pop("bob").key)
    for user, project in theirs.items():
        assert await seen(projects, user) == (project, ProjectRole.OWNER)
        assert [one.project for one in await projects.joined(user)] == [project]
    assert await projects.access("bob", "apollo") is None


async def test_ids_are_compared_exactly(projects: Projects) -> None:
    await projects.create(APOLLO, "ann")
    await projects.invite(Invitation(APOLLO, "bob", ProjectRole.EDITOR, "ann", AT))
    for project_id in ("Apollo", "apollo ", "APOLLO", "apo", "%", ""):
        assert await projects.access("ann", project_id) is None
    for user_id in ("Ann", "ann ", "an", "%", ""):
        assert await projects.access(user_id, "apollo") is None
        assert await projects.invited(user_id, limit=9) == []
        assert await projects.invited("bob", by=user_id, limit=9) == [] or user_id == ""
        assert await projects.joined(user_id) == []


async def test_roles_are_set_together_and_keep_the_time_of_joining(projects: Projects, other: Process) -> None:
    await projects.create(APOLLO, "ann")
    await projects.set_roles("k1", {"cid": ProjectRole.EDITOR}, at=AT + 1)
    await projects.set_roles("k1", {"bob": ProjectRole.VIEWER}, at=AT + 2)
    assert await seen(other.projects, "bob") == (APOLLO, ProjectRole.VIEWER)  # in every process at once
    await projects.set_roles("k1", {"ann": ProjectRole.ADMIN, "cid": ProjectRole.OWNER, "bob": None}, at=AT + 3)
    assert await other.projects.access("bob", "apollo") is None
    assert await projects.members("k1") == [
        ProjectMember("ann", ProjectRole.ADMIN, AT),
        ProjectMember("cid", ProjectRole.OWNER, AT + 1),
    ]
    await projects.set_roles("nowhere", {"ann": ProjectRole.OWNER, "dan": None}, at=AT)
    assert await projects.members("nowhere") == []
    await projects.create(SharedProject("k2", "", "gemini", AT), "cid")
    joined = await projects.joined("cid")
    assert [(one.project.key, one.role) for one in joined] == [("k1", ProjectRole.OWNER), ("k2", ProjectRole.OWNER)]


async def test_who_is_invited_is_no_member_until_they_accept(projects: Projects) -> None:
    """Each to the latest invitation alone, which nobody else sees, and which an answer or a removal ends."""
    gemini = SharedProject("k2", "", "gemini", AT)
    for project in (APOLLO, gemini):
        await projects.create(project, "ann")
    stale = Invitation(APOLLO, "bob", ProjectRole.VIEWER, "ann", AT)
    invited = Invitation(APOLLO, "bob", ProjectRole.EDITOR, "cid", AT + 1)
    other = Invitation(gemini, "bob", ProjectRole.VIEWER, "ann", AT + 2)
    for one in (stale, invited, other, Invitation(APOLLO, "eve", ProjectRole.VIEWER, "ann", AT + 3)):
        await projects.invite(one)
    await projects.invite(Invitation(SharedProject("nowhere", "", "x", AT), "bob", ProjectRole.VIEWER, "ann", AT))
    assert await projects.invited("bob", limit=9) == [other, invited]
    assert await projects.invited("bob", limit=1) == [other]
    assert await projects.invited("bob", by="cid", limit=9) == [invited]
    assert [one.user_id for one in await projects.invitations("k1")] == ["bob", "eve"]
    assert (await projects.joined("bob"), await projects.access("bob", "apollo")) == ([], None)
    await projects.accept(invited, at=AT + 4)
    assert (await projects.members("k1"))[1:] == [ProjectMember("bob", ProjectRole.EDITOR, AT + 4)]
    assert await projects.invited("bob", limit=9) == [other]
    await projects.drop_invitation("k2", "bob")
    await projects.set_roles("k1", {"eve": None}, at=AT)
    assert (await projects.invited("bob", limit=9), await projects.invited("eve", limit=9)) == ([], [])
    assert await projects.invitations("k1") == []


async def test_memberships_that_others_made_are_not_counted(projects: Projects) -> None:
    for number in range(3):
        project = SharedProject(f"k{number}", "", f"p{number}", AT)
        await projects.create(project, "ann")
        await projects.set_roles(project.key, {"bob": ProjectRole.VIEWER}, at=AT)  # as earlier releases did
    assert [await projects.count_chosen(user) for user in ("ann", "bob", "cid")] == [3, 0, 0]
    await projects.accept(Invitation(project, "cid", ProjectRole.VIEWER, "ann", AT), at=AT)
    assert (len(await projects.joined("bob")), await projects.count_chosen("cid")) == (3, 1)
    await projects.set_roles(project.key, {"cid": ProjectRole.ADMIN}, at=AT)
    assert await projects.count_chosen("cid") == 1
    await projects.set_roles(project.key, {"cid": None, "ann": None}, at=AT)
    assert [await projects.count_chosen(user) for user in ("ann", "cid")] == [2, 0]
    await projects.set_roles(project.key, {"ann": ProjectRole.ADMIN}, at=AT)
    assert await projects.count_chosen("ann") == 2


async def test_invitations_of_and_by_a_user_are_forgotten_and_those_of_a_deleted_project(projects: Projects) -> None:
    await projects.create(APOLLO, "ann")
    for user, by in (("bob", "ann"), ("cid", "bob"), ("dan", "ann")):
        await projects.invite(Invitation(APOLLO, user, ProjectRole.VIEWER, by, AT))
    await projects.forget_user("bob")
    assert [one.user_id for one in await projects.invitations("k1")] == ["dan"]
    assert [await projects.invited(user, limit=9) for user in ("bob", "cid")] == [[], []]
    await projects.delete("k1")
    assert (await projects.invitations("k1"), await projects.invited("dan", limit=9)) == ([], [])


async def test_entries_are_found_by_memory_and_by_author(projects: Projects) -> None:
    await projects.create(APOLLO, "ann")
    entries = [entry(1), entry(2, author="bob"), entry(3)]
    await projects.put(entries)
    assert await projects.entries(["k1.1", "k1.2", "unknown"]) == {"k1.1": entries[0], "k1.2": entries[1]}
    assert await projects.authored("ann") == [entries[0], entries[2]]
    assert await projects.entries([]) == {}
    changed = SharedMemory("k1.1", "k1", "ann", MemoryVisibility.PUBLIC, AT + 5)
    await projects.put([changed])
    assert await projects.entries(["k1.1"]) == {"k1.1": changed}
    await projects.drop(["k1.1", "unknown"])
    assert await projects.authored("ann") == [entries[2]]
    many = [entry(number) for number in range(10, 1_000)]
    await projects.put(many)
    assert len(await projects.entries([one.memory_id for one in many])) == len(many)


async def test_readers_are_known_until_they_are_forgotten(projects: Projects) -> None:
    for key in ("k1", "k2"):
        await projects.create(SharedProject(key, "", f"project {key}", AT), "ann")
        for user in ("bob", "ann", "bob"):
            await projects.add_reader(key, user)
    await projects.add_reader("nowhere", "bob")
    assert [await projects.readers(key) for key in ("k1", "k2", "nowhere")] == [["ann", "bob"], ["ann", "bob"], []]
    await projects.forget_user("bob")
    await projects.delete("k2")
    assert [await projects.readers(key) for key in ("k1", "k2")] == [["ann"], []]


async def test_a_deleted_project_leaves_nothing_and_its_id_is_free_again(projects: Projects) -> None:
    await projects.create(APOLLO, "ann")
    await projects.put([entry(1)])
    await projects.delete("k1")
    assert await projects.access("ann", "apollo") is None
    assert (await projects.members("k1"), await projects.joined("ann"), await projects.authored("ann")) == ([], [], [])
    await projects.put([entry(1)])  # whoever was about to write
    await projects.set_roles("k1", {"ann": ProjectRole.OWNER}, at=AT)
    assert await projects.create(SharedProject("k2", "", "apollo", AT + 1), "bob")
    assert (await projects.entries(["k1.1"]), await projects.joined("ann")) == ({}, [])


async def test_a_user_opts_out_and_in_again(deployment: Deployment, process: Process, other: Process) -> None:
    assert await process.opt_outs.since(ANN) is None
    assert await process.opt_outs.set(ANN, at=START) == START
    async with deployment.start() as later:
        for one in (process, other, later):
            assert await one.opt_outs.since(ANN) == START
    for user in ("ann", ANN.upper(), ANN + " ", "bob"):
        assert await process.opt_outs.since(user) is None
    assert await process.opt_outs.set(ANN, at=START + 60) == START  # a repeated one keeps its time
    assert await process.opt_outs.set("bob", at=START) == START
    assert await process.opt_outs.count() == 2
    for _ in range(2):
        await process.opt_outs.clear(ANN)
        assert await other.opt_outs.since(ANN) is None
        assert await process.opt_outs.count() == 1


async def test_the_id_of_the_user_is_not_stored(deployment: Deployment, process: Process) -> None:
    await process.opt_outs.set(ANN, at=START)
    assert deployment.places_with(str(START)) == ["opted_out_users"]
    assert deployment.places_with(ANN) == []
