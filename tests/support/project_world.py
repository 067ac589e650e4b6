"""Library, REST API and recall over shared projects, in one process, on real parts but for a hashing embedder.

Recall has a cache of roles of its own, as a filter does, and another one serves the API's searches.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from absent_stores import request_stores
from api_parts import app_of, claims, client_of
from hashing_embedder import HashingEmbedder
from prometheus_client import CollectorRegistry
from token_counts import counted_tokens

from memory.adapters.in_memory import InMemoryStore
from memory.adapters.sql.chains import SqlResponseChains
from memory.adapters.sql.chat_states import SqlChatStates
from memory.adapters.sql.ledger import SqlUserLedger
from memory.adapters.sql.notes import SqlNoteBook
from memory.adapters.sql.projects import SqlProjects
from memory.adapters.sql.receipts import SqlReceipts
from memory.adapters.sql.sqlite_database import SqliteDatabase
from memory.adapters.sql.turn_log import SqlTurnLog
from memory.adapters.sql.usage_counts import SqlUsageCounts
from memory.api.callers import CallerRules
from memory.chat.completions import read_chat_request
from memory.model import Scope
from memory.model.projects import Tenancy
from memory.model.token_claims import ClaimNames
from memory.ports import MemoryBank, ServerKnowledge
from memory.recall import project_access
from memory.recall.pipeline import RecallParts, RecallPipeline
from memory.recall.project_access import ReadableProjects
from memory.recall.retrieval import Retrieval
from memory.recall.search_flow import SearchParts
from memory.recall.stages import RecallSettings
from memory.recall.working_set.working_sets import CorpusShape, WorkingSets
from memory.runtime.metrics import Metrics
from memory.runtime.telemetry import Telemetry
from memory.secrets.redaction import redact
from memory.service.library import Library
from memory.service.requests import Intake

START = 1_750_000_000.0
SETTINGS = RecallSettings(deadline_seconds=5.0, in_flight_max=4)  # who finds what is the question, not how fast
CLAIMS = ClaimNames(tenant="tenant", project="projects")


class Ticking:
    """A clock that shows a later time whenever it is read."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> float:
        self.now += 0.001
        return self.now


@dataclass
class ProjectWorld:
    """`tenancy` says whether users are called `TENANT/USER`."""

    library: Library
    recall: RecallPipeline
    store: InMemoryStore
    projects: SqlProjects
    notes: SqlNoteBook
    chat_states: SqlChatStates
    clock: Ticking
    database: SqliteDatabase
    api: httpx.AsyncClient

    async def call(
        self, user: str, method: str, path: str, body: object = None, *, tenant: str = "", projects: Sequence[str] = ()
    ) -> httpx.Response:
        """REST under `/v1/memory`, as a user of development, or with a token of that tenant for these projects."""
        headers = {"x-authz-user-id": user}
        if tenant:
            headers = claims(sub=user, tenant=tenant, projects=list(projects))
        return await self.api.request(method, f"/v1/memory{path}", json=body, headers=headers)

    async def let_in(self, by: str, project_id: str, user: str, role: str, **who: Any) -> None:
        """As a new member, who accepts; or changes the role of one."""
        given = await self.call(by, "PUT", f"/projects/{project_id}/members/{user}", {"role": role}, **who)
        assert given.status_code == 200, given.text
        if given.json()["joined_at"] is None:
            asked = (await self.call(user, "GET", "/invitations", **who)).json()["invitations"]
            [invitation] = [one["id"] for one in asked if one["project_id"] == project_id]
            accepted = await self.call(user, "POST", f"/invitations/{invitation}/accept", **who)
            assert accepted.status_code == 200, accepted.text

    async def chat(self, user: str, project_id: str, *said: str) -> str:
        """What the model gets to read of memory when the user has said all that, the last as a new question."""
        messages: list[Mapping[str, Any]] = []
        for text in said:
            messages += [{"role": "user", "content": text}, {"role": "assistant", "content": "I see."}]
        request = read_chat_request(json.dumps({"model": "m", "messages": messages[:-1]}).encode())
        outcome = await self.recall.recall(Scope(user, project_id), request)
        return "\n".join(note.text for note in outcome.notes)


def expiring_roles(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """A call of it: roles that chats have read before are too old."""
    now = 0.0

    def expire() -> None:
        nonlocal now
        now += project_access.ROLE_SECONDS_MAX

    monkeypatch.setattr(project_access, "_now", lambda: now)
    return expire


@asynccontextmanager
async def project_world(folder: Path, *, has_tenants: bool = False) -> AsyncIterator[ProjectWorld]:
    embedder, metrics, store = HashingEmbedder(dimension=384), Metrics(CollectorRegistry()), InMemoryStore()
    tokens, tenancy, clock = counted_tokens(), Tenancy(has_tenants), Ticking()
    ids = (f"id{number:06}" for number in itertools.count())
    async with SqliteDatabase(folder / "turns.sqlite") as database:
        ledger, projects = SqlUserLedger(database, clock=clock), SqlProjects(database)
        notes = SqlNoteBook(database)
        receipts = SqlReceipts(database, clock=clock, redact=redact)
        async with (
            SqlUsageCounts(database) as usage_counts,
            WorkingSets(store=store, ledger=ledger, shape=CorpusShape(384, tokens=tokens)) as corpora,
        ):
            chains = SqlResponseChains(database)
            states = SqlChatStates(database, notes, chains, clock)
            stores = request_stores(notes, receipts, usage_counts, projects=projects, chat_states=states)

            def recall(readable: ReadableProjects) -> RecallPipeline:
                retrieval = Retrieval(corpora=corpora, store=store, projects=readable)
                parts = RecallParts(
                    search=SearchParts(embedder, lambda: None, retrieval, tokens),
                    stores=stores,
                    projects=readable,
                    server=ServerKnowledge(chains),
                    telemetry=Telemetry(clock, metrics),
                    new_id=lambda: next(ids),
                )
                return RecallPipeline(parts, SETTINGS)

            library = Library(
                memories=MemoryBank(store, ledger, embedder),
                turn_log=SqlTurnLog(database, clock=clock),
                stores=stores,
                searcher=recall(ReadableProjects(projects)),
                intake=Intake(clock, lambda: next(ids), redact, tokens, tenancy=tenancy),
            )
            app = app_of(library, "jwt" if has_tenants else "development", rules=CallerRules(CLAIMS))
            async with client_of(app) as api:
                chats = recall(ReadableProjects(projects))
                yield ProjectWorld(library, chats, store, projects, notes, states, clock, database, api)
