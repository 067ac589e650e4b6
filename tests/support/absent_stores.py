"""Stores of requests for parts that need few of them: those that are absent stand on the database of the notes."""

from __future__ import annotations

from memory.adapters.sql.chains import SqlResponseChains
from memory.adapters.sql.chat_states import SqlChatStates
from memory.adapters.sql.erasures import SqlErasures
from memory.adapters.sql.idempotency_keys import SqlIdempotencyKeys
from memory.adapters.sql.notes import SqlNoteBook
from memory.adapters.sql.profiles import SqlProfiles
from memory.adapters.sql.projects import SqlProjects
from memory.ports import (
    ChatStates,
    CompactedStates,
    NoOptOuts,
    NoSummaries,
    OptOuts,
    Profiles,
    Receipts,
    RequestStores,
    UsageCounts,
)
from memory.ports.erasures import Erasures
from memory.ports.idempotency import IdempotencyKeys
from memory.ports.projects import Projects
from memory.ports.summaries import SessionSummaries


def request_stores(
    notes: SqlNoteBook,
    receipts: Receipts,
    usage_counts: UsageCounts,
    profiles: Profiles | None = None,
    states: CompactedStates | None = None,
    summaries: SessionSummaries | None = None,
    *,
    idempotency: IdempotencyKeys | None = None,
    opt_outs: OptOuts | None = None,
    erasures: Erasures | None = None,
    projects: Projects | None = None,
    chat_states: ChatStates | None = None,
) -> RequestStores:
    on = notes._database
    return RequestStores(
        *(notes, receipts, usage_counts, profiles or SqlProfiles(on), states, summaries or NoSummaries()),
        *(idempotency or SqlIdempotencyKeys(on), opt_outs or NoOptOuts(), erasures or SqlErasures(on)),
        projects or SqlProjects(on),
        chat_states or SqlChatStates(on, notes, SqlResponseChains(on), lambda: 0.0),
    )
