"""`GET /v1/memory/receipts/{id}`: why a request got what it got, for its own user."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest_asyncio
from library_parts import NOW, Parts, library_parts
from prometheus_client import CollectorRegistry

from memory.api.rest import create_app
from memory.model import CandidateVerdict, CarriedNote, RecallStatus, Receipt, ReceiptCandidate, Scope
from memory.runtime.metrics import Metrics
from memory.service.requests import NewMemory

ANN, BOB = {"x-authz-user-id": "ann"}, {"x-authz-user-id": "bob"}


@pytest_asyncio.fixture
async def parts(tmp_path: Path) -> AsyncIterator[Parts]:
    async with library_parts(tmp_path) as built:
        yield built


@pytest_asyncio.fixture
async def api(parts: Parts) -> AsyncIterator[httpx.AsyncClient]:
    app = create_app(parts.library, identity_mode="development", edge_secret="", metrics=Metrics(CollectorRegistry()))
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="http://localhost", headers=ANN
    ) as client:
        yield client


async def receipt_for(parts: Parts) -> str:
    """One whose note holds a memory that exists; its other candidate is forgotten."""
    (tea,) = await parts.library.add(Scope("ann"), [NewMemory("I like tea")])
    parts.receipts.keep(
        Receipt(
            id="r1",
            user_id="ann",
            at=NOW,
            status=RecallStatus.USED,
            reason="found",
            signals={"search": True, "label": "personal", "scores": {"personal": 0.9}},
            query="what do I like?",
            candidates=(
                ReceiptCandidate(tea, 1.25, {"dense": 0.75, "lexical": 0.5}, CandidateVerdict.INJECTED),
                ReceiptCandidate("gone", 0.5, {"dense": 0.5}, CandidateVerdict.IRRELEVANT),
            ),
            left_out=7,
            notes=(CarriedNote(2, (tea,), 61, is_new=True),),
            timings_ms={"embed": 4.5},
        )
    )
    while await parts.receipts.get("ann", "r1") is None:
        await asyncio.sleep(0.001)
    return tea


async def test_a_receipt_tells_signals_query_candidates_notes_and_timings(api: httpx.AsyncClient, parts: Parts) -> None:
    tea = await receipt_for(parts)
    answer = await api.get("/v1/memory/receipts/r1")
    assert answer.status_code == 200
    assert answer.json() == {
        "id": "r1",
        "created_at": "2025-06-15T15:06:40Z",
        "status": "used",
        "reason": "found",
        "signals": {"search": True, "label": "personal", "scores": {"personal": 0.9}},
        "query": "what do I like?",
        "candidates": [
            {
                "id": tea,
                "content": "I like tea",
                "score": 1.25,
                "score_parts": {"dense": 0.75, "lexical": 0.5},
                "verdict": "injected",
            },
            {"id": "gone", "content": None, "score": 0.5, "score_parts": {"dense": 0.5}, "verdict": "irrelevant"},
        ],
        "candidates_left_out": 7,
        "notes": [
            {"before_message": 2, "is_new": True, "tokens": 61, "memories": [{"id": tea, "content": "I like tea"}]}
        ],
        "injected": [tea],
        "tokens": 61,
        "timings_ms": {"embed": 4.5},
        "outcome": {},
    }


async def test_somebody_else_s_receipt_looks_like_one_that_never_was(api: httpx.AsyncClient, parts: Parts) -> None:
    await receipt_for(parts)
    theirs = await api.get("/v1/memory/receipts/r1", headers=BOB)
    never = await api.get("/v1/memory/receipts/never")
    assert (theirs.status_code, never.status_code) == (404, 404)
    assert theirs.json() == never.json()
    assert theirs.json()["error"]["code"] == "not_found"


async def test_a_forgotten_memory_leaves_the_receipt_as_well(api: httpx.AsyncClient, parts: Parts) -> None:
    tea = await receipt_for(parts)
    await api.delete(f"/v1/memory/{tea}")
    shown = (await api.get("/v1/memory/receipts/r1")).json()
    assert "I like tea" not in json.dumps(shown)
    assert shown["injected"] == [tea]
