"""Erases everything of a user, or of a project of theirs: the rows at once, the bytes in files soon after.

`UserErasures` deletes the rows and records the erasure by a digest of user and project. `FileRewriter`, which the
worker runs, writes the files anew that still hold deleted bytes; erasures that happen close together share one
rewriting, and one that was broken off is repeated. Only who names the user can look for the user's id: `memproxy
erase --verify` does.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import replace

import structlog

from memory.errors import BadInput, Conflict, NotFound, Unavailable
from memory.model import Scope, is_valid_id
from memory.model.erasures import ErasureRecord, ErasureRequest
from memory.ports import Clock
from memory.ports.erasures import Erasures, FileRewriting
from memory.runtime.metrics import Metrics
from memory.runtime.task_groups import pause_before
from memory.service.service_parts import Service, ServiceParts
from memory.service.shared_projects import SharedProjects

ATTEMPTS_MAX = 5  # a user who goes on chatting while being erased
LOOK_SECONDS = 1.0  # between two looks for erasures whose files wait
SHARED_SECONDS = 5.0  # erasures of so many seconds after a rewriting share the next one
RETRY_SECONDS = 60.0  # after an attempt that failed: parts before the one that refused were rewritten in vain
EXPIRY_SECONDS = 3_600.0  # between two looks for records that are older than they are kept
DAY = 86_400.0

log = structlog.get_logger(__name__)


class UserErasures(Service):
    """Erases all of a user, or one project of theirs, and records it; `""` as a project means all of the user.

    Methods raise `BadInput` (`NotFound`), `Unavailable` or `Conflict`; each may be repeated.
    """

    def __init__(self, parts: ServiceParts, shared: SharedProjects) -> None:
        super().__init__(parts)
        self._erasures = parts.stores.erasures
        self._shared = shared
        self.latest = self._erasures.latest

    async def everything(self, user_id: str) -> ErasureRecord:
        """On return nothing finds anything of the user, or of what they shared in projects, and nothing that was under
        way brings it back.
        """
        Scope(user_id)  # refuses invalid ids
        request = self._asked("memories", "turns_withdrawn")
        memories, turns = await self._shared.forget_user(user_id, ""), 0
        for _ in range(ATTEMPTS_MAX):
            more_memories, more_turns = await self._erasure.scope(user_id, "")
            memories, turns = memories + more_memories, turns + more_turns
            # before, for files are rewritten also if this process dies now; and after, for what was deleted meanwhile
            request = await self._recorded(user_id, request, memories=memories, turns_withdrawn=turns)
            if await self._erasure.advance_erase_epoch(user_id):
                break
        else:
            raise Conflict("the user's memories were written while they were erased: call again")
        request = await self._recorded(user_id, request)
        await self._shared.forget_user(user_id, "")  # what was founded or shared since the first time
        return ErasureRecord(request)

    async def project(self, user_id: str, project_id: str) -> ErasureRecord:
        """On return nothing finds anything of the user in exactly that project, or of what they shared in it. What
        other members shared stays: it is not the user's.
        """
        Scope(user_id, project_id)
        part, request = _part(project_id), self._asked("memories", "turns_withdrawn")
        await self._erasures.begun(user_id, request, part=part)  # files are rewritten also if this process dies now
        shared = await self._shared.forget_user(user_id, project_id)
        memories, turns = await self._erasure.scope(user_id, project_id)
        return ErasureRecord(
            await self._recorded(user_id, request, part, memories=memories + shared, turns_withdrawn=turns)
        )

    async def shared_project(self, user_id: str, project_id: str) -> None:
        """For the owner: a shared project with all memories in it, whoever wrote them."""
        project = (await self._shared.membership.owned(user_id, project_id)).project
        part, request = f"shared project {project.key}", self._asked("shared_projects")
        await self._erasures.begun(user_id, request, part=part)  # likewise
        await self._shared.membership.delete(user_id, project_id)
        await self._recorded(user_id, request, part, shared_projects=1)

    async def found(self, user_id: str, erasure_id: str, *, project_id: str = "") -> ErasureRecord:
        """How far it is. Raises `NotFound`, also for another user's or project's."""
        Scope(user_id, project_id)
        part = _part(project_id)
        found = await self._erasures.get(user_id, erasure_id, part=part) if is_valid_id(erasure_id) else None
        if found is None:
            raise NotFound("this user has no such erasure")
        return found

    def _asked(self, *kinds: str) -> ErasureRequest:
        return ErasureRequest(self._intake.new_id(), (now := self._clock()), now, dict.fromkeys(kinds, 0))

    async def _recorded(self, user_id: str, request: ErasureRequest, part: str = "", **deleted: int) -> ErasureRequest:
        request = replace(request, deleted_at=self._clock(), deleted=deleted or request.deleted)
        await self._erasures.begun(user_id, request, part=part)
        return request


def _part(project_id: str) -> str:
    """By what the erasure is recorded; only its digest is."""
    return f"project {project_id}" if project_id else ""


class FileRewriter:
    """Rewrites the files of all parts after erasures. One per deployment: the worker runs it."""

    def __init__(
        self, erasures: Erasures, parts: Sequence[FileRewriting], *, clock: Clock, metrics: Metrics, keep_days: int
    ) -> None:
        """`keep_days`: how long after the rewriting the record of an erasure is kept."""
        self._erasures = erasures
        self._parts = tuple(parts)
        self._clock = clock
        self._metrics = metrics
        self._keep_seconds = keep_days * DAY
        self._expires_from = -math.inf

    async def run(self, until: asyncio.Event) -> None:
        """Until told to stop. Never raises `Unavailable`: what was impossible is tried again."""
        while not until.is_set():
            try:
                pause = SHARED_SECONDS if await self.run_once() else LOOK_SECONDS
            except (Unavailable, Conflict, BadInput) as error:
                pause = RETRY_SECONDS
                log.warning("files are not rewritten after an erasure: trying again", reason=str(error))
            await self._expire()
            await pause_before(until, pause)

    async def run_once(self) -> bool:
        """Whether an erasure waited for it. On return the files are rewritten."""
        waiting = await self._erasures.pending()
        oldest = min((one.deleted_at for one in waiting), default=self._clock())
        self._metrics.erasures_waiting_seconds.set(max(0.0, self._clock() - oldest))
        if not waiting:
            return False
        for part in self._parts:
            await part.refuse_in_vain()
        for part in self._parts:
            await part.rewrite()
        await self._erasures.rewritten(waiting, at=self._clock())
        self._metrics.erasures_waiting_seconds.set(0.0)
        return True

    async def _expire(self) -> None:
        now = self._clock()
        if now < self._expires_from:
            return
        self._expires_from = now + EXPIRY_SECONDS
        try:
            await self._erasures.expire(before=now - self._keep_seconds)
        except Unavailable as error:
            self._expires_from = now + RETRY_SECONDS
            log.warning("old records of erasures are not deleted: trying again", reason=str(error))
