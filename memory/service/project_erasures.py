"""Erases one project of a user, with proof: the rows at once, the bytes in files soon after, then a look for the rest.

What other members shared in a project stays: it is not the user's. The record of the erasure has a digest of user and
project. Bytes cannot be looked for, since nothing in them says whose project they were; so the proof counts the rows
that name the project, from which all files were written anew, and is a partial one.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace

from memory.errors import BadInput
from memory.model import MemoryStatus, Scope
from memory.ports import ConversationRecord, MemoryBank, MemoryFilter, RequestTraces
from memory.ports.erasures import ErasureRecord, ErasureRequest, PlaceReport
from memory.service.erasure import Erasure
from memory.service.erasure_states import ErasureLooks, ErasureState, ErasureStatus
from memory.service.requests import Intake
from memory.service.shared_projects import SharedProjects

ROWS = "rows"
SEARCHED = (
    "memories, turns, messages, receipts, profiles and summaries of the user, and what they shared, for this project, "
    "after files had been written anew from such rows"
)
BYTES = "bytes of files, keys and logs: nothing in them says whose project they were, and others may use its name"
PAGE = 200  # receipts
SUMMARIES_MAX = 1_000_000  # all of one user


class ProjectErasures:
    """Methods raise `BadInput` (`NotFound`), `Unavailable` or `Conflict`; each may be repeated."""

    def __init__(
        self,
        memories: MemoryBank,
        record: ConversationRecord,
        traces: RequestTraces,
        *,
        erasure: Erasure,
        shared: SharedProjects,
        intake: Intake,
    ) -> None:
        self._store = memories.store
        self._record = record
        self._traces = traces
        self._erasure = erasure
        self._shared = shared
        self._erasures = traces.erasures.record
        self._looks = ErasureLooks(self._erasures, clock=intake.clock)
        self._clock = intake.clock
        self._new_id = intake.new_id

    async def everything(self, user_id: str, project_id: str) -> ErasureStatus:
        """On return nothing finds anything of the user in exactly that project, or of what they shared in it."""
        if not project_id:
            raise BadInput("project_id must not be empty")
        Scope(user_id, project_id)  # refuses invalid ids
        subject, asked_at = _subject(user_id, project_id), self._clock()
        request = ErasureRequest(self._new_id(), asked_at, asked_at, {"memories": 0, "turns_withdrawn": 0})
        await self._erasures.begun(subject, request)  # files are rewritten also if this process dies now
        shared = await self._shared.forget_user(user_id, project_id)
        memories, turns = await self._erasure.scope(user_id, project_id)
        deleted = {"memories": memories + shared, "turns_withdrawn": turns}
        request = replace(request, deleted_at=self._clock(), deleted=deleted)
        await self._erasures.begun(subject, request)
        return ErasureStatus(ErasureState.DELETED, ErasureRecord(request))

    async def delete_shared(self, user_id: str, project_id: str) -> None:
        """For the owner: a shared project with all memories in it, whoever wrote them. Its files are rewritten as well;
        there is no proof, since what remains of it is nobody's alone.
        """
        project, asked_at = (await self._shared.membership.owned(user_id, project_id)).project, self._clock()
        subject = f"shared project {project.key}"
        request = ErasureRequest(self._new_id(), asked_at, asked_at, {"shared_projects": 0})
        await self._erasures.begun(subject, request)  # files are rewritten also if this process dies now
        await self._shared.membership.delete(user_id, project_id)
        request = replace(request, deleted_at=self._clock(), deleted={"shared_projects": 1})
        await self._erasures.begun(subject, request)

    async def status(self, user_id: str, project_id: str, erasure_id: str) -> ErasureStatus:
        """How far it is. Looks for the rest once files are rewritten. Raises `NotFound` for another project's."""
        Scope(user_id, project_id)  # refuses invalid ids

        async def look() -> list[PlaceReport]:
            return [await self._remains(user_id, project_id)]

        return await self._looks.status(_subject(user_id, project_id), erasure_id, look)

    async def _remains(self, user_id: str, project_id: str) -> PlaceReport:
        found, read = Counter[str](), 0
        where = MemoryFilter(user_id, project_id, status=None, exact_project=True)
        for kind, which in (("memories", where), ("raw words", replace(where, status=MemoryStatus.RAW))):
            found[kind] = len(await self._store.ids(which))
        async for copy in self._record.copies.turns(user_id):
            read, found["turns"] = read + 1, found["turns"] + (copy.turn.scope.project_id == project_id)
        async for message in self._record.copies.messages(user_id):
            read, found["messages"] = read + 1, found["messages"] + (message.project_id == project_id)
        cursor, is_first = "", True
        while cursor or is_first:
            page = await self._traces.receipts.page(user_id, limit=PAGE, cursor=cursor)
            cursor, is_first, read = page.next_cursor, False, read + len(page.receipts)
            found["receipts"] += sum(one.project_id == project_id for one in page.receipts)
        found["profiles"] = len(await self._traces.profiles.get(user_id, [project_id]))
        summaries = await self._traces.summaries.of_user(user_id, limit=SUMMARIES_MAX)
        found["summaries"] = sum(one.summary.project_id == project_id for one in summaries)
        shared = await self._shared.rows.authored(user_id)
        found["shared memories"] = sum(one.project_id == project_id for one in shared)
        read += sum(found[kind] for kind in ("memories", "raw words", "profiles")) + len(summaries) + len(shared)
        named = tuple(f"{kind}: {count}" for kind, count in found.items() if count)
        return PlaceReport(ROWS, SEARCHED, read, 0, named, (BYTES,))


def _subject(user_id: str, project_id: str) -> str:
    """By what the erasure is recorded; only its digest is. No user has such an id."""
    return f"project {json.dumps([user_id, project_id])}"


__all__ = ["ProjectErasures"]
