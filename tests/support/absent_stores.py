"""Stores of requests for parts that need few of them: those that are absent stand on the database of the notes; and the
memories of processes without working sets.
"""

from __future__ import annotations

from memory.adapters.sql.chat_states import SqlChatStates
from memory.adapters.sql.erased_users import SqlOptOuts
from memory.adapters.sql.erasures import SqlErasures
from memory.adapters.sql.notes import SqlCompactedStates, SqlNoteBook
from memory.adapters.sql.profiles import SqlProfiles
from memory.adapters.sql.projects import SqlProjects
from memory.adapters.sql.requests_by_name import SqlIdempotencyKeys, SqlResponseChains
from memory.adapters.sql.session_summaries import SqlSummaries
from memory.ports import (
    ChatStates,
    Embedder,
    MemoryBank,
    MemoryLookup,
    MemoryStore,
    Profiles,
    Receipts,
    RequestStores,
    UserLedger,
)
from memory.ports.upkeep import UsageCounts


def request_stores(
    notes: SqlNoteBook,
    receipts: Receipts,
    usage_counts: UsageCounts,
    profiles: Profiles | None = None,
    *,
    chat_states: ChatStates | None = None,
) -> RequestStores:
    on = notes._database
    return RequestStores(
        *(notes, receipts, usage_counts, profiles or SqlProfiles(on), SqlCompactedStates(on), SqlSummaries(on)),
        *(SqlIdempotencyKeys(on), SqlOptOuts(on), SqlErasures(on), SqlProjects(on)),
        chat_states or SqlChatStates(on, notes, SqlResponseChains(on), lambda: 0.0),
    )


class NoLocalMemories:
    """`UserMemories` of a process without working sets."""

    async def as_of(self, user_id: str, revision: int | None = None) -> MemoryLookup | None:
        return None


def memory_bank(store: MemoryStore, ledger: UserLedger, embedder: Embedder) -> MemoryBank:
    return MemoryBank(store, ledger, embedder, NoLocalMemories())
