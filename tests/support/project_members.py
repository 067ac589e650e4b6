"""Members of shared projects: whoever is invited accepts."""

from __future__ import annotations

from memory.model.projects import Invitation, ProjectRole, SharedProject
from memory.service.project_members import ProjectMembership


async def let_in(
    membership: ProjectMembership, owner_id: str, project_id: str, user_id: str, role: ProjectRole
) -> None:
    invited = await membership.set_role(owner_id, project_id, user_id, role)
    assert isinstance(invited, Invitation)
    await membership.accept(user_id, invited.project.key)


async def invited_to(membership: ProjectMembership, user_id: str, *keys: str) -> None:
    """To projects of others, with these keys, by which calls name the invitations."""
    for key in keys:
        project = SharedProject(key, "", f"project {key}", 0.0)
        await membership._projects.create(project, "somebody else")
        await membership._projects.invite(Invitation(project, user_id, ProjectRole.VIEWER, "somebody else", 0.0))
