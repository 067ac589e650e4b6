"""Counts what is left of one project of a user after it was erased: all rows that name the project.

What was said later is not left of it: a user may go on working in a project that they erased. Rows have the times of
what was said, so what was said before the erasure and is imported again afterwards counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace

from memory.model import Memory, MemoryStatus
from memory.ports import ConversationRecord, MemoryFilter, MemoryStore, RequestStores
from memory.ports.erasures import PlaceReport
from memory.ports.paging import all_pages
from memory.service.memory_scan import scanned
from memory.service.shared_rows import SharedRows

ROWS = "rows"
SEARCHED = (
    "memories, turns, messages, receipts, profiles and summaries of the user, and what they shared, for this project, "
    "from before the erasure, after files had been written anew from such rows"
)
BYTES = "bytes of files, keys and logs: nothing in them says whose project they were, and others may use its name"
PAGE = 200  # receipts
SUMMARIES_MAX = 1_000_000  # all of one user


class ProjectRemains:
    """Methods raise `Unavailable`."""

    def __init__(
        self, store: MemoryStore, record: ConversationRecord, stores: RequestStores, shared: SharedRows
    ) -> None:
        self._store = store
        self._record = record
        self._stores = stores
        self._shared = shared

    async def report(self, user_id: str, project_id: str, *, until: float) -> PlaceReport:
        """Rows of that project from that time and before, by kind. `until`: Unix seconds."""
        read, found = 0, Counter[str]()
        async for kind, project, at in self._rows(user_id, project_id):
            read, found[kind] = read + 1, found[kind] + (project == project_id and at <= until)
        named = tuple(f"{kind}: {count}" for kind, count in found.items() if count)
        return PlaceReport(ROWS, SEARCHED, read, 0, named, (BYTES,))

    async def _rows(self, user_id: str, project_id: str) -> AsyncIterator[tuple[str, str, float]]:
        """Kind, project and time of each row; of memories and profiles, those of the project alone are read."""
        where = MemoryFilter(user_id, project_id, status=None, exact_project=True)
        for kind, which in (("memories", where), ("raw words", replace(where, status=MemoryStatus.RAW))):
            async for memories in scanned(self._store, which):
                for memory in memories:
                    yield kind, memory.project_id, _time_of(memory)
        for memory in await self._shared.authored(user_id):
            yield "shared memories", memory.project_id, _time_of(memory)
        for profile in (await self._stores.profiles.get(user_id, [project_id])).values():
            yield "profiles", profile.project_id, profile.updated_at
        async for row in self._recorded(user_id):
            yield row

    async def _recorded(self, user_id: str) -> AsyncIterator[tuple[str, str, float]]:
        """Of what was said in chats, whatever the project."""
        async for copy in self._record.copies.turns(user_id):
            yield "turns", copy.turn.scope.project_id, copy.turn.at
        async for message in self._record.copies.messages(user_id):
            yield "messages", message.project_id, message.at
        receipts = self._stores.receipts
        async for page in all_pages(lambda cursor: receipts.page(user_id, limit=PAGE, cursor=cursor)):
            for receipt in page.receipts:
                yield "receipts", receipt.project_id, receipt.at
        for one in await self._stores.summaries.of_user(user_id, limit=SUMMARIES_MAX):
            yield "summaries", one.summary.project_id, one.summary.first_at


def _time_of(memory: Memory) -> float:
    """An older statement may be learnt later, and a newer one may confirm an older memory."""
    return min(memory.created_at, memory.said_at)
