"""Erases one project of a user: the rows at once, the bytes in files soon after.

What other members shared in a project stays: it is not the user's. The record of the erasure has a digest of user and
project.
"""

from __future__ import annotations

from dataclasses import replace

from memory.errors import BadInput
from memory.model import Scope
from memory.model.erasures import ErasureRecord, ErasureRequest
from memory.ports.erasures import Erasures
from memory.service.erasure import Erasure
from memory.service.requests import Intake
from memory.service.shared_projects import SharedProjects
from memory.service.user_erasures import UserErasures


class ProjectErasures:
    """Methods raise `BadInput` (`NotFound`), `Unavailable` or `Conflict`; each may be repeated."""

    def __init__(
        self,
        erasures: Erasures,
        *,
        of_users: UserErasures,
        erasure: Erasure,
        shared: SharedProjects,
        intake: Intake,
    ) -> None:
        self._erasures = erasures
        self._of_users = of_users
        self._erasure = erasure
        self._shared = shared
        self._clock = intake.clock
        self._new_id = intake.new_id

    async def everything(self, user_id: str, project_id: str) -> ErasureRecord:
        """On return nothing finds anything of the user in exactly that project, or of what they shared in it."""
        if not project_id:
            raise BadInput("project_id must not be empty")
        Scope(user_id, project_id)  # refuses invalid ids
        part, asked_at = _part(project_id), self._clock()
        request = ErasureRequest(self._new_id(), asked_at, asked_at, {"memories": 0, "turns_withdrawn": 0})
        await self._erasures.begun(user_id, request, part=part)  # files are rewritten also if this process dies now
        shared = await self._shared.forget_user(user_id, project_id)
        memories, turns = await self._erasure.scope(user_id, project_id)
        deleted = {"memories": memories + shared, "turns_withdrawn": turns}
        request = replace(request, deleted_at=self._clock(), deleted=deleted)
        await self._erasures.begun(user_id, request, part=part)
        return ErasureRecord(request)

    async def delete_shared(self, user_id: str, project_id: str) -> None:
        """For the owner: a shared project with all memories in it, whoever wrote them. Files are rewritten as well."""
        project, asked_at = (await self._shared.membership.owned(user_id, project_id)).project, self._clock()
        part = f"shared project {project.key}"
        request = ErasureRequest(self._new_id(), asked_at, asked_at, {"shared_projects": 0})
        await self._erasures.begun(user_id, request, part=part)  # files are rewritten also if this process dies now
        await self._shared.membership.delete(user_id, project_id)
        request = replace(request, deleted_at=self._clock(), deleted={"shared_projects": 1})
        await self._erasures.begun(user_id, request, part=part)

    async def found(self, user_id: str, project_id: str, erasure_id: str) -> ErasureRecord:
        """How far it is. Raises `NotFound`, also for another project's."""
        Scope(user_id, project_id)  # refuses invalid ids
        return await self._of_users.found(user_id, erasure_id, part=_part(project_id))


def _part(project_id: str) -> str:
    """By what the erasure is recorded; only its digest is."""
    return f"project {project_id}"
