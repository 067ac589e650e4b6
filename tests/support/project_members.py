"""Members of shared projects: whoever is invited accepts."""

from __future__ import annotations

from memory.model.projects import Invitation, ProjectRole
from memory.service.project_members import ProjectMembership


async def let_in(
    membership: ProjectMembership, owner_id: str, project_id: str, user_id: str, role: ProjectRole
) -> None:
    invited = await membership.set_role(owner_id, project_id, user_id, role)
    assert isinstance(invited, Invitation)
    await membership.accept(user_id, invited.project.key)
