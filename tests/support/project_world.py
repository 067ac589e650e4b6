"""Library, REST API and recall over shared projects, in one process, on real parts but for a hashing embedder.

Recall has a cache of roles of its own, as a filter does, and another one serves the API's searches.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from api_parts import app_of, claims, client_of
from hashing_embedder import HashingEmbedder
from product_parts import product_parts

from memory.adapters.in_memory import InMemoryStore
from memory.adapters.sql.sqlite_database import SqliteDatabase
from memory.chat.completions import read_chat_request
from memory.model import Scope
from memory.model.token_claims import ClaimNames
from memory.processes.composition import Parts
from memory.processes.from_settings import caller_rules
from memory.recall import project_access
from memory.service.library import Library
from memory.settings import JwtSettings, MemorySettings, Settings

START = 1_750_000_000.0
DEADLINE_MS = 5_000.0  # who finds what is the question, not how fast
CLAIMS = ClaimNames(tenant="tenant", project="projects")


class Ticking:
    """A clock that shows a later time whenever it is read."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> float:
        self.now += 0.001
        return self.now


class ProjectWorld:
    """`recall`: of chats."""

    def __init__(self, own: Parts, clock: Ticking, api: httpx.AsyncClient, library: Library) -> None:
        stores = own.stores
        self.library, self.recall, self.api, self.clock = library, own.recall(), api, clock
        self.store, self.projects, self.notes, self.chat_states = (
            own.store,
            stores.projects,
            stores.notes,
            stores.chat_states,
        )
        self.database: SqliteDatabase = stores.projects._database  # type: ignore[attr-defined]

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
    """`has_tenants`: whether users are called `TENANT/USER`."""
    clock = Ticking()
    settings = Settings(
        identity="jwt" if has_tenants else "development",
        jwt=JwtSettings(tenant_claim=CLAIMS.tenant, project_claim=CLAIMS.project),
        memory=MemorySettings(deadline_ms=DEADLINE_MS),
    )
    embedder = HashingEmbedder(dimension=384)
    async with product_parts(folder, InMemoryStore(), embedder, clock=clock, settings=settings) as own:
        library = own.library()
        async with client_of(app_of(library, settings.identity, rules=caller_rules(own.settings))) as api:
            yield ProjectWorld(own, clock, api, library)
