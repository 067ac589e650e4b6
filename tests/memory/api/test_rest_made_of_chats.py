"""What memory makes of chats, for their own user: receipts, summaries of sessions, and `/v1/profile`."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import httpx
import pytest
from api_parts import BOB, ODD, add_one, assert_refused, kept, learn_all, tell
from library_parts import NOW, Parts

from memory.model import (
    CandidateVerdict,
    CarriedNote,
    Message,
    RecallStatus,
    Receipt,
    ReceiptCandidate,
    Scope,
    SessionSummary,
    Turn,
    TurnStatus,
)
from memory.service.requests import NewMemory

# Receipts

SIGNALS = {"search": True, "label": "personal", "scores": {"personal": 0.9}}


async def receipt_for(parts: Parts) -> str:
    """One whose note holds a memory that exists; its other candidate is forgotten."""
    (tea,) = await parts.library.add(Scope("ann"), [NewMemory("I like tea")])
    receipt = Receipt(
        *("r1", "ann", NOW, RecallStatus.USED, "found", SIGNALS, "what do I like?"),
        candidates=(
            ReceiptCandidate(tea, 1.25, {"dense": 0.75, "lexical": 0.5}, CandidateVerdict.INJECTED),
            ReceiptCandidate("gone", 0.5, {"dense": 0.5}, CandidateVerdict.IRRELEVANT),
        ),
        left_out=7,
        notes=(CarriedNote(2, (tea,), 61, is_new=True),),
        timings_ms={"embed": 4.5},
    )
    await kept(parts, receipt)
    return tea


async def test_a_receipt_tells_its_own_user_how_the_note_came_about(api: httpx.AsyncClient, parts: Parts) -> None:
    tea = await receipt_for(parts)
    shown = (await api.get("/v1/memory/receipts/r1")).json()
    found, gone = shown.pop("candidates")
    assert (found["id"], found["content"], found["score"], found["verdict"]) == (tea, "I like tea", 1.25, "injected")
    assert found["score_parts"] == {"dense": 0.75, "lexical": 0.5}
    assert (gone["content"], gone["verdict"]) == (None, "irrelevant")
    [note] = shown.pop("notes")
    assert (note["before_message"], note["is_new"], note["tokens"]) == (2, True, 61)
    assert note["memories"] == [{"id": tea, "content": "I like tea"}]
    assert shown.pop("signals") == SIGNALS
    chat = {"id": "r1", "created_at": "2025-06-15T15:06:40Z", "query": "what do I like?", "outcome": {}}
    result = {"status": "used", "reason": "found", "candidates_left_out": 7, "injected": [tea], "tokens": 61}
    assert shown == chat | result | {"timings_ms": {"embed": 4.5}}
    theirs = await api.get("/v1/memory/receipts/r1", headers=BOB)
    assert_refused(theirs, 404, "not_found")
    assert theirs.json() == (await api.get("/v1/memory/receipts/never")).json(), "like one that never was"


async def test_the_chat_of_a_receipt_is_shown_to_its_own_user(api: httpx.AsyncClient, parts: Parts) -> None:
    said, scope = (Message("user", "what do I like?"),), Scope("ann", session_id="s1")
    await parts.turn_log.append(Turn("t1", scope, NOW, said, TurnStatus.CLOSED, "You like tea.", NOW, receipt_id="r1"))
    found = (await api.get("/v1/memory/receipts/r1/messages")).json()["messages"]
    assert [(m["content"], m["type"], m["turn_id"], m["conversation_id"]) for m in found] == [
        ("what do I like?", "input", "t1", "s1"),
        ("You like tea.", "output", "t1", "s1"),
    ]
    theirs = await api.get("/v1/memory/receipts/r1/messages", headers=BOB)
    assert_refused(theirs, 404)
    assert theirs.json() == (await api.get("/v1/memory/receipts/never/messages")).json()
    await api.delete("/v1/memory/turns/t1")
    assert (await api.get("/v1/memory/receipts/r1/messages")).status_code == 404


# Summaries of sessions


async def taught(parts: Parts, turn_id: str, text: str, *, session: str = "s1", receipt: str = "") -> None:
    """A turn that is learnt."""
    await tell(parts, turn_id, text, session=session, receipt=receipt)
    await learn_all(parts)


async def test_a_session_is_ended_by_its_user_and_shown_with_its_summary(parts: Parts, api: httpx.AsyncClient) -> None:
    await taught(parts, "t1", "I want to buy a boat", session=ODD)
    path = f"/v1/sessions/{quote(ODD, safe='')}"
    before = (await api.get(path)).json()
    assert (before["status"], before["summary"]) == ("open", None)
    assert_refused(await api.post(f"{path}/end", headers=BOB), 404, "not_found")
    assert_refused(await api.post("/v1/memory/sessions/s9/end"), 404, "not_found")
    assert not await parts.summaries.is_ended("ann", ODD)
    ended = await api.post(f"{path}/end")
    assert (ended.status_code, ended.json()) == (202, {"ended": True})
    assert (await api.get(path)).json()["status"] == "ended"
    assert [one["status"] for one in (await api.get("/v1/sessions")).json()["sessions"]] == ["ended"]
    (due,) = await parts.summaries.due(now=NOW, idle_seconds=9_999, limit=9)
    made = SessionSummary("ann", ODD, 1, "A boat \ud800", "text", NOW, NOW + 1, ("t1",), made_by="a test", made_at=NOW)
    assert await parts.summaries.put(due, made, None)
    shown = (await api.get(path)).json()["summary"]
    assert shown["id"] == made.id
    assert (shown["title"], shown["turn_ids"], shown["version"]) == ("A boat \ufffd", ["t1"], 1)


async def test_a_note_with_a_summary_is_explained(parts: Parts, api: httpx.AsyncClient) -> None:
    await taught(parts, "t1", "I want to buy a boat")
    (due,) = await parts.summaries.due(now=NOW + 9_999, idle_seconds=1, limit=9)
    made = SessionSummary("ann", "s1", 1, "A boat", "for beginners", NOW, NOW, ("t1",))
    await parts.summaries.put(due, made, None)
    note = CarriedNote(before=0, memory_ids=(made.id, "m9"), tokens=9, is_new=True)
    await kept(parts, Receipt("r1", "ann", NOW, RecallStatus.USED, "summary", notes=(note,)))
    await taught(parts, "t2", "What did we talk about?", session="s2", receipt="r1")
    (given,) = (await api.get("/v1/sessions/s2")).json()["notes"]
    contents = {memory["id"]: memory["content"] for memory in given["memories"]}
    assert contents == {made.id: "A boat: for beginners", "m9": None}


# Profiles


async def shown(api: httpx.AsyncClient, path: str = "/v1/profile", **parameters: str) -> dict[str, Any]:
    answer = await api.get(path, params=parameters)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


@pytest.mark.parametrize("path", ["/v1/profile", "/v1/memory/profile"])
async def test_it_is_shown_pinned_switched_and_deleted(api: httpx.AsyncClient, path: str) -> None:
    assert_refused(await api.get(path), 404, "profile")
    memory_id = await add_one(api, "I prefer green tea", category="preference")
    line = {"text": "[2025-06-15] I prefer green tea", "memory_id": memory_id, "evidence": []}
    made = {"lines": [line], "version": 1, "enabled": True, "pinned": [], "project_id": ""}
    assert made.items() <= (await shown(api, path)).items()
    changed = await api.put(path, json={"pinned": ["Answer in German"], "enabled": False})
    assert changed.status_code == 200
    assert changed.json() == await shown(api, path)
    off = {"pinned": ["Answer in German"], "enabled": False, "text": "", "tokens": 0}
    assert off.items() <= changed.json().items()
    again = (await api.put(path, json={"enabled": True})).json()
    assert "- Answer in German\n</wishes>" in again["text"]
    assert "- [2025-06-15] I prefer green tea\n</profile>" in again["text"]
    assert 0 < again["tokens"] <= 200
    assert (await api.delete(path)).json() == {"deleted": True}
    assert_refused(await api.get(path), 404, "profile")


async def test_a_project_has_its_own_nobody_sees_another_user_s_and_nonsense_is_refused(api: httpx.AsyncClient) -> None:
    await add_one(api, "I prefer tabs", category="preference", project_id="atlas")
    assert (await shown(api, project_id="atlas"))["lines"][0]["text"] == "[2025-06-15] I prefer tabs"
    assert_refused(await api.get("/v1/profile"), 404)
    assert_refused(await api.get("/v1/profile", params={"project_id": "atlas"}, headers=BOB), 404)
    await api.delete("/v1/profile", params={"project_id": "atlas"}, headers=BOB)
    assert (await shown(api, project_id="atlas"))["lines"]
    unlike: list[tuple[Any, str]] = [({}, "nothing to change"), ({"pinned": [""]}, "line"), ({"pin": []}, "pin")]
    for body, word in unlike:
        assert_refused(await api.put("/v1/profile", json=body), 400, word)
    assert_refused(await api.get("/v1/profile", params={"project_id": " a"}), 400)
    assert_refused(await api.get("/v1/profile", params={"project": "a"}), 400, "project_id")
