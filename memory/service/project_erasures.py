"""Erases one project of a user, with proof: the rows at once, the bytes in files soon after, then a look for the rest.

What other members shared in a project stays: it is not the user's. The record of the erasure has a digest of user and
project. Bytes cannot be looked for, since nothing in them says whose project they were; so the proof counts the rows
that name the project, from which all files were written anew, and is a partial one.
"""

from __future__ import annotations

from dataclasses import replace

from memory.errors import BadInput
from memory.model import Scope
from memory.ports.erasures import ErasureRecord, ErasureRequest, Erasures, PlaceReport
from memory.service.erasure import Erasure
from memory.service.erasure_states import ErasureLooks, ErasureState, ErasureStatus
from memory.service.project_remains import ProjectRemains
from memory.service.requests import Intake
from memory.service.shared_projects import SharedProjects


class ProjectErasures:
    """Methods raise `BadInput` (`NotFound`), `Unavailable` or `Conflict`; each may be repeated."""

    def __init__(
        self,
        erasures: Erasures,
        remains: ProjectRemains,
        *,
        looks: ErasureLooks,
        erasure: Erasure,
        shared: SharedProjects,
        intake: Intake,
    ) -> None:
        self._erasures = erasures
        self._remains = remains
        self._looks = looks
        self._erasure = erasure
        self._shared = shared
        self._clock = intake.clock
        self._new_id = intake.new_id

    async def everything(self, user_id: str, project_id: str) -> ErasureStatus:
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
        return ErasureStatus(ErasureState.DELETED, ErasureRecord(request))

    async def delete_shared(self, user_id: str, project_id: str) -> None:
        """For the owner: a shared project with all memories in it, whoever wrote them. Its files are rewritten as well;
        there is no proof, since what remains of it is nobody's alone.
        """
        project, asked_at = (await self._shared.membership.owned(user_id, project_id)).project, self._clock()
        part = f"shared project {project.key}"
        request = ErasureRequest(self._new_id(), asked_at, asked_at, {"shared_projects": 0})
        await self._erasures.begun(user_id, request, part=part)  # files are rewritten also if this process dies now
        await self._shared.membership.delete(user_id, project_id)
        request = replace(request, deleted_at=self._clock(), deleted={"shared_projects": 1})
        await self._erasures.begun(user_id, request, part=part)

    async def status(self, user_id: str, project_id: str, erasure_id: str) -> ErasureStatus:
        """How far it is. Looks for the rest once files are rewritten. Raises `NotFound` for another project's."""
        Scope(user_id, project_id)  # refuses invalid ids

        async def look(found: ErasureRecord) -> list[PlaceReport]:
            return [await self._remains.report(user_id, project_id, until=found.request.asked_at)]

        return await self._looks.status(user_id, erasure_id, look, part=_part(project_id))


def _part(project_id: str) -> str:
    """By what the erasure is recorded; only its digest is."""
    return f"project {project_id}"
