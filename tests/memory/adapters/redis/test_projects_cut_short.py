"""A project's keys are under several hash tags: a process that dies between two of them leaves nothing that counts."""

from __future__ import annotations

from contextlib import suppress

from redis.asyncio import Redis
from redis_parts import MortalClient

from memory.adapters.redis.log_client import LogClient
from memory.adapters.redis.project_values import name_keys
from memory.adapters.redis.projects import RedisProjects
from memory.errors import Unavailable
from memory.model.projects import ProjectRole, SharedProject

AT = 1_750_000_000.0
CALLS_MAX = 12


async def test_whoever_dies_while_creating_a_project_leaves_its_name_free_or_created_it(connected: Redis) -> None:
    projects, created = RedisProjects(LogClient(connected)), 0
    for calls in range(CALLS_MAX):
        cut_short = SharedProject(f"cut{calls}", "acme", f"apollo {calls}", AT)
        with suppress(Unavailable):
            await RedisProjects(MortalClient(connected, calls)).create(cut_short, "ann")
        is_there = await projects.access("ann", cut_short.project_id) is not None
        created += is_there
        assert [one.project for one in await projects.joined("ann")] == ([cut_short] if is_there else [])
        assert (
            await projects.create(SharedProject(f"k{calls}", "acme", cut_short.project_id, AT), "bob") is not is_there
        )
        await projects.set_roles(cut_short.key, {"ann": None} if is_there else {}, at=AT)
    assert 0 < created < CALLS_MAX
    left = [f"cut{calls}" for calls in range(CALLS_MAX)]
    assert [key for key in left if await projects.access_by_key(key, "ann")] != left[-created:]
    await projects.forget_user("ann")  # she is erased
    assert [key for key in left if await projects.access_by_key(key, "ann")] == left[-created:]


async def test_whoever_dies_while_deleting_a_project_has_deleted_all_of_it_or_nothing(connected: Redis) -> None:
    projects, deleted = RedisProjects(LogClient(connected)), 0
    for calls in range(CALLS_MAX):
        project = SharedProject(f"k{calls}", "acme", f"apollo {calls}", AT)
        assert await projects.create(project, "ann")
        await projects.add_reader(project.key, "bob")
        with suppress(Unavailable):
            await RedisProjects(MortalClient(connected, calls)).delete(project.key)
        if await projects.access("ann", project.project_id) is not None:
            assert [one.user_id for one in await projects.members(project.key)] == ["ann"]
            assert await projects.readers(project.key) == ["bob"]
            await projects.delete(project.key)
            continue
        deleted += 1
        assert await projects.joined("ann") == []
        again = SharedProject(f"again{calls}", "acme", project.project_id, AT)
        assert await projects.create(again, "cid")
        found = await projects.access("cid", project.project_id)
        assert found is not None
        assert (found.project, found.role) == (again, ProjectRole.OWNER)
    assert 0 < deleted < CALLS_MAX


async def test_a_project_without_a_tenant_of_an_earlier_release_keeps_its_members(connected: Redis) -> None:
    """Its name was one for all users."""
    projects, project = RedisProjects(LogClient(connected)), SharedProject("k1", "", "boats of before", AT)
    await projects.create(project, "ann")
    own, one_for_all = name_keys(project)
    await connected.rename(own, one_for_all)
    found = await projects.access("ann", "boats of before")
    assert found is not None
    assert (found.project, found.role) == (project, ProjectRole.OWNER)
    await projects.delete("k1")
    assert await connected.exists(one_for_all) == 0
