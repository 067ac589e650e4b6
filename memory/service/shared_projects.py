"""Shared projects, for callers of the library: their members, their memories, and what becomes of both with a user."""

from __future__ import annotations

from collections.abc import Collection

from memory.model import Memory
from memory.ports import MemoryBank, RequestStores
from memory.service.erasure import Erasure
from memory.service.project_members import ProjectMembership, ProjectParts
from memory.service.project_memories import ProjectMemories
from memory.service.project_sharing import ProjectSharing
from memory.service.requests import Intake, MemoryEdit
from memory.service.shared_rows import SharedRows
from memory.service.user_writes import UserWrites


class SharedProjects:
    """Methods raise `BadInput`, `Unavailable` or `Conflict`."""

    def __init__(
        self, memories: MemoryBank, stores: RequestStores, *, erasure: Erasure, writes: UserWrites, intake: Intake
    ) -> None:
        self.rows = SharedRows(memories, stores.projects, notes=stores.notes, clock=intake.clock)
        parts = ProjectParts(memories, stores.projects, self.rows, erasure, writes, intake)
        self.tenancy = intake.tenancy
        self.membership = ProjectMembership(parts)
        self.memories = ProjectMemories(parts)
        self._sharing = ProjectSharing(parts, self.memories)

    async def edit(
        self, user_id: str, memory_id: str, edit: MemoryEdit, *, expected: Collection[str] | None
    ) -> Memory | None:
        """None if neither the memory is shared nor the edit shares it."""
        if edit.visibility is not None or edit.project_id is not None:
            return await self._sharing.change(user_id, memory_id, edit, expected=expected)
        return await self.memories.edit(user_id, memory_id, edit, expected=expected)

    async def forget_user(self, user_id: str, project_id: str) -> int:
        """What the user authored in projects of that id, also after they left; "": in all, and the user leaves them.
        Returns how many memories.
        """
        if not project_id:
            await self.membership.leave_all(user_id)  # first: whoever has left shares nothing more
        return await self.rows.forget_authored(user_id, project_id=project_id)
