"""Keeps callers whose token names projects within them."""

from __future__ import annotations

from memory.api.identity import Caller, Forbidden
from memory.errors import NotFound
from memory.model import Memory
from memory.model.projects import ProjectAccess
from memory.model.token_claims import project_within
from memory.service.library import Library


def bounded_project(caller: Caller, named: str) -> str:
    """The project of a call that names `named` ("" for none). Raises `Forbidden` if that may not be used."""
    project_id = project_within(caller.projects, named)
    if project_id is None:
        raise Forbidden("your token is for other projects: name one of its own as project_id")
    return project_id


async def joined_projects(library: Library, caller: Caller) -> list[ProjectAccess]:
    """The shared projects of which the caller is a member, without those that their token does not name."""
    joined = await library.projects.membership.joined(caller.user_id)
    return [one for one in joined if is_within(caller, one.project.project_id)]


def is_within(caller: Caller, project_id: str) -> bool:
    return caller.projects is None or project_id in caller.projects


def refuse_without_bounds(caller: Caller) -> None:
    """For calls that concern all that is stored of a user."""
    if caller.projects is not None:
        raise Forbidden("your token is for some projects only, and this call concerns all of them")


def is_visible(caller: Caller, memory: Memory) -> bool:
    """Also memories of no project, as in a chat."""
    return caller.projects is None or memory.project_id in (*caller.projects, "")


async def refuse_foreign_memory(library: Library, caller: Caller, memory_id: str, *, is_change: bool) -> None:
    """Raises `NotFound` for a memory of another project, `Forbidden` for a change of one that all projects share."""
    if caller.projects is None:
        return
    memory = await library.get(caller.user_id, memory_id)
    if not is_visible(caller, memory):
        raise NotFound("no such memory")
    if is_change and not memory.project_id:
        raise Forbidden("your token is for some projects only, and this memory belongs to none")
