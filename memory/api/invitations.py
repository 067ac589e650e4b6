"""The endpoints of users who are invited to shared projects: nobody is a member of one who has not accepted."""

from __future__ import annotations

import msgspec
from litestar import Controller, delete, get, post

from memory.api.identity import Caller
from memory.api.operations import READS_PROJECTS, WRITES_PROJECTS, PathId, TheCaller, TheLibrary, operation
from memory.api.project_bounds import is_within
from memory.api.projects import ProjectView, Removed, project_view
from memory.api.times import TimeText, time_text
from memory.errors import NotFound
from memory.model.projects import Invitation, ProjectRole, Tenancy
from memory.service.library import Library
from memory.service.project_members import NO_SUCH_INVITATION


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
    async def show_all(self, library: TheLibrary, caller: TheCaller) -> InvitationList:
        """The invitations to shared projects that the caller has not answered."""
        found = await library.projects.membership.invited(caller.user_id)
        shown = [one for one in found if is_within(caller, one.project.project_id)]
        return InvitationList([invitation_view(one, library.projects.tenancy) for one in shown])

    @operation(
        post, "/{id:str}/accept", "acceptInvitation", allowed=WRITES_PROJECTS, errors=(404, 409), status_code=200
    )
    async def accept(self, library: TheLibrary, caller: TheCaller, path_id: PathId) -> ProjectView:
        """Makes the caller a member of the project."""
        await _refuse_foreign(library, caller, path_id)
        return project_view(await library.projects.membership.accept(caller.user_id, path_id))

    @operation(delete, "/{id:str}", "declineInvitation", allowed=WRITES_PROJECTS, errors=(404, 409), status_code=200)
    async def decline(self, library: TheLibrary, caller: TheCaller, path_id: PathId) -> Removed:
        """Declines: it is gone."""
        await _refuse_foreign(library, caller, path_id)
        await library.projects.membership.decline(caller.user_id, path_id)
        return Removed(1)


async def _refuse_foreign(library: Library, caller: Caller, key: str) -> None:
    """Raises `NotFound` for an invitation to a project that the caller's token does not name."""
    found = await library.projects.membership.invitation(caller.user_id, key)
    if not is_within(caller, found.project.project_id):
        raise NotFound(NO_SUCH_INVITATION)


def invitation_view(one: Invitation, tenancy: Tenancy) -> InvitationView:
    names = (one.project.key, one.project.project_id, one.role, tenancy.name_of(one.invited_by))
    return InvitationView(*names, time_text(one.invited_at))
