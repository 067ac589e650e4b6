"""What users decide: projects that they share, and to opt out. Seen by every process at once. On every adapter."""

from __future__ import annotations

import asyncio

import pytest
from turn_logs import START, Deployment, Process

from memory.model.projects import MemoryVisibility, ProjectMember, ProjectRole, SharedMemory, SharedProject
from memory.ports.projects import Projects

AT = 1_750_000_000.0
APOLLO = SharedProject("k1", "", "apollo", AT)
ANN = "ann.lee@example.com"


@pytest.fixture
def projects(process: Process) -> Projects:
    return process.projects


def entry(number: int, *, key: str = "k1", author: str = "ann", at: float = AT) -> SharedMemory:
    return SharedMemory(f"{key}.{number}", key, author, MemoryVisibility.MEMBERS, at)


async def test_the_first_to_create_a_project_is_its_owner_and_the_only_member(projects: Projects) -> None:
    assert await projects.create(APOLLO, "ann")
    assert not await projects.create(SharedProject("k2", "", "apollo", AT + 1), "bob")
    anns, bobs = [await projects.access("", "apollo", user) for user in ("ann", "bob")]
    assert anns is not None
    assert bobs is not None
    assert (anns.project, anns.role) == (APOLLO, ProjectRole.OWNER)
    assert (bobs.project, bobs.role) == (APOLLO, None)
    assert await projects.members("k1") == [ProjectMember("ann", ProjectRole.OWNER, AT)]
    assert await projects.access_by_key("k2", "bob") is None


async def test_of_several_who_create_it_at_the_same_time_one_succeeds(projects: Projects) -> None:
    tried = [SharedProject(f"k{n}", "", "apollo", AT) for n in range(9)]
    assert sum(await asyncio.gather(*(projects.create(one, f"user-{one.key}") for one in tried))) == 1
    assert sum([await projects.access_by_key(one.key, "x") is not None for one in tried]) == 1


async def test_tenants_have_projects_of_their_own(projects: Projects) -> None:
    assert await projects.create(SharedProject("ka", "acme", "apollo", AT), "acme/ann")
    assert await projects.create(SharedProject("kb", "beta", "apollo", AT), "beta/ann")
    for tenant, key in (("acme", "ka"), ("beta", "kb")):
        found = await projects.access(tenant, "apollo", f"{tenant}/ann")
        assert found is not None
        assert (found.project.key, found.role) == (key, ProjectRole.OWNER)
    assert await projects.access("", "apollo", "acme/ann") is None
    crossing = await projects.access("beta", "apollo", "acme/ann")
    assert crossing is not None
    assert crossing.role is None


async def test_ids_are_compared_exactly(projects: Projects) -> None:
    await projects.create(APOLLO, "ann")
    for project_id in ("Apollo", "apollo ", "APOLLO", "apo", "%", ""):
        assert await projects.access("", project_id, "ann") is None
    for user_id in ("Ann", "ann ", "an", "%", ""):
        found = await projects.access("", "apollo", user_id)
        assert found is not None
        assert found.role is None
        assert await projects.joined(user_id) == []


async def test_roles_are_set_together_and_a_change_keeps_the_time_of_joining(projects: Projects) -> None:
    await projects.create(APOLLO, "ann")
    await projects.set_roles("k1", {"cid": ProjectRole.EDITOR}, at=AT + 1)
    await projects.set_roles("k1", {"bob": ProjectRole.VIEWER}, at=AT + 2)
    await projects.set_roles("k1", {"ann": ProjectRole.ADMIN, "cid": ProjectRole.OWNER, "bob": None}, at=AT + 3)
    assert await projects.members("k1") == [
        ProjectMember("ann", ProjectRole.ADMIN, AT),
        ProjectMember("cid", ProjectRole.OWNER, AT + 1),
    ]
    await projects.set_roles("nowhere", {"ann": ProjectRole.OWNER, "dan": None}, at=AT)
    assert await projects.members("nowhere") == []
    await projects.create(SharedProject("k2", "", "gemini", AT), "cid")
    joined = await projects.joined("cid")
    assert [(one.project.key, one.role) for one in joined] == [("k1", ProjectRole.OWNER), ("k2", ProjectRole.OWNER)]


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
    await projects.forget_reader("bob")
    await projects.delete("k2")
    assert [await projects.readers(key) for key in ("k1", "k2")] == [["ann"], []]


async def test_a_deleted_project_leaves_nothing_and_its_id_is_free_again(projects: Projects) -> None:
    await projects.create(APOLLO, "ann")
    await projects.put([entry(1)])
    await projects.delete("k1")
    assert await projects.access("", "apollo", "ann") is None
    assert (await projects.members("k1"), await projects.joined("ann"), await projects.authored("ann")) == ([], [], [])
    await projects.put([entry(1)])  # whoever was about to write
    await projects.set_roles("k1", {"ann": ProjectRole.OWNER}, at=AT)
    assert await projects.create(SharedProject("k2", "", "apollo", AT + 1), "bob")
    assert (await projects.entries(["k1.1"]), await projects.joined("ann")) == ({}, [])


async def test_changes_are_seen_by_all_processes_at_once_and_survive_them(deployment: Deployment) -> None:
    async with deployment.start() as first, deployment.start() as second:
        one, two = first.projects, second.projects
        await one.create(APOLLO, "ann")
        await one.set_roles("k1", {"bob": ProjectRole.VIEWER}, at=AT)
        await one.put([entry(1)])
        found = await two.access("", "apollo", "bob")
        assert found is not None
        assert found.role is ProjectRole.VIEWER
        await two.set_roles("k1", {"bob": None}, at=AT)
        found = await one.access("", "apollo", "bob")
        assert found is not None
        assert found.role is None
    async with deployment.start() as third:
        assert await third.projects.entries(["k1.1"]) == {"k1.1": entry(1)}


# Opting out


async def test_a_user_opts_out_and_in_again_and_nobody_else_does(process: Process) -> None:
    assert await process.opt_outs.since(ANN) is None
    assert await process.opt_outs.set(ANN, at=START) == START
    assert await process.opt_outs.since(ANN) == START
    for other in ("ann", ANN.upper(), ANN + " ", "bob"):
        assert await process.opt_outs.since(other) is None
    assert await process.opt_outs.set(ANN, at=START + 60) == START  # a repeated one keeps its time
    assert await process.opt_outs.set("bob", at=START) == START
    assert await process.opt_outs.count() == 2
    for _ in range(2):
        await process.opt_outs.clear(ANN)
        assert await process.opt_outs.since(ANN) is None
        assert await process.opt_outs.count() == 1


async def test_it_is_seen_by_all_processes_at_once_and_survives_them(deployment: Deployment) -> None:
    async with deployment.start() as one, deployment.start() as two:
        assert await two.opt_outs.since(ANN) is None
        await one.opt_outs.set(ANN, at=START)
        assert await two.opt_outs.since(ANN) == START
    async with deployment.start() as third:
        assert await third.opt_outs.since(ANN) == START


async def test_the_id_of_the_user_is_not_stored(deployment: Deployment) -> None:
    async with deployment.start() as process:
        await process.opt_outs.set(ANN, at=START)
    assert deployment.places_with(str(START)) == ["opted_out_users"]
    assert deployment.places_with(ANN) == []
