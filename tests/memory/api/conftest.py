"""A library and its REST API, per test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import httpx
import pytest
from api_parts import ANN, add_one, api_of
from library_parts import Parts, library_parts
from project_world import ProjectWorld, project_world

from memory.model import Change, ChangeKind, Turn
from memory.model.raw_words import rows_of


@pytest.fixture
async def parts(tmp_path: Path) -> AsyncIterator[Parts]:
    async with library_parts(tmp_path) as built:
        yield built


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[ProjectWorld]:
    async with project_world(tmp_path) as built:
        yield built


@pytest.fixture
async def api(parts: Parts) -> AsyncIterator[httpx.AsyncClient]:
    """Called by ann, in development."""
    async with api_of(parts, headers=ANN) as client:
        yield client


@pytest.fixture
def live(api: httpx.AsyncClient, parts: Parts) -> Callable[[str], Awaitable[Turn]]:
    """Of a project: a profile, a memory, a message and a learnt turn with its raw words, each with its name."""

    async def lived(project: str) -> Turn:
        here = {"project_id": project} if project else {}
        name = project or "nowhere"
        await add_one(api, f"The office of {name} is green", **here)
        said = [{"role": "user", "content": f"I work on {name}"}, {"role": "assistant", "content": "Fine"}]
        turn = {"session_id": f"s-{name}", "at": 1_000, "messages": said, **here}
        assert (await api.post("/v1/memory/turns", json=turn)).is_success
        lease = await parts.lease()
        assert lease is not None
        await parts.learn(lease)
        [row] = rows_of(lease.turns[0], [said[0]["content"]])
        vectors = await parts.embedder.embed([row.content], is_urgent=False)
        await parts.store.apply("ann", [Change(ChangeKind.CREATE, row)], vectors)
        added = {"source_type": "tool", "source": "radio", "target_type": "agent", "target": "a", "content": f"{name}!"}
        path = f"/v1/memory/conversations/s-{name}/messages"
        assert (await api.post(path, json={"messages": [added], **here})).is_success
        profile = await api.put("/v1/profile", params=here, json={"pinned": [f"Call it {name}"]})
        assert profile.is_success, profile.text
        return lease.turns[0]

    return lived
