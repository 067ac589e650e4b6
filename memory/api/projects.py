"""The endpoints of shared projects: who belongs to them, and what they hold.

Users are named as in other calls, without a tenant: members are of the caller's.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

import msgspec
from litestar import Controller, delete, get, post, put
from litestar.params import FromQuery, JSONBody
from msgspec import Meta

from memory.api import memory_views as views
from memory.api.guards import bounded_project, is_within, joined_projects
from memory.api.identity import Caller
from memory.api.memories import PageLimit
from memory.api.operations import READS_PROJECTS, WRITES_PROJECTS, MemberId, PathId, TheCall, operation
from memory.api.times import TimeText, time_text
from memory.errors import NotFound
from memory.model.projects import Invitation, ProjectAccess, ProjectMember, ProjectRole, Tenancy
from memory.service.library import PAGE_MEMORIES_MAX, Library
from memory.service.project_members import NO_SUCH_INVITATION

GivenRole: TypeAlias = Literal["viewer", "editor", "admin"]
UserName: TypeAlias = Annotated[str, Meta(description="As other calls name users.", examples=["bob"])]


class ProjectBody(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    project_id: Annotated[str, Meta(examples=["apollo"])]


class RoleBody(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    role: GivenRole


class OwnerBody(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    user_id: UserName


class ProjectView(msgspec.Struct, frozen=True):
    """`role`: the caller's."""

    project_id: str
    role: ProjectRole
    created_at: TimeText


class ProjectList(msgspec.Struct, frozen=True):
    projects: list[ProjectView]


class MemberView(msgspec.Struct, frozen=True):
    """`joined_at`: null for somebody who has been invited, until they accept."""

    user_id: str
    role: ProjectRole
    joined_at: TimeText | None


class InvitedView(msgspec.Struct, frozen=True):
    """Somebody who has not answered yet."""

    user_id: str
    role: ProjectRole
    invited_by: str
    invited_at: TimeText


class MemberList(msgspec.Struct, frozen=True):
    """Who joined, or was invited, first comes first. `invited`: for owner and admins; none for others."""

    members: list[MemberView]
    invited: list[InvitedView]


class Removed(msgspec.Struct, frozen=True):
    deleted: int


class ProjectsController(Controller):
    path = "/v1/memory/projects"
    tags = ("projects",)

    @operation(post, "/", "createProject", allowed=WRITES_PROJECTS, errors=(409,), status_code=201)
    async def create(self, call: TheCall, data: JSONBody[ProjectBody]) -> ProjectView:
        """Creates a shared project, of which the caller becomes the owner. What users stored under this id before stays
        private to each.
        """
        project_id = bounded_project(call.caller, data.project_id)
        return project_view(await call.library.projects.membership.create(call.user_id, project_id))

    @operation(get, "/", "listProjects", allowed=READS_PROJECTS)
    async def show_all(self, call: TheCall) -> ProjectList:
        """The shared projects of which the caller is a member."""
        return ProjectList([project_view(one) for one in await joined_projects(call.library, call.caller)])

    @operation(get, "/{id:str}", "getProject", allowed=READS_PROJECTS, errors=(404,))
    async def show(self, call: TheCall, path_id: PathId) -> ProjectView:
        """One shared project."""
        return project_view(
            await call.library.projects.rows.access(call.user_id, bounded_project(call.caller, path_id))
        )

    @operation(delete, "/{id:str}", "deleteProject", allowed=WRITES_PROJECTS, errors=(404, 409))
    async def remove(self, call: TheCall, path_id: PathId) -> Removed:
        """Deletes a shared project with all memories in it, whoever wrote them. For its owner."""
        await call.library.erasures.shared_project(call.user_id, bounded_project(call.caller, path_id))
        return Removed(1)

    @operation(get, "/{id:str}/memories", "listProjectMemories", allowed=READS_PROJECTS, errors=(404,))
    async def show_memories(
        self, call: TheCall, path_id: PathId, limit: PageLimit = PAGE_MEMORIES_MAX, cursor: FromQuery[str] = ""
    ) -> views.MemoryPage:
        """One page of the project's memories that the caller may read, newest first. For its members."""
        page = await call.library.projects.memories.page(
            call.user_id, bounded_project(call.caller, path_id), limit=limit, cursor=cursor
        )
        return views.MemoryPage(views.listed_memories(page.items), page.next_cursor or None)

    @operation(get, "/{id:str}/members", "listProjectMembers", allowed=READS_PROJECTS, errors=(404,))
    async def show_members(self, call: TheCall, path_id: PathId) -> MemberList:
        """The members of a shared project, and who is invited to it. For its members."""
        membership, tenancy = call.library.projects.membership, call.library.projects.tenancy
        project_id = bounded_project(call.caller, path_id)
        found = await membership.members(call.user_id, project_id)
        invited = await membership.invitations(call.user_id, project_id)
        return MemberList([member_view(one, tenancy) for one in found], [invited_view(one, tenancy) for one in invited])

    @operation(put, "/{id:str}/members/{member:str}", "setProjectMember", allowed=WRITES_PROJECTS, errors=(404, 409))
    async def set_member(
        self, call: TheCall, path_id: PathId, member_id: MemberId, data: JSONBody[RoleBody]
    ) -> MemberView:
        """Invites somebody, who is a member once they accept, or changes a member's role. For owner and admins; only
        the owner makes admins, and unmakes them.
        """
        tenancy, role = call.library.projects.tenancy, ProjectRole(data.role)
        user_id = tenancy.user_named(member_id, by=call.user_id)
        project_id = bounded_project(call.caller, path_id)
        return member_view(
            await call.library.projects.membership.set_role(call.user_id, project_id, user_id, role), tenancy
        )

    @operation(
        delete, "/{id:str}/members/{member:str}", "removeProjectMember", allowed=WRITES_PROJECTS, errors=(404, 409)
    )
    async def remove_member(self, call: TheCall, path_id: PathId, member_id: MemberId) -> Removed:
        """Removes a member, who may be the caller, or withdraws an invitation. What they shared stays."""
        user_id = call.library.projects.tenancy.user_named(member_id, by=call.user_id)
        await call.library.projects.membership.remove(call.user_id, bounded_project(call.caller, path_id), user_id)
        return Removed(1)

    @operation(post, "/{id:str}/owner", "transferProject", allowed=WRITES_PROJECTS, errors=(404, 409))
    async def transfer(self, call: TheCall, path_id: PathId, data: JSONBody[OwnerBody]) -> ProjectView:
        """Makes another member the owner, and the caller an admin. For the owner."""
        project_id, membership = bounded_project(call.caller, path_id), call.library.projects.membership
        user_id = call.library.projects.tenancy.user_named(data.user_id, by=call.user_id)
        await membership.transfer(call.user_id, project_id, user_id)
        return project_view(await call.library.projects.rows.access(call.user_id, project_id))


def project_view(access: ProjectAccess) -> ProjectView:
    assert access.role is not None, "of a member"
    return ProjectView(access.project.project_id, access.role, time_text(access.project.created_at))


def member_view(member: ProjectMember | Invitation, tenancy: Tenancy) -> MemberView:
    joined_at = time_text(member.joined_at) if isinstance(member, ProjectMember) else None
    return MemberView(tenancy.name_of(member.user_id), member.role, joined_at)


def invited_view(one: Invitation, tenancy: Tenancy) -> InvitedView:
    names = (tenancy.name_of(one.user_id), one.role, tenancy.name_of(one.invited_by))
    return InvitedView(*names, time_text(one.invited_at))


class InvitationView(msgspec.Struct, frozen=True):
    """`id`: of this invitation; several projects may have the same `project_id`. `role`: what the caller would be."""

    id: str
    project_id: str
    role: ProjectRole
    invited_by: str
    invited_at: TimeText


class InvitationList(msgspec.Struct, frozen=True):
    """Latest first."""

    invitations: list[InvitationView]


class InvitationsController(Controller):
    path = "/v1/memory/invitations"
    tags = ("projects",)

    @operation(get, "/", "listInvitations", allowed=READS_PROJECTS)
    async def show_all(self, call: TheCall) -> InvitationList:
        """The invitations to shared projects that the caller has not answered."""
        found = await call.library.projects.membership.invited(call.user_id)
        shown = [one for one in found if is_within(call.caller, one.project.project_id)]
        return InvitationList([invitation_view(one, call.library.projects.tenancy) for one in shown])

    @operation(post, "/{id:str}/accept", "acceptInvitation", allowed=WRITES_PROJECTS, errors=(404, 409))
    async def accept(self, call: TheCall, path_id: PathId) -> ProjectView:
        """Makes the caller a member of the project."""
        await _refuse_foreign(call.library, call.caller, path_id)
        return project_view(await call.library.projects.membership.accept(call.user_id, path_id))

    @operation(delete, "/{id:str}", "declineInvitation", allowed=WRITES_PROJECTS, errors=(404, 409))
    async def decline(self, call: TheCall, path_id: PathId) -> Removed:
        """Declines: it is gone."""
        await _refuse_foreign(call.library, call.caller, path_id)
        await call.library.projects.membership.decline(call.user_id, path_id)
        return Removed(1)


async def _refuse_foreign(library: Library, caller: Caller, key: str) -> None:
    """Raises `NotFound` for an invitation to a project that the caller's token does not name."""
    found = await library.projects.membership.invitation(caller.user_id, key)
    if not is_within(caller, found.project.project_id):
        raise NotFound(NO_SUCH_INVITATION)


def invitation_view(one: Invitation, tenancy: Tenancy) -> InvitationView:
    names = (one.project.key, one.project.project_id, one.role, tenancy.name_of(one.invited_by))
    return InvitationView(*names, time_text(one.invited_at))
