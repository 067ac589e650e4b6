"""Shared projects and their members: who may create, join, manage, hand over and delete them.

Nobody becomes a member without having agreed: others invite them, and they accept. Nobody can take a project id from
others either: it means to each user the project of that id that they have joined, and is unique within a tenant only.

All changes are checked and made under the project's lock, as its memories are written: whoever loses a right has used
it before, or not at all. A project looks to others as if it did not exist.
"""

from __future__ import annotations

from memory.errors import BadInput, NotFound
from memory.model import Scope
from memory.model.projects import (
    Invitation,
    ProjectAccess,
    ProjectMember,
    ProjectRole,
    SharedProject,
    project_key,
    successor_of,
)
from memory.service.service_parts import Service, ServiceParts
from memory.service.shared_rows import SharedRows

PROJECTS_JOINED_MAX = 1_000  # that a user has chosen to belong to: listed in one answer
MEMBERS_MAX = 1_000  # of one project, with the invitations to it, likewise
INVITATIONS_SHOWN_MAX = 200  # of one user, the latest: no number of senders makes an answer large, or hides later ones
INVITATIONS_BY_ONE_MAX = 10  # of one user by one other, not answered
NO_SUCH_INVITATION = "there is no such invitation: it was withdrawn or answered"


class RightMissing(BadInput):
    """The caller may see this, and may not do that."""

    code = "forbidden"


class ProjectTaken(BadInput):
    code = "project_exists"


class ProjectMembership(Service):
    """Methods raise `BadInput` (`NotFound`, `RightMissing`, `ProjectTaken`), `Unavailable` or `Conflict`."""

    def __init__(self, parts: ServiceParts, rows: SharedRows) -> None:
        super().__init__(parts)
        self._rows = rows
        self._projects = parts.stores.projects
        self.joined = self._projects.joined

    async def create(self, user_id: str, project_id: str) -> ProjectAccess:
        """The caller becomes the owner. Memories that users have under this project id stay private to each."""
        if not project_id:
            raise BadInput("project_id must not be empty")
        Scope(user_id, project_id)  # refuses invalid ids
        tenant = self._intake.tenancy.tenant_of(user_id)
        if tenant is None:
            raise RightMissing("users without a tenant share no projects")
        epoch = await self._writes.begin(user_id)
        project = SharedProject(project_key(self._intake.new_id()), tenant, project_id, self._clock())
        async with self._writes.lock(epoch):
            await self._refuse_to_join_another(user_id, project_id)
            if not await self._projects.create(project, user_id):
                raise ProjectTaken("there is a shared project of this id: choose another, or ask to be invited")
        return ProjectAccess(project, ProjectRole.OWNER)

    async def members(self, user_id: str, project_id: str) -> list[ProjectMember]:
        """Who joined first comes first."""
        access = await self._rows.access(user_id, project_id)
        return await self._projects.members(access.project.key)

    async def invitations(self, user_id: str, project_id: str) -> list[Invitation]:
        """To the project, not answered yet, oldest first. None for those who may not invite."""
        access = await self._rows.access(user_id, project_id)
        is_shown = access.is_at_least(ProjectRole.ADMIN)
        return await self._projects.invitations(access.project.key) if is_shown else []

    async def set_role(
        self, user_id: str, project_id: str, member_id: str, role: ProjectRole
    ) -> ProjectMember | Invitation:
        """Changes the role of a member, or invites somebody to be one."""
        Scope(member_id)  # refuses invalid ids
        if role is ProjectRole.OWNER:
            raise BadInput("a project has one owner: transfer it with POST …/owner")
        project = (await self._rows.access(user_id, project_id)).project
        async with self._ledger.write(project.owner_id):
            access = await self._rows.access(user_id, project_id)
            before = await self._member(project, member_id) or await self._invitation(project.key, member_id)
            if not access.may_set(before.role if before else None, role):
                raise RightMissing("your role in this project does not allow to give that role to that user")
            now = self._clock()
            if isinstance(before, ProjectMember):
                await self._projects.set_roles(project.key, {member_id: role}, at=now)
                return ProjectMember(member_id, role, before.joined_at)
            invitation = Invitation(project, member_id, role, user_id, now)
            if before is None:
                await self._refuse_too_many_invitations(invitation)
            await self._projects.invite(invitation)
        return invitation

    async def invited(self, user_id: str) -> list[Invitation]:
        """The latest that the user has not answered, latest first."""
        return await self._projects.invited(user_id, limit=INVITATIONS_SHOWN_MAX)

    async def invitation(self, user_id: str, key: str) -> Invitation:
        """That of the user to the project with that key. Raises `NotFound`."""
        found = await self._invitation(key, user_id)
        if found is None:
            raise NotFound(NO_SUCH_INVITATION)
        return found

    async def accept(self, user_id: str, key: str) -> ProjectAccess:
        """The user becomes a member of the project with that key, if they are invited to it."""
        epoch = await self._writes.begin(user_id)
        project = (await self.invitation(user_id, key)).project
        async with self._writes.lock(epoch), self._ledger.write(project.owner_id):
            invitation = await self.invitation(user_id, key)
            await self._refuse_to_join_another(user_id, project.project_id)
            await self._projects.accept(invitation, at=self._clock())
        return ProjectAccess(project, invitation.role)

    async def decline(self, user_id: str, key: str) -> None:
        project = (await self.invitation(user_id, key)).project
        async with self._ledger.write(project.owner_id):
            await self.invitation(user_id, key)
            await self._projects.drop_invitation(key, user_id)

    async def remove(self, user_id: str, project_id: str, member_id: str) -> None:
        """Removes a member, who may be the caller, or withdraws an invitation. What they shared stays."""
        project = (await self._rows.access(user_id, project_id)).project
        async with self._ledger.write(project.owner_id):
            access = await self._rows.access(user_id, project_id)
            if member_id == user_id and access.role is ProjectRole.OWNER:
                raise BadInput("the owner cannot leave: transfer the project, or delete it")
            if member_id != user_id and not access.is_at_least(ProjectRole.ADMIN):
                raise RightMissing("your role in this project does not allow to remove members")
            before = await self._member(project, member_id) or await self._invitation(project.key, member_id)
            if before is None:
                raise NotFound("there is no such member")
            if member_id != user_id and not access.may_set(before.role, None):
                raise RightMissing("your role in this project does not allow to remove that member")
            await self._projects.set_roles(project.key, {member_id: None}, at=self._clock())
        await self._rows.drop_notes_of(project, member_id)

    async def transfer(self, user_id: str, project_id: str, member_id: str) -> None:
        """Another member becomes the owner, and the owner an admin."""
        project = (await self._rows.access(user_id, project_id)).project
        async with self._ledger.write(project.owner_id):
            await self.owned(user_id, project_id)
            if await self._member(project, member_id) is None:
                raise NotFound("there is no such member: invite them first")
            roles = {user_id: ProjectRole.ADMIN, member_id: ProjectRole.OWNER}
            await self._projects.set_roles(project.key, roles, at=self._clock())

    async def delete(self, user_id: str, project_id: str) -> None:
        """With all memories in it, for good."""
        access = await self.owned(user_id, project_id)
        await self._rows.clear(access.project)

    async def leave_all(self, user_id: str) -> None:
        """For a user that is erased. What they own goes to the most powerful other member, or away."""
        for joined in await self._projects.joined(user_id):
            project, is_empty = joined.project, False
            async with self._ledger.write(project.owner_id):
                roles: dict[str, ProjectRole | None] = {user_id: None}
                access = await self._projects.access_by_key(project.key, user_id)
                if access is not None and access.role is ProjectRole.OWNER:
                    successor = successor_of(user_id, await self._projects.members(project.key))
                    is_empty = successor is None
                    if successor is not None:
                        roles[successor.user_id] = ProjectRole.OWNER
                if not is_empty:
                    await self._projects.set_roles(project.key, roles, at=self._clock())
            if is_empty:
                await self._rows.clear(project)
            else:
                await self._rows.drop_notes_of(project, user_id)
        await self._projects.forget_user(user_id)

    async def owned(self, user_id: str, project_id: str) -> ProjectAccess:
        """Raises `RightMissing` for anybody but its owner."""
        access = await self._rows.access(user_id, project_id)
        if access.role is not ProjectRole.OWNER:
            raise RightMissing("only the owner of the project may do this")
        return access

    async def _member(self, project: SharedProject, user_id: str) -> ProjectMember | None:
        return next((one for one in await self._projects.members(project.key) if one.user_id == user_id), None)

    async def _invitation(self, key: str, user_id: str) -> Invitation | None:
        return next((one for one in await self._projects.invitations(key) if one.user_id == user_id), None)

    async def _refuse_to_join_another(self, user_id: str, project_id: str) -> None:
        """Under the user's lock. Memberships that others made, as in earlier releases, do not count."""
        if await self._projects.access(user_id, project_id) is not None:
            raise ProjectTaken("you are a member of a shared project of this id: leave it, or choose another id")
        if await self._projects.count_chosen(user_id) >= PROJECTS_JOINED_MAX:
            raise BadInput(f"a user may belong to {PROJECTS_JOINED_MAX} projects: leave one first")

    async def _refuse_too_many_invitations(self, new: Invitation) -> None:
        key = new.project.key
        if len(await self._projects.members(key)) + len(await self._projects.invitations(key)) >= MEMBERS_MAX:
            raise BadInput(f"a project may have {MEMBERS_MAX} members, with invitations that are not answered")
        by_caller = await self._projects.invited(new.user_id, by=new.invited_by, limit=INVITATIONS_BY_ONE_MAX)
        if len(by_caller) >= INVITATIONS_BY_ONE_MAX:
            raise BadInput(
                f"this user has not answered {INVITATIONS_BY_ONE_MAX} invitations of yours: withdraw one first"
            )
