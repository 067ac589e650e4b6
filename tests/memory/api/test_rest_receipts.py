"""Receipts: why a request got what it got, and the chat that they are about, for its own user."""

from __future__ import annotations

import asyncio
import json

import httpx
from api_parts import BOB
from library_parts import NOW, Parts

from memory.model import (
    CandidateVerdict,
    CarriedNote,
    Message,
    RecallStatus,
    Receipt,
    ReceiptCandidate,
    Scope,
    Turn,
    TurnStatus,
)
from memory.service.requests import NewMemory


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


async def test_the_chat_of_a_receipt_is_shown_to_its_own_user(api: httpx.AsyncClient, parts: Parts) -> None:
    said, scope = (Message("user", "what do I like?"),), Scope("ann", session_id="s1")
    await parts.turn_log.append(Turn("t1", scope, NOW, said, TurnStatus.CLOSED, "You like tea.", NOW, receipt_id="r1"))
    found = (await api.get("/v1/memory/receipts/r1/messages")).json()["messages"]
    assert [(m["content"], m["type"], m["turn_id"], m["conversation_id"]) for m in found] == [
        ("what do I like?", "input", "t1", "s1"),
        ("You like tea.", "output", "t1", "s1"),
    ]
    theirs = await api.get("/v1/memory/receipts/r1/messages", headers=BOB)
    never = await api.get("/v1/memory/receipts/never/messages")
    assert (theirs.status_code, never.status_code, theirs.json()) == (404, 404, never.json())
    await api.delete("/v1/memory/turns/t1")
    assert (await api.get("/v1/memory/receipts/r1/messages")).status_code == 404
